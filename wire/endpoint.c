/* Endpoints: one ROUTER or DEALER each, bound or connected, messages in and out. */
#include "wire/endpoint.h"

#include "base/files.h"
#include "wire/address.h"
#include "wire/bus.h"
#include "wire/raw_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of a message: the peer's routing id (ROUTER), JSON, bytes. */
#define FRAME_LIMIT 3

bool peer_equal(const struct peer *a, const struct peer *b)
{
    return a->size == b->size && memcmp(a->id, b->id, sizeof a->id) == 0;
}

static bool is_tcp(const char *address)
{
    return strncmp(address, "tcp://", 6) == 0;
}

static bool is_ipc(const char *address)
{
    return strncmp(address, "ipc://", 6) == 0;
}

/* ipc has no keys: who may enter the folder may talk. */
static int ipc_folder_check(const char *address, struct error *err)
{
    struct stat status;
    char *folder = path_folder(address + strlen("ipc://"));
    int result = 0;
    if (!folder) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    if (stat(folder, &status) != 0) {
        result = error_set(err, ERROR_RESOURCE, "%s: %s", folder, strerror(errno));
    } else if (status.st_mode & 077) {
        result = error_set(err, ERROR_USAGE,
                           "%s: others may enter it, and so talk to this socket; run: chmod 700 %s", folder,
                           folder);
    }
    free(folder);
    return result;
}

static struct endpoint *endpoint_create(struct bus *bus, enum raw_kind kind, struct error *err)
{
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint) {
        error_set(err, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    endpoint->bus = bus;
    endpoint->router = kind != RAW_DEALER;
    endpoint->socket = raw_socket_create(bus_context(bus), kind);
    char name[64];
    snprintf(name, sizeof name, "inproc://monitor-%u", bus_next_number(bus));
    if (endpoint->socket) {
        endpoint->monitor = raw_monitor_open(bus_context(bus), endpoint->socket, name);
    }
    if (!endpoint->monitor) {
        error_set(err, ERROR_RESOURCE, "open a socket: %s", raw_error_text(errno));
        endpoint_destroy(endpoint);
        return NULL;
    }
    return endpoint;
}

void endpoint_destroy(struct endpoint *endpoint)
{
    if (!endpoint) {
        return;
    }
    if (endpoint->monitor) {
        raw_monitor_close(endpoint->monitor, endpoint->socket);
    }
    if (endpoint->socket) {
        raw_socket_close(endpoint->socket);
    }
    free(endpoint);
}

static int bind_error(const char *address, int reason, struct error *err)
{
    if (reason == EADDRINUSE) {
        return error_set(
            err, ERROR_RESOURCE,
            "%s is in use by another program; choose another with --bind (port 0 takes a free one)", address);
    }
    if (reason == EINVAL || reason == ENODEV || reason == EPROTONOSUPPORT) {
        return error_set(err, ERROR_USAGE, "cannot bind \"%s\": %s (expected tcp://HOST:PORT or ipc://PATH)",
                         address, reason == ENODEV ? "no such interface" : raw_error_text(reason));
    }
    return error_set(err, ERROR_RESOURCE, "cannot bind %s: %s", address, raw_error_text(reason));
}

static int endpoint_secure(struct endpoint *endpoint, const char *address, struct error *err)
{
    const struct security *security = bus_security(endpoint->bus);
    if (!security || !is_tcp(address)) {
        return 0;
    }
    if (bus_guard(endpoint->bus, err)) {
        return -1;
    }
    if (raw_socket_serve_curve(endpoint->socket, security->own.secret_key) != 0) {
        return error_set(err, ERROR_RESOURCE, "use the key: %s", raw_error_text(errno));
    }
    return 0;
}

static struct endpoint *bind_router(struct bus *bus, enum raw_kind kind, const char *address,
                                    struct error *err)
{
    if (address_check_bind(address, err) || (is_ipc(address) && ipc_folder_check(address, err))) {
        return NULL;
    }
    struct endpoint *endpoint = endpoint_create(bus, kind, err);
    if (!endpoint) {
        return NULL;
    }
    if (strchr(address, '[')) {
        raw_socket_allow_ipv6(endpoint->socket);
    }
    if (endpoint_secure(endpoint, address, err)) {
        endpoint_destroy(endpoint);
        return NULL;
    }
    if (raw_socket_bind(endpoint->socket, address) != 0 ||
        raw_socket_address(endpoint->socket, endpoint->address, sizeof endpoint->address) != 0) {
        bind_error(address, errno, err);
        endpoint_destroy(endpoint);
        return NULL;
    }
    return endpoint;
}

struct endpoint *endpoint_bind(struct bus *bus, const char *address, struct error *err)
{
    return bind_router(bus, RAW_ROUTER, address, err);
}

struct endpoint *endpoint_bind_blobs(struct bus *bus, const char *address, struct error *err)
{
    return bind_router(bus, RAW_BLOB_ROUTER, address, err);
}

struct endpoint *endpoint_connect(struct bus *bus, const char *address, const char *server_key,
                                  struct error *err)
{
    const struct security *security = bus_security(bus);
    if (address_check_connect(address, err)) {
        return NULL;
    }
    if (server_key && !security) {
        error_set(err, ERROR_USAGE, "a server's key needs a key of our own");
        return NULL;
    }
    struct endpoint *endpoint = endpoint_create(bus, RAW_DEALER, err);
    if (!endpoint) {
        return NULL;
    }
    if (strchr(address, '[')) {
        raw_socket_allow_ipv6(endpoint->socket);
    }
    if (server_key && is_tcp(address) &&
        raw_socket_use_curve(endpoint->socket, security->own.public_key, security->own.secret_key,
                             server_key) != 0) {
        error_set(err, ERROR_USAGE, "use the keys: %s", raw_error_text(errno));
        endpoint_destroy(endpoint);
        return NULL;
    }
    if (raw_socket_connect(endpoint->socket, address) != 0) {
        error_set(err, ERROR_USAGE, "cannot connect to \"%s\": %s (expected tcp://HOST:PORT or ipc://PATH)",
                  address, raw_error_text(errno));
        endpoint_destroy(endpoint);
        return NULL;
    }
    snprintf(endpoint->address, sizeof endpoint->address, "%s", address);
    return endpoint;
}

const char *endpoint_address(const struct endpoint *endpoint)
{
    return endpoint->address;
}

int endpoint_fd(const struct endpoint *endpoint)
{
    return raw_socket_fd(endpoint->socket);
}

/* ---- messages ---- */

static int frames_decode(const struct endpoint *endpoint, struct raw_frame *frames, int count,
                         struct peer *peer, struct message *message, struct error *err)
{
    int first = endpoint->router ? 1 : 0;
    if (endpoint->router && peer) {
        size_t size = raw_frame_size(&frames[0]);
        memset(peer, 0, sizeof *peer);
        if (size > sizeof peer->id) {
            return error_set(err, ERROR_PROTOCOL, "a routing id of %zu bytes; let ZeroMQ choose it", size);
        }
        memcpy(peer->id, raw_frame_data(&frames[0]), size);
        peer->size = (uint8_t)size;
    }
    if (count < first + 1 || count > first + 2) {
        return error_set(err, ERROR_PROTOCOL, "a message of %d frames; expected one or two", count - first);
    }
    const struct raw_frame *json = &frames[first], *bytes = count == first + 2 ? &frames[first + 1] : NULL;
    return message_decode(message, raw_frame_data(json), raw_frame_size(json),
                          bytes ? raw_frame_data(bytes) : NULL, bytes ? raw_frame_size(bytes) : 0, err);
}

int endpoint_receive(struct endpoint *endpoint, struct peer *peer, struct message *message, struct error *err)
{
    struct raw_frame frames[FRAME_LIMIT];
    memset(message, 0, sizeof *message);
    int count = raw_receive(endpoint->socket, frames, FRAME_LIMIT, false);
    if (count <= 0) {
        return 0; /* a closing context has nothing more to say either */
    }
    int result = frames_decode(endpoint, frames, count, peer, message, err);
    for (int i = 0; i < count && i < FRAME_LIMIT; i++) {
        raw_frame_close(&frames[i]);
    }
    return result == 0 ? 1 : -1;
}

int endpoint_send(struct endpoint *endpoint, const struct peer *peer, const struct message *message,
                  struct error *err)
{
    size_t size;
    char *json = message_encode(message, &size, err);
    if (!json) {
        return -1;
    }
    struct raw_part parts[FRAME_LIMIT];
    size_t count = 0;
    if (endpoint->router) {
        parts[count++] = (struct raw_part){peer->id, peer->size};
    }
    parts[count++] = (struct raw_part){json, size};
    if (message->byte_count > 0) {
        parts[count++] = (struct raw_part){message->bytes, message->byte_count};
    }
    int result = raw_send(endpoint->socket, parts, count);
    int reason = errno;
    free(json);
    if (result) {
        return error_set(err, ERROR_CONNECT, "send %s: %s", message_type_name(message->type),
                         reason == EAGAIN ? "the peer's queue is full" : raw_error_text(reason));
    }
    return 0;
}
