/* Sockets: messages over ipc and tcp, with CURVE and without; who is refused, and how soon the client knows.
 */
#include "base/clock.h"
#include "base/files.h"
#include "wire/raw_socket.h"
#include "wire/socket.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define PATIENCE_NS (10 * NS_PER_SECOND)

struct fixture {
    char folder[64];
    struct security server_security, client_security;
    struct log log;
    int log_pipe[2];
    struct bus *server_bus, *client_bus;
    struct endpoint *server, *client;
};

static int fixture_create(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct error err = {0};
    strcpy(fixture->folder, "/tmp/rung-socket-XXXXXX");
    if (!mkdtemp(fixture->folder) || pipe(fixture->log_pipe) ||
        security_for_coordinator(&fixture->server_security, fixture->folder, &err) ||
        security_for_client(&fixture->client_security, fixture->folder, NULL, &err)) {
        return -1;
    }
    fixture->log = (struct log){.fd = fixture->log_pipe[1], .level = LOG_LEVEL_INFO};
    *state = fixture;
    return 0;
}

static int fixture_destroy(void **state)
{
    struct fixture *fixture = *state;
    endpoint_destroy(fixture->client);
    endpoint_destroy(fixture->server);
    bus_destroy(fixture->client_bus);
    bus_destroy(fixture->server_bus);
    security_release(&fixture->server_security);
    security_release(&fixture->client_security);
    close(fixture->log_pipe[0]);
    close(fixture->log_pipe[1]);
    folder_remove(fixture->folder, NULL);
    free(fixture);
    return 0;
}

static void serve(struct fixture *fixture, const struct security *security, const char *address)
{
    struct error err = {0};
    fixture->server_bus = bus_create(security, &fixture->log, &err);
    assert_non_null(fixture->server_bus);
    fixture->server = endpoint_bind(fixture->server_bus, address, &err);
    if (!fixture->server) {
        fail_msg("%s", err.message);
    }
}

static void join(struct fixture *fixture, const struct security *security, const char *server_key)
{
    struct error err = {0};
    fixture->client_bus = bus_create(security, NULL, &err);
    assert_non_null(fixture->client_bus);
    fixture->client =
        endpoint_connect(fixture->client_bus, endpoint_address(fixture->server), server_key, &err);
    if (!fixture->client) {
        fail_msg("%s", err.message);
    }
}

static void wait_readable(struct endpoint *endpoint, int timeout_ms)
{
    bool readable;
    struct error err = {0};
    assert_true(bus_wait(&endpoint, 1, &readable, NULL, 0, NULL, timeout_ms, &err) >= 0);
}

static void receive(struct endpoint *endpoint, struct peer *peer, struct message *message)
{
    struct error err = {0};
    int64_t deadline = clock_now().monotonic_ns + PATIENCE_NS;
    int result;
    while ((result = endpoint_receive(endpoint, peer, message, &err)) == 0) {
        assert_true(clock_now().monotonic_ns < deadline);
        wait_readable(endpoint, 100);
    }
    if (result < 0) {
        fail_msg("%s", err.message);
    }
}

static void send_ready(struct endpoint *endpoint, int64_t slot)
{
    struct message message;
    struct error err = {0};
    message_init(&message, MESSAGE_READY);
    message.slot = slot;
    message.lanes = 1;
    assert_int_equal(endpoint_send(endpoint, NULL, &message, &err), 0);
}

/* There and back again, with a megabyte of bytes. */
static void converse(struct fixture *fixture)
{
    struct message message, chunk;
    struct peer peer;
    struct error err = {0};
    send_ready(fixture->client, 7);
    receive(fixture->server, &peer, &message);
    assert_int_equal(message.type, MESSAGE_READY);
    assert_int_equal(message.slot, 7);
    assert_true(peer.size > 0);
    message_release(&message);

    message_init(&chunk, MESSAGE_CHUNK);
    char hash[SHA256_TEXT];
    sha256_bytes("x", 1, hash);
    chunk.checkpoint = hash;
    chunk.byte_count = 1 << 20;
    chunk.bytes = malloc(chunk.byte_count);
    memset(chunk.bytes, 'r', chunk.byte_count);
    assert_int_equal(endpoint_send(fixture->server, &peer, &chunk, &err), 0);
    receive(fixture->client, NULL, &message);
    assert_int_equal(message.type, MESSAGE_CHUNK);
    assert_int_equal(message.byte_count, chunk.byte_count);
    assert_memory_equal(message.bytes, chunk.bytes, chunk.byte_count);
    assert_int_equal(endpoint_state(fixture->client), CONNECTION_UP);
    message_release(&message);
    free(chunk.bytes);
}

static void messages_travel_by_ipc(void **state)
{
    struct fixture *fixture = *state;
    char address[128];
    snprintf(address, sizeof address, "ipc://%s/socket", fixture->folder);
    serve(fixture, &fixture->server_security, address);
    join(fixture, NULL, NULL);
    converse(fixture);
}

static void messages_travel_by_tcp_with_keys(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    assert_null(strchr(endpoint_address(fixture->server), '*'));
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    converse(fixture);
}

static void messages_travel_by_tcp_without_keys(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture, NULL, "tcp://127.0.0.1:0");
    join(fixture, NULL, NULL);
    converse(fixture);
}

static void expect_refusal(struct fixture *fixture)
{
    int64_t start = clock_now().monotonic_ns;
    send_ready(fixture->client, 1);
    while (endpoint_state(fixture->client) != CONNECTION_REFUSED) {
        assert_true(clock_now().monotonic_ns - start < 2 * NS_PER_SECOND);
        wait_readable(fixture->client, 20);
        wait_readable(fixture->server, 0);
    }
    struct message message;
    struct error err;
    struct peer peer;
    assert_int_equal(endpoint_receive(fixture->server, &peer, &message, &err), 0);
}

static void expect_log(struct fixture *fixture, const char *text, const char *also)
{
    char lines[8192];
    size_t size = 0;
    struct pollfd waited = {.fd = fixture->log_pipe[0], .events = POLLIN};
    for (int i = 0; i < 10 && size < sizeof lines - 1; i++) {
        wait_readable(fixture->server, 50); /* the server tells of what its monitor saw when it looks */
        while (poll(&waited, 1, 0) > 0 && size < sizeof lines - 1) {
            ssize_t count = read(waited.fd, lines + size, sizeof lines - 1 - size);
            assert_true(count > 0);
            size += (size_t)count;
        }
    }
    lines[size] = '\0';
    const char *found = strstr(lines, text);
    if (!found) {
        fail_msg("not logged: %s, only: %s", text, lines);
    }
    assert_null(strstr(found + 1, text)); /* once, however often the client tries */
    assert_non_null(strstr(lines, also));
}

static void a_stranger_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct security stranger = {0};
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    assert_int_equal(key_pair_make(&stranger.own, NULL), 0);
    join(fixture, &stranger, fixture->client_security.server_key);
    expect_refusal(fixture);
    expect_log(fixture, "is not authorized", stranger.own.public_key);
}

static void a_wrong_server_key_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct key_pair other;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    assert_int_equal(key_pair_make(&other, NULL), 0);
    join(fixture, &fixture->client_security, other.public_key);
    expect_refusal(fixture);
    expect_log(fixture, "does not use this coordinator's public key", "level=warning");
}

static void plain_text_is_refused(void **state)
{
    struct fixture *fixture = *state;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    join(fixture, NULL, NULL);
    expect_refusal(fixture);
    expect_log(fixture, "refused a connection to", "level=warning");
}

static void an_empty_allow_list_lets_nobody_in(void **state)
{
    struct fixture *fixture = *state;
    struct security closed = {.own = fixture->server_security.own};
    serve(fixture, &closed, "tcp://127.0.0.1:*");
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    expect_refusal(fixture);
}

/* Whoever holds the port now, the right coordinator may come back to it. */
static void a_refused_client_tries_again(void **state)
{
    struct fixture *fixture = *state;
    struct security closed = {.own = fixture->server_security.own};
    struct error err = {0};
    serve(fixture, &closed, "tcp://127.0.0.1:*");
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    expect_refusal(fixture);
    endpoint_destroy(fixture->server);
    bus_destroy(fixture->server_bus);
    fixture->server = NULL;
    fixture->server_bus = bus_create(&fixture->server_security, NULL, &err);
    fixture->server = endpoint_bind(fixture->server_bus, endpoint_address(fixture->client), &err);
    assert_non_null(fixture->server);
    int64_t deadline = clock_now().monotonic_ns + PATIENCE_NS;
    while (endpoint_state(fixture->client) != CONNECTION_UP) {
        assert_true(clock_now().monotonic_ns < deadline);
        wait_readable(fixture->client, 20);
    }
    converse(fixture);
}

static void nobody_there_is_no_refusal(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    converse(fixture);
    endpoint_destroy(fixture->server);
    fixture->server = NULL;
    int64_t deadline = clock_now().monotonic_ns + PATIENCE_NS;
    while (endpoint_state(fixture->client) != CONNECTION_DOWN) {
        assert_true(clock_now().monotonic_ns < deadline);
        wait_readable(fixture->client, 20);
    }
    /* The same address again: what was sent meanwhile arrives. */
    send_ready(fixture->client, 3);
    fixture->server = endpoint_bind(fixture->server_bus, endpoint_address(fixture->client), &err);
    assert_non_null(fixture->server);
    struct message message;
    struct peer peer;
    receive(fixture->server, &peer, &message);
    assert_int_equal(message.slot, 3);
    assert_int_equal(endpoint_state(fixture->client), CONNECTION_UP);
}

static void a_peer_that_left_is_told_of(void **state)
{
    struct fixture *fixture = *state;
    struct message message;
    struct peer peer;
    struct error err = {0};
    serve(fixture, NULL, "tcp://127.0.0.1:*");
    join(fixture, NULL, NULL);
    send_ready(fixture->client, 1);
    receive(fixture->server, &peer, &message);
    endpoint_destroy(fixture->client);
    fixture->client = NULL;
    message_init(&message, MESSAGE_DRAIN);
    int64_t deadline = clock_now().monotonic_ns + PATIENCE_NS;
    while (endpoint_send(fixture->server, &peer, &message, &err) == 0) {
        assert_true(clock_now().monotonic_ns < deadline);
        wait_readable(fixture->server, 20);
    }
    assert_int_equal(err.code, ERROR_CONNECT);
}

static void addresses_are_checked(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    static const char *const wrong[] = {"", "127.0.0.1:7155", "udp://127.0.0.1:1", "tcp://127.0.0.1",
                                        "tcp://nowhere:x"};
    serve(fixture, NULL, "tcp://127.0.0.1:*");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(endpoint_bind(fixture->server_bus, wrong[i], &err));
        assert_int_equal(err.code, ERROR_USAGE);
    }
    assert_null(endpoint_bind(fixture->server_bus, endpoint_address(fixture->server), &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, "--bind"));

    char address[128];
    snprintf(address, sizeof address, "ipc://%s/socket", fixture->folder);
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    assert_null(endpoint_bind(fixture->server_bus, address, &err));
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "chmod 700"));
}

/* What a peer in another language may get wrong: delimiters, too many frames, no JSON. Each is told of, with
 * its sender. */
static void odd_frames_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char json[] = "{\"type\":\"ready\",\"slot\":5,\"lanes\":1}";
    const struct raw_part good = {json, sizeof json - 1}, empty = {"", 0}, noise = {"\xff\x00{", 3};
    const struct raw_part parts[][4] = {{empty}, {noise}, {empty, good}, {good, noise}, {good, noise, noise},
                                        {good}};
    static const size_t counts[] = {1, 1, 2, 2, 3, 1};
    serve(fixture, NULL, "tcp://127.0.0.1:*");
    void *context = raw_context_create();
    void *dealer = raw_socket_create(context, RAW_DEALER);
    assert_int_equal(raw_socket_connect(dealer, endpoint_address(fixture->server)), 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_int_equal(raw_send(dealer, parts[i], counts[i]), 0);
    }
    for (size_t i = 0; i + 1 < sizeof counts / sizeof *counts; i++) {
        struct message message;
        struct peer peer = {.size = 0};
        struct error err = {0};
        int result;
        while ((result = endpoint_receive(fixture->server, &peer, &message, &err)) == 0) {
            wait_readable(fixture->server, 100);
        }
        assert_int_equal(result, -1);
        assert_int_equal(err.code, ERROR_PROTOCOL);
        assert_true(peer.size > 0);
    }
    struct message message;
    struct peer peer;
    receive(fixture->server, &peer, &message);
    assert_int_equal(message.slot, 5);
    raw_socket_close(dealer);
    raw_context_destroy(context);
}

static void many_messages_arrive_in_order(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 20000 };
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    for (int i = 0; i < COUNT; i++) {
        send_ready(fixture->client, i);
    }
    for (int i = 0; i < COUNT; i++) {
        struct message message;
        struct peer peer;
        receive(fixture->server, &peer, &message);
        assert_int_equal(message.slot, i);
        message_release(&message);
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_create, fixture_destroy)
    const struct CMUnitTest tests[] = {
        TEST(messages_travel_by_ipc),
        TEST(messages_travel_by_tcp_with_keys),
        TEST(messages_travel_by_tcp_without_keys),
        TEST(a_stranger_is_refused),
        TEST(a_wrong_server_key_is_refused),
        TEST(plain_text_is_refused),
        TEST(an_empty_allow_list_lets_nobody_in),
        TEST(a_refused_client_tries_again),
        TEST(nobody_there_is_no_refusal),
        TEST(a_peer_that_left_is_told_of),
        TEST(addresses_are_checked),
        TEST(odd_frames_are_refused),
        TEST(many_messages_arrive_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
