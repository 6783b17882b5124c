/* ZeroMQ's calls in the few shapes that wire/ needs, implemented by socket.c, so that nothing else includes
 * zmq.h. Internal to wire/. Contexts and sockets are ZeroMQ's own handles. Failures set errno as ZeroMQ does.
 */
#ifndef RUNG_WIRE_RAW_SOCKET_H
#define RUNG_WIRE_RAW_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One received frame; raw_frame_close it. */
struct raw_frame {
    _Alignas(8) unsigned char storage[64];
};
const void *raw_frame_data(const struct raw_frame *frame);
size_t raw_frame_size(const struct raw_frame *frame);
void raw_frame_close(struct raw_frame *frame);

/* One frame to send; copied. */
struct raw_part {
    const void *data;
    size_t size;
};

enum raw_kind { RAW_ROUTER, RAW_BLOB_ROUTER, RAW_DEALER, RAW_ZAP, RAW_MONITOR };

/* What a monitor saw, in our words. */
enum raw_event {
    RAW_EVENT_NONE,
    RAW_EVENT_HANDSHAKE_DONE,
    RAW_EVENT_HANDSHAKE_BROKEN,   /* the peer hung up during the handshake */
    RAW_EVENT_HANDSHAKE_PROTOCOL, /* the peer speaks another security mechanism, or no ZeroMQ */
    RAW_EVENT_HANDSHAKE_DENIED,   /* the peer's key is not authorized */
    RAW_EVENT_DISCONNECTED,
};

void *raw_context_create(void);
/* Makes every blocked call on the context's sockets fail, so that threads can end. */
void raw_context_shutdown(void *context);
void raw_context_destroy(void *context); /* waits for lingering sockets */

/* A socket with the options every socket of its kind has. NULL on failure. */
void *raw_socket_create(void *context, enum raw_kind kind);
void raw_socket_close(void *socket);
/* CURVE; secret keys as Z85. */
int raw_socket_serve_curve(void *socket, const char *secret_key);
int raw_socket_use_curve(void *socket, const char *public_key, const char *secret_key,
                         const char *server_key);
void raw_socket_allow_ipv6(void *socket);
int raw_socket_bind(void *socket, const char *address);
int raw_socket_connect(void *socket, const char *address);
void raw_socket_disconnect(void *socket, const char *address);    /* drops what was not sent */
int raw_socket_address(void *socket, char *address, size_t size); /* with the real port */
int raw_socket_fd(void *socket);
const char *raw_error_text(int code);

/* Receives all frames of one message; keeps the first `limit` (close those), drops the others. Returns how
 * many it had, 0: none there (only without `wait`), -1. */
int raw_receive(void *socket, struct raw_frame *frames, size_t limit, bool wait);
/* Sends all or nothing, without waiting. */
int raw_send(void *socket, const struct raw_part *parts, size_t count);

/* A socket that tells what happens to `socket`'s connections; NULL on failure. Close it before `socket`. */
void *raw_monitor_open(void *context, void *socket, const char *name);
void raw_monitor_close(void *monitor, void *socket);
enum raw_event raw_monitor_next(void *monitor); /* RAW_EVENT_NONE: nothing new */

struct raw_poll {
    void *socket; /* NULL: fd */
    int fd;
    bool readable; /* out */
};
int raw_poll(struct raw_poll *items, size_t count, int timeout_ms);

#endif
