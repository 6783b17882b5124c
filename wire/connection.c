/* Connections: what the monitors of endpoints saw, refusals, and waiting. */
#include "wire/endpoint.h"

#include "base/clock.h"
#include "wire/bus.h"
#include "wire/raw_socket.h"

#include <errno.h>

#define WAIT_LIMIT 32
/* A server that hangs up in the middle of a handshake may be dying, or cannot read what we say for want of
 * the right key. After so many times in a row it is the latter. */
#define BROKEN_HANDSHAKES_ARE_REFUSAL 3
/* ZeroMQ gives up for good once a server said no. It may not be the server we look for, or not for long. */
#define REDIAL_NS (2 * NS_PER_SECOND)
#define FAILURES_LOGGED_EVERY (60 * NS_PER_SECOND)

static void server_event(struct endpoint *endpoint, enum raw_event event)
{
    if (event != RAW_EVENT_HANDSHAKE_BROKEN && event != RAW_EVENT_HANDSHAKE_PROTOCOL) {
        return; /* the guard tells of strangers, with their key */
    }
    int64_t now = clock_now().monotonic_ns;
    if (endpoint->logged_ns != 0 && now - endpoint->logged_ns < FAILURES_LOGGED_EVERY) {
        return;
    }
    endpoint->logged_ns = now;
    log_warning(bus_log(endpoint->bus), "", "refused a connection to %s: %s", endpoint->address,
                event == RAW_EVENT_HANDSHAKE_BROKEN
                    ? "the peer hung up during the handshake"
                    : "the peer does not use this coordinator's public key (or no encryption)");
}

static void client_event(struct endpoint *endpoint, enum raw_event event)
{
    switch (event) {
    case RAW_EVENT_HANDSHAKE_DONE:
        endpoint->state = CONNECTION_UP;
        endpoint->broken_handshakes = 0;
        break;
    case RAW_EVENT_HANDSHAKE_PROTOCOL:
    case RAW_EVENT_HANDSHAKE_DENIED:
        endpoint->state = CONNECTION_REFUSED;
        endpoint->redial_ns = clock_now().monotonic_ns + REDIAL_NS;
        break;
    case RAW_EVENT_HANDSHAKE_BROKEN:
        if (++endpoint->broken_handshakes >= BROKEN_HANDSHAKES_ARE_REFUSAL) {
            endpoint->state = CONNECTION_REFUSED;
        }
        break;
    case RAW_EVENT_DISCONNECTED:
        if (endpoint->state == CONNECTION_UP) {
            endpoint->state = CONNECTION_DOWN;
        }
        break;
    case RAW_EVENT_NONE:
        break;
    }
}

static void redial_when_due(struct endpoint *endpoint)
{
    if (endpoint->redial_ns == 0 || clock_now().monotonic_ns < endpoint->redial_ns) {
        return;
    }
    raw_socket_disconnect(endpoint->socket, endpoint->address);
    raw_socket_connect(endpoint->socket, endpoint->address);
    endpoint->redial_ns = 0;
}

enum connection_state endpoint_state(struct endpoint *endpoint)
{
    enum raw_event event;
    redial_when_due(endpoint);
    while ((event = raw_monitor_next(endpoint->monitor)) != RAW_EVENT_NONE) {
        if (endpoint->router) {
            server_event(endpoint, event);
        } else {
            client_event(endpoint, event);
        }
    }
    return endpoint->state;
}

/* Monitors are waited for too: a refused connection wakes its owner, who then asks for the state. */
int bus_wait(struct endpoint *const *endpoints, size_t count, bool *readable, const int *extra_fds,
             size_t extra_count, bool *extra_readable, int timeout_ms, struct error *err)
{
    struct raw_poll items[WAIT_LIMIT];
    if (2 * count + extra_count > WAIT_LIMIT) {
        return error_set(err, ERROR_INTERNAL, "waits for %zu sockets; at most %d", 2 * count + extra_count,
                         WAIT_LIMIT);
    }
    for (size_t i = 0; i < count; i++) {
        redial_when_due(endpoints[i]);
        items[i] = (struct raw_poll){.socket = endpoints[i]->socket};
        items[count + extra_count + i] = (struct raw_poll){.socket = endpoints[i]->monitor};
    }
    for (size_t i = 0; i < extra_count; i++) {
        items[count + i] = (struct raw_poll){.fd = extra_fds[i]};
    }
    if (raw_poll(items, 2 * count + extra_count, timeout_ms) < 0 && errno != EINTR) {
        return error_set(err, ERROR_RESOURCE, "wait for messages: %s", raw_error_text(errno));
    }
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        readable[i] = items[i].readable;
        ready += items[i].readable;
        if (items[count + extra_count + i].readable) {
            endpoint_state(endpoints[i]);
        }
    }
    for (size_t i = 0; i < extra_count; i++) {
        extra_readable[i] = items[count + i].readable;
        ready += items[count + i].readable;
    }
    return ready;
}
