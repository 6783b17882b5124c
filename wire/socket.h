/* Sockets: ZeroMQ with CURVE, messages in, messages out. socket.c is the only file that includes zmq.h.
 *
 * A `struct bus` is a ZeroMQ context with its security. A `struct endpoint` is one ROUTER (server) or DEALER
 * (client) socket. An endpoint belongs to one thread at a time. Peers of a ROUTER are named by their routing
 * id, copied into a `struct peer` (value type). */
#ifndef RUNG_WIRE_SOCKET_H
#define RUNG_WIRE_SOCKET_H

#include "base/error.h"
#include "base/log.h"
#include "wire/message.h"
#include "wire/security.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer {
    uint8_t id[16]; /* zero-padded */
    uint8_t size;
};
bool peer_equal(const struct peer *a, const struct peer *b);

struct bus;
/* `security` is copied; NULL = none (--insecure, or ipc only). With a security that has an allow-list a ZAP
 * thread of the bus answers for every server endpoint; refusals are logged and counted. */
struct bus *bus_create(const struct security *security, const struct log *log, struct error *err);
/* Closes what is left; endpoints must have been destroyed first. */
void bus_destroy(struct bus *bus);

struct endpoint;
/* Binds "tcp://host:port" (port * or 0 = any) or "ipc://path". secure: CURVE server (tcp); ipc is never
 * CURVE, its folder must be 0700. Errors: ERROR_RESOURCE for a port in use (the text names it and the
 * remedy), ERROR_USAGE for a malformed address. */
struct endpoint *endpoint_bind(struct bus *bus, const char *address, struct error *err);
/* The same for blobs: messages are few and large, so that fewer are queued for a peer that does not read. */
struct endpoint *endpoint_bind_blobs(struct bus *bus, const char *address, struct error *err);
/* Connects a DEALER. For CURVE `server_key` (40 Z85 characters) is the server's public key, or NULL for
 * ipc/insecure. */
struct endpoint *endpoint_connect(struct bus *bus, const char *address, const char *server_key,
                                  struct error *err);
void endpoint_destroy(struct endpoint *endpoint); /* NULL-safe; pending sends get 1 s */
/* The bound address with the real port; borrowed. */
const char *endpoint_address(const struct endpoint *endpoint);
/* File descriptor for poll(); edge-triggered as ZMQ_FD: after any call drain with endpoint_receive until it
 * returns 0. */
int endpoint_fd(const struct endpoint *endpoint);

/* Receives one message without waiting. 1: got one (release it); 0: none; -1: a malformed one was dropped
 * (err says why; `peer` is set, so that the server can answer MESSAGE_ERROR). peer may be NULL on a DEALER.
 */
int endpoint_receive(struct endpoint *endpoint, struct peer *peer, struct message *message,
                     struct error *err);
/* Sends; `peer` NULL on a DEALER. 0: taken; -1: err (ERROR_CONNECT: the peer is gone or its queue is full).
 */
int endpoint_send(struct endpoint *endpoint, const struct peer *peer, const struct message *message,
                  struct error *err);

/* Waits until one of the endpoints or of the extra descriptors is readable, or timeout_ms passed (-1 for
 * ever). Sets readable[i] for endpoints and extra_readable[j] for descriptors. Returns the number ready, 0 on
 * time-out or EINTR, -1 on error. */
int bus_wait(struct endpoint *const *endpoints, size_t count, bool *readable, const int *extra_fds,
             size_t extra_count, bool *extra_readable, int timeout_ms, struct error *err);

enum connection_state { CONNECTION_NONE, CONNECTION_UP, CONNECTION_DOWN, CONNECTION_REFUSED };
/* State of a DEALER's connection as its monitor saw it last (REFUSED: CURVE or ZAP said no; it is tried again
 * every 2 s while its owner calls this or bus_wait, and sends fail meanwhile). */
enum connection_state endpoint_state(struct endpoint *endpoint);

#endif
