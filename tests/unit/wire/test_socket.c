/* Sockets: messages over ipc and tcp, with CURVE and without, across a restart, in order, and odd ones. */
#include "tests/unit/wire/socket_fixture.h"
#include "wire/raw_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static void messages_travel_by_ipc(void **state)
{
    struct socket_fixture *fixture = *state;
    char address[128];
    snprintf(address, sizeof address, "ipc://%s/socket", fixture->folder);
    serve(fixture, &fixture->server_security, address);
    join(fixture, NULL, NULL);
    converse(fixture);
}

static void messages_travel_by_tcp_with_keys(void **state)
{
    struct socket_fixture *fixture = *state;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    assert_null(strchr(endpoint_address(fixture->server), '*'));
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    converse(fixture);
}

static void messages_travel_by_tcp_without_keys(void **state)
{
    struct socket_fixture *fixture = *state;
    serve(fixture, NULL, "tcp://127.0.0.1:0");
    join(fixture, NULL, NULL);
    converse(fixture);
}

static void nobody_there_is_no_refusal(void **state)
{
    struct socket_fixture *fixture = *state;
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
    struct socket_fixture *fixture = *state;
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
    struct socket_fixture *fixture = *state;
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
    struct socket_fixture *fixture = *state;
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
    struct socket_fixture *fixture = *state;
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
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, socket_fixture_setup, socket_fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(messages_travel_by_ipc),
        TEST(messages_travel_by_tcp_with_keys),
        TEST(messages_travel_by_tcp_without_keys),
        TEST(nobody_there_is_no_refusal),
        TEST(a_peer_that_left_is_told_of),
        TEST(addresses_are_checked),
        TEST(odd_frames_are_refused),
        TEST(many_messages_arrive_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
