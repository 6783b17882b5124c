/* The server's life: sockets, store and engine come up in the order in which a failure leaves nothing behind,
 * and go down in reverse. */
#include "coordinator/server.h"

#include "base/text.h"
#include "coordinator/server_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SILENCE_NS (60 * NS_PER_SECOND) /* of a peer: twice the lease; workers speak every 2 s */

/* Each worker is two connections: the usual soft limit of 1024 would end at 500 workers. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int sockets_open(struct server *server, struct error *err)
{
    const char *const *binds = server->settings.binds;
    server->bus = bus_create(server->settings.security, server->log, err);
    if (!server->bus) {
        return -1;
    }
    for (size_t i = 0; binds && binds[i]; i++) {
        if (i == BIND_LIMIT) {
            return error_set(err, ERROR_USAGE, "at most %d addresses to bind", BIND_LIMIT);
        }
        server->endpoints[i] = endpoint_bind(server->bus, binds[i], err);
        if (!server->endpoints[i]) {
            return -1;
        }
        server->endpoint_count++;
    }
    return 0;
}

static int blob_server_open(struct server *server, struct error *err)
{
    const char *addresses[BIND_LIMIT];
    for (size_t i = 0; i < server->endpoint_count; i++) {
        addresses[i] = endpoint_address(server->endpoints[i]);
    }
    server->blob_server =
        blob_server_create(server->bus, &server->blobs, addresses, server->endpoint_count, server->log, err);
    return server->blob_server ? 0 : -1;
}

static int blobs_folder_open(struct server *server, struct error *err)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s.files/blobs", server->settings.db);
    char *folder = text_steal(&path);
    if (!folder) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    int result = blobs_open(&server->blobs, folder, err);
    free(folder);
    return result;
}

/* A port in use must not leave a database, nor a database in use a half-made sweep. */
static int server_open(struct server *server, struct error *err)
{
    if (pipe2(server->stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        return error_set(err, ERROR_RESOURCE, "start the server: %s", strerror(errno));
    }
    if (sockets_open(server, err)) {
        return -1;
    }
    server->store = store_open(server->settings.db, STORE_WRITE, server->settings.vfs, err);
    if (!server->store || blobs_folder_open(server, err) || blob_server_open(server, err)) {
        return -1;
    }
    if (server_sweep_open(server, err)) {
        return -1;
    }
    server->log_keeper = log_keeper_create(server->settings.db, server->sweep_id, server->log, err);
    return server->log_keeper ? 0 : -1;
}

struct server *server_create(const struct server_settings *settings, struct error *err)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        error_set(err, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    server->settings = *settings;
    server->own_log = settings->log ? *settings->log : (struct log){.fd = -1};
    server->log = &server->own_log;
    server->stop_pipe[0] = server->stop_pipe[1] = -1;
    peers_init(&server->peers, SILENCE_NS);
    raise_descriptor_limit();
    effects_init(&server->effects);
    if (server_open(server, err)) {
        server_destroy(server);
        return NULL;
    }
    return server;
}

void server_destroy(struct server *server)
{
    if (!server) {
        return;
    }
    blob_server_destroy(server->blob_server);
    log_keeper_destroy(server->log_keeper);
    engine_destroy(server->engine);
    store_close(server->reader);
    store_close(server->store);
    for (size_t i = 0; i < server->endpoint_count; i++) {
        endpoint_destroy(server->endpoints[i]);
    }
    bus_destroy(server->bus);
    blobs_close(&server->blobs);
    effects_release(&server->effects);
    compactor_release(&server->compactor);
    leftovers_release(&server->leftovers);
    peers_release(&server->peers);
    json_decref(server->train);
    json_decref(server->data_hashes);
    json_decref(server->kept_before);
    for (int i = 0; i < 2; i++) {
        if (server->stop_pipe[i] >= 0) {
            close(server->stop_pipe[i]);
        }
    }
    free(server);
}

const char *server_address(const struct server *server, size_t index)
{
    return index < server->endpoint_count ? endpoint_address(server->endpoints[index]) : NULL;
}

uint64_t server_seed(const struct server *server)
{
    return server->engine_settings.seed;
}

const char *server_sweep_id(const struct server *server)
{
    return server->sweep_id;
}

/* Only an atomic store and write(2): may run in a signal handler. A full pipe has woken the loop already. */
void server_request_stop(struct server *server, int level)
{
    int reason = errno;
    atomic_store(&server->stop_level, level);
    ssize_t written = write(server->stop_pipe[1], "x", 1);
    (void)written;
    errno = reason;
}

void server_own_worker_gone(struct server *server)
{
    server->own_worker_gone = true;
}

bool server_has_ranked_trial(const struct server *server)
{
    struct engine_counts counts;
    engine_counts(server->engine, &counts);
    return counts.ranked > 0;
}

int64_t server_turns(const struct server *server)
{
    return server->turns;
}
