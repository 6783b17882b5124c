/* ZeroMQ's calls, and the options of our sockets. The only file that includes zmq.h. */
#include "wire/raw_socket.h"

#include "wire/message_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

/* Messages a server may be behind before a client's send fails (and says so). */
#define CLIENT_QUEUE 100000
/* The same for each peer of a server, and what a server keeps of a peer that is faster than itself: beyond
 * that the peer waits. A worker of 1,024 slots gets as many assignments at once. Together with FRAME_TAKEN
 * they bound the memory that one peer can cost. */
#define PEER_SEND_QUEUE 2048
#define PEER_RECEIVE_QUEUE 128
#define PEER_BLOB_QUEUE 8 /* chunks of 1 MiB; a peer asks for at most 4 at a time */
/* Bytes of a frame that a server takes; a client takes MESSAGE_FRAME_LIMIT. The bound is looked at before the
 * encryption's own bytes are taken off. */
#define FRAME_TAKEN (MESSAGE_BYTES_LIMIT + 1024)
#define LINGER_MS 1000
/* A refused or absent server is tried again after 100 ms, then ever later, up to this. */
#define RECONNECT_FIRST_MS 100
#define RECONNECT_FIRST_IPC_MS 4 /* on one machine to knock costs next to nothing */
#define RECONNECT_LAST_MS 2000
#define CONNECT_TIMEOUT_MS 5000
/* What was sent and is not confirmed for this long ends the connection; the client makes it anew. Workers
 * speak every 2 s, so a network that is gone is noticed. ZeroMQ's own heartbeats are no way to know: libzmq
 * 4.3 aborts the process (stream_engine_base.cpp: !_io_error) when one is due on a connection that was lost
 * while its receive queue was full. */
#define UNCONFIRMED_MS 20000
/* More connections than the 1,023 of ZeroMQ's default. */
#define SOCKET_LIMIT 8192
#define POLL_LIMIT 64

_Static_assert(sizeof(zmq_msg_t) <= sizeof(struct raw_frame), "a raw_frame holds a zmq_msg_t");

static zmq_msg_t *frame_message(const struct raw_frame *frame)
{
    return (zmq_msg_t *)(void *)frame->storage;
}

const void *raw_frame_data(const struct raw_frame *frame)
{
    return zmq_msg_data(frame_message(frame));
}

size_t raw_frame_size(const struct raw_frame *frame)
{
    return zmq_msg_size(frame_message(frame));
}

void raw_frame_close(struct raw_frame *frame)
{
    zmq_msg_close(frame_message(frame));
}

void *raw_context_create(void)
{
    void *context = zmq_ctx_new();
    if (context) {
        zmq_ctx_set(context, ZMQ_MAX_SOCKETS, SOCKET_LIMIT);
    }
    return context;
}

void raw_context_shutdown(void *context)
{
    zmq_ctx_shutdown(context);
}

void raw_context_destroy(void *context)
{
    while (zmq_ctx_term(context) != 0 && errno == EINTR) {
    }
}

static bool option_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool limits_set(void *socket, enum raw_kind kind)
{
    static const struct {
        int send, receive;
        int64_t frame;
    } limits[] = {
        [RAW_ROUTER] = {PEER_SEND_QUEUE, PEER_RECEIVE_QUEUE, FRAME_TAKEN},
        [RAW_BLOB_ROUTER] = {PEER_BLOB_QUEUE, PEER_BLOB_QUEUE, FRAME_TAKEN},
        [RAW_DEALER] = {CLIENT_QUEUE, CLIENT_QUEUE, MESSAGE_FRAME_LIMIT},
    };
    return option_set(socket, ZMQ_SNDHWM, limits[kind].send) &&
           option_set(socket, ZMQ_RCVHWM, limits[kind].receive) &&
           zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &limits[kind].frame, sizeof limits[kind].frame) == 0;
}

static bool options_set(void *socket, enum raw_kind kind)
{
    static const struct {
        int option, value;
    } common[] = {
        {ZMQ_LINGER, LINGER_MS},
        {ZMQ_RECONNECT_IVL, RECONNECT_FIRST_MS},
        {ZMQ_RECONNECT_IVL_MAX, RECONNECT_LAST_MS},
        {ZMQ_CONNECT_TIMEOUT, CONNECT_TIMEOUT_MS},
        {ZMQ_TCP_MAXRT, UNCONFIRMED_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, 30},
        {ZMQ_TCP_KEEPALIVE_INTVL, 10},
        {ZMQ_TCP_KEEPALIVE_CNT, 3},
    };
    if (kind == RAW_ZAP || kind == RAW_MONITOR) {
        return option_set(socket, ZMQ_LINGER, 0);
    }
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        if (!option_set(socket, common[i].option, common[i].value)) {
            return false;
        }
    }
    /* Without it a ROUTER drops what it cannot deliver, and says nothing. */
    return limits_set(socket, kind) && (kind == RAW_DEALER || option_set(socket, ZMQ_ROUTER_MANDATORY, 1));
}

void *raw_socket_create(void *context, enum raw_kind kind)
{
    static const int types[] = {[RAW_ROUTER] = ZMQ_ROUTER,
                                [RAW_BLOB_ROUTER] = ZMQ_ROUTER,
                                [RAW_DEALER] = ZMQ_DEALER,
                                [RAW_ZAP] = ZMQ_REP,
                                [RAW_MONITOR] = ZMQ_PAIR};
    void *socket = zmq_socket(context, types[kind]);
    if (socket && !options_set(socket, kind)) {
        raw_socket_close(socket);
        return NULL;
    }
    return socket;
}

void raw_socket_close(void *socket)
{
    zmq_close(socket);
}

int raw_socket_serve_curve(void *socket, const char *secret_key)
{
    static const char domain[] = "rung";
    if (!option_set(socket, ZMQ_CURVE_SERVER, 1) ||
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key, strlen(secret_key) + 1) != 0) {
        return -1;
    }
    return zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, domain, sizeof domain - 1);
}

int raw_socket_use_curve(void *socket, const char *public_key, const char *secret_key, const char *server_key)
{
    if (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, strlen(server_key) + 1) != 0 ||
        zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_key, strlen(public_key) + 1) != 0) {
        return -1;
    }
    return zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key, strlen(secret_key) + 1);
}

void raw_socket_allow_ipv6(void *socket)
{
    option_set(socket, ZMQ_IPV6, 1);
}

int raw_socket_bind(void *socket, const char *address)
{
    return zmq_bind(socket, address);
}

int raw_socket_connect(void *socket, const char *address)
{
    if (strncmp(address, "ipc://", 6) == 0 &&
        !option_set(socket, ZMQ_RECONNECT_IVL, RECONNECT_FIRST_IPC_MS)) {
        return -1;
    }
    return zmq_connect(socket, address);
}

void raw_socket_disconnect(void *socket, const char *address)
{
    zmq_disconnect(socket, address);
}

int raw_socket_address(void *socket, char *address, size_t size)
{
    return zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, address, &size);
}

int raw_socket_fd(void *socket)
{
    int fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

const char *raw_error_text(int code)
{
    return zmq_strerror(code);
}

static int frame_receive(void *socket, struct raw_frame *frame, bool wait)
{
    zmq_msg_init(frame_message(frame));
    int result;
    do {
        result = zmq_msg_recv(frame_message(frame), socket, wait ? 0 : ZMQ_DONTWAIT);
    } while (result < 0 && errno == EINTR);
    if (result < 0) {
        int reason = errno;
        raw_frame_close(frame);
        errno = reason;
    }
    return result;
}

int raw_receive(void *socket, struct raw_frame *frames, size_t limit, bool wait)
{
    size_t count = 0;
    bool more = true;
    while (more) {
        struct raw_frame extra;
        struct raw_frame *frame = count < limit ? &frames[count] : &extra;
        if (frame_receive(socket, frame, wait) < 0) {
            int reason = errno;
            for (size_t i = 0; i < count && i < limit; i++) {
                raw_frame_close(&frames[i]);
            }
            errno = reason;
            return reason == EAGAIN ? 0 : -1;
        }
        more = zmq_msg_more(frame_message(frame)) != 0;
        if (count >= limit) {
            raw_frame_close(&extra);
        }
        count++;
    }
    return (int)count;
}

int raw_send(void *socket, const struct raw_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < count ? ZMQ_SNDMORE : 0);
        int result;
        do {
            result = zmq_send(socket, parts[i].data, parts[i].size, flags);
        } while (result < 0 && errno == EINTR);
        if (result < 0) {
            return -1;
        }
    }
    return 0;
}

void *raw_monitor_open(void *context, void *socket, const char *name)
{
    int events = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                 ZMQ_EVENT_DISCONNECTED;
    if (zmq_socket_monitor(socket, name, events) != 0) {
        return NULL;
    }
    void *monitor = raw_socket_create(context, RAW_MONITOR);
    if (monitor && zmq_connect(monitor, name) != 0) {
        raw_socket_close(monitor);
        monitor = NULL;
    }
    return monitor;
}

void raw_monitor_close(void *monitor, void *socket)
{
    zmq_socket_monitor(socket, NULL, 0);
    raw_socket_close(monitor);
}

static enum raw_event event_translate(uint16_t event)
{
    switch (event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        return RAW_EVENT_HANDSHAKE_DONE;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        return RAW_EVENT_HANDSHAKE_BROKEN;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        return RAW_EVENT_HANDSHAKE_PROTOCOL;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        return RAW_EVENT_HANDSHAKE_DENIED;
    case ZMQ_EVENT_DISCONNECTED:
        return RAW_EVENT_DISCONNECTED;
    default:
        return RAW_EVENT_NONE;
    }
}

enum raw_event raw_monitor_next(void *monitor)
{
    struct raw_frame frames[2];
    int count;
    while ((count = raw_receive(monitor, frames, 2, false)) > 0) {
        uint16_t number = 0;
        if (raw_frame_size(&frames[0]) >= sizeof number) {
            memcpy(&number, raw_frame_data(&frames[0]), sizeof number);
        }
        for (int i = 0; i < count && i < 2; i++) {
            raw_frame_close(&frames[i]);
        }
        enum raw_event event = event_translate(number);
        if (event != RAW_EVENT_NONE) {
            return event;
        }
    }
    return RAW_EVENT_NONE;
}

int raw_poll(struct raw_poll *items, size_t count, int timeout_ms)
{
    zmq_pollitem_t polled[POLL_LIMIT];
    if (count > POLL_LIMIT) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        polled[i] = (zmq_pollitem_t){.socket = items[i].socket, .fd = items[i].fd, .events = ZMQ_POLLIN};
    }
    int ready = zmq_poll(polled, (int)count, timeout_ms);
    for (size_t i = 0; i < count; i++) {
        items[i].readable = ready > 0 && (polled[i].revents & (ZMQ_POLLIN | ZMQ_POLLERR)) != 0;
    }
    return ready;
}
