/* The blob server's thread: fetch -> chunk, put -> stored. */
#include "coordinator/server_blobs.h"

#include "base/clock.h"
#include "coordinator/server_peers.h"
#include "coordinator/server_promises.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKET_LIMIT 8
#define ADDRESS_LIMIT 300
/* Messages of one socket before the others get their turn. */
#define BATCH 32
/* Between two pieces of an upload; who is silent for longer begins it again. */
#define SILENCE_NS (600 * NS_PER_SECOND)

struct blob_server {
    const struct blobs *blobs;
    const struct log *log;
    struct endpoint *endpoints[SOCKET_LIMIT];
    size_t count;
    struct peers peers; /* of the thread */
    void *buffer;       /* BLOB_CHUNK bytes; of the thread */
    int stop_pipe[2];
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex; /* guards the promises, and a deletion against a promise in the making */
    struct promises promises;
};

void blob_server_named(struct blob_server *server, const char *sha256)
{
    pthread_mutex_lock(&server->mutex);
    promises_keep(&server->promises, sha256, clock_now().monotonic_ns);
    pthread_mutex_unlock(&server->mutex);
}

void blob_server_delete(struct blob_server *server, const char *sha256)
{
    struct error err = {0};
    pthread_mutex_lock(&server->mutex);
    bool promised = promises_hold(&server->promises, sha256, clock_now().monotonic_ns);
    if (!promised && blobs_delete(server->blobs, sha256, &err)) {
        log_warning(server->log, "", "%s", err.message);
    }
    pthread_mutex_unlock(&server->mutex);
}

/* ---- requests ---- */

/* Whose fault it is tells the peer what to do: begin again, or try again later. */
static const char *error_code(const struct error *err)
{
    return err->code == ERROR_PROTOCOL ? "malformed" : "unavailable";
}

static void refuse(struct blob_server *server, struct endpoint *endpoint, const struct peer *peer,
                   const char *code, const char *sha256, struct error *err)
{
    struct message message;
    message_init(&message, MESSAGE_ERROR);
    message.code = (char *)code;
    message.error = err->message;
    message.checkpoint = (char *)sha256;
    log_warning(server->log, "", "blob %.12s: %s", sha256 ? sha256 : "?", err->message);
    endpoint_send(endpoint, peer, &message, NULL);
}

static void fetch(struct blob_server *server, struct endpoint *endpoint, const struct peer *peer,
                  const struct message *request)
{
    struct error err = {0};
    struct message chunk;
    message_init(&chunk, MESSAGE_CHUNK);
    if (!blobs_has(server->blobs, request->checkpoint)) {
        error_set(&err, ERROR_PROTOCOL, "no such blob");
        refuse(server, endpoint, peer, "not_found", request->checkpoint, &err);
        return;
    }
    int64_t count =
        blobs_read(server->blobs, request->checkpoint, request->offset, server->buffer, &chunk.size, &err);
    if (count < 0) {
        refuse(server, endpoint, peer, error_code(&err), request->checkpoint, &err);
        return;
    }
    chunk.checkpoint = request->checkpoint;
    chunk.offset = request->offset;
    chunk.bytes = server->buffer;
    chunk.byte_count = (size_t)count;
    endpoint_send(endpoint, peer, &chunk, NULL); /* a peer that left or lags asks again */
}

/* A blob that was damaged on our disk must not be taken for the one about to be sent: that trial would lose
 * its checkpoint again and again. */
static bool has_whole(struct blob_server *server, const struct message *request)
{
    if (request->offset > 0 || blobs_has_whole(server->blobs, request->checkpoint)) {
        return true;
    }
    log_warning(server->log, "", "blob %.12s was damaged on this machine's disk", request->checkpoint);
    pthread_mutex_lock(&server->mutex);
    blobs_delete(server->blobs, request->checkpoint, NULL);
    pthread_mutex_unlock(&server->mutex);
    return false;
}

/* Bytes of the blob we hold after this request; -1 err. The promise is made before the file gets its name,
 * for a deletion of the same blob may come in between. */
static int64_t put_bytes(struct blob_server *server, uint64_t owner, const struct message *request,
                         struct error *err)
{
    pthread_mutex_lock(&server->mutex);
    int failed = promises_make(&server->promises, request->checkpoint, owner, clock_now().monotonic_ns);
    bool has = blobs_has(server->blobs, request->checkpoint);
    pthread_mutex_unlock(&server->mutex);
    if (failed) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    if (has && has_whole(server, request)) {
        return request->size;
    }
    if (request->byte_count == 0 && request->size > 0) {
        return 0; /* only asks whether it is there */
    }
    int result = blobs_write(server->blobs, owner, request->checkpoint, request->offset, request->bytes,
                             (int64_t)request->byte_count, request->size, err);
    return result < 0 ? -1 : request->offset + (int64_t)request->byte_count;
}

static void put(struct blob_server *server, struct endpoint *endpoint, uint64_t owner,
                const struct peer *peer, const struct message *request)
{
    struct error err = {0};
    struct message stored;
    message_init(&stored, MESSAGE_STORED);
    int64_t offset = put_bytes(server, owner, request, &err);
    if (offset < 0) {
        refuse(server, endpoint, peer, error_code(&err), request->checkpoint, &err);
        return;
    }
    stored.checkpoint = request->checkpoint;
    stored.offset = offset;
    stored.size = request->size;
    endpoint_send(endpoint, peer, &stored, NULL);
}

static void handle(struct blob_server *server, size_t index, const struct peer *peer,
                   const struct message *request)
{
    struct endpoint *endpoint = server->endpoints[index];
    struct error err = {0};
    if (request->type == MESSAGE_FETCH) {
        fetch(server, endpoint, peer, request);
    } else if (request->type == MESSAGE_PUT) {
        put(server, endpoint, peers_number(&server->peers, (uint8_t)index, peer, clock_now().monotonic_ns),
            peer, request);
    } else {
        error_set(&err, ERROR_PROTOCOL, "%s does not belong on the blob socket",
                  message_type_name(request->type));
        refuse(server, endpoint, peer, "malformed", NULL, &err);
    }
}

/* True when there may be more. */
static bool serve(struct blob_server *server, size_t index)
{
    for (int i = 0; i < BATCH; i++) {
        struct peer peer = {.size = 0};
        struct message request;
        struct error err = {0};
        int result = endpoint_receive(server->endpoints[index], &peer, &request, &err);
        if (result == 0) {
            return false;
        }
        if (result > 0) {
            handle(server, index, &peer, &request);
            message_release(&request);
        } else if (peer.size > 0) {
            refuse(server, server->endpoints[index], &peer, "malformed", NULL, &err);
        }
    }
    return true;
}

static void *thread_run(void *argument)
{
    struct blob_server *server = argument;
    bool readable[SOCKET_LIMIT], stop = false, more = false;
    while (!stop) {
        struct error err = {0};
        int result = bus_wait(server->endpoints, server->count, readable, &server->stop_pipe[0], 1, &stop,
                              more ? 0 : -1, &err);
        if (result < 0) {
            log_error(server->log, "", "blobs are no longer served: %s", err.message);
            return NULL;
        }
        more = false;
        for (size_t i = 0; i < server->count && !stop; i++) {
            more = serve(server, i) || more;
        }
    }
    return NULL;
}

/* ---- life ---- */

static struct endpoint *bind_tcp(struct bus *bus, const char *address, struct error *err)
{
    char beside[ADDRESS_LIMIT];
    const char *colon = strrchr(address, ':');
    long port = strtol(colon + 1, NULL, 10);
    /* The next port is easy to let through a firewall. */
    snprintf(beside, sizeof beside, "%.*s:%ld", (int)(colon - address), address, port + 1);
    struct endpoint *endpoint = port < 65535 ? endpoint_bind_blobs(bus, beside, NULL) : NULL;
    if (!endpoint) {
        snprintf(beside, sizeof beside, "%.*s:*", (int)(colon - address), address);
        endpoint = endpoint_bind_blobs(bus, beside, err);
    }
    return endpoint;
}

static struct endpoint *bind_beside(struct bus *bus, const char *address, struct error *err)
{
    if (strncmp(address, "tcp://", 6) == 0) {
        return bind_tcp(bus, address, err);
    }
    char beside[ADDRESS_LIMIT];
    snprintf(beside, sizeof beside, "%s-blobs", address);
    return endpoint_bind_blobs(bus, beside, err);
}

static int thread_start(struct blob_server *server, struct error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    int failed = pthread_create(&server->thread, NULL, thread_run, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        return error_set(err, ERROR_RESOURCE, "start the blob thread: %s", strerror(failed));
    }
    server->running = true;
    return 0;
}

struct blob_server *blob_server_create(struct bus *bus, const struct blobs *blobs,
                                       const char *const *addresses, size_t count, const struct log *log,
                                       struct error *err)
{
    struct blob_server *server = calloc(1, sizeof *server);
    if (!server) {
        error_set(err, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    server->blobs = blobs;
    server->log = log;
    server->stop_pipe[0] = server->stop_pipe[1] = -1;
    pthread_mutex_init(&server->mutex, NULL);
    peers_init(&server->peers, SILENCE_NS);
    server->buffer = malloc(BLOB_CHUNK);
    if (!server->buffer || pipe2(server->stop_pipe, O_CLOEXEC) != 0) {
        error_set(err, ERROR_RESOURCE, "start the blob thread: out of memory or descriptors");
        goto fail;
    }
    for (size_t i = 0; i < count && i < SOCKET_LIMIT; i++, server->count++) {
        server->endpoints[i] = bind_beside(bus, addresses[i], err);
        if (!server->endpoints[i]) {
            error_prefix(err, "blob socket");
            goto fail;
        }
    }
    if (thread_start(server, err)) {
        goto fail;
    }
    return server;
fail:
    blob_server_destroy(server);
    return NULL;
}

void blob_server_destroy(struct blob_server *server)
{
    if (!server) {
        return;
    }
    if (server->running) {
        while (write(server->stop_pipe[1], "x", 1) < 0 && errno == EINTR) {
        }
        pthread_join(server->thread, NULL);
    }
    for (size_t i = 0; i < server->count; i++) {
        endpoint_destroy(server->endpoints[i]);
    }
    for (int i = 0; i < 2; i++) {
        if (server->stop_pipe[i] >= 0) {
            close(server->stop_pipe[i]);
        }
    }
    peers_release(&server->peers);
    pthread_mutex_destroy(&server->mutex);
    promises_release(&server->promises);
    free(server->buffer);
    free(server);
}

int blob_server_describe(const struct blob_server *server, size_t index, struct message *welcome)
{
    const char *address = endpoint_address(server->endpoints[index]);
    if (strncmp(address, "tcp://", 6) == 0) {
        welcome->blob_port = strtol(strrchr(address, ':') + 1, NULL, 10);
        return 0;
    }
    free(welcome->blob_endpoint);
    welcome->blob_endpoint = strdup(address);
    return welcome->blob_endpoint ? 0 : -1;
}
