/* Who is refused, how soon the client knows, and what the server says of it. */
#include "tests/unit/wire/socket_fixture.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void expect_refusal(struct socket_fixture *fixture)
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

static void expect_log(struct socket_fixture *fixture, const char *text, const char *also)
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
    struct socket_fixture *fixture = *state;
    struct security stranger = {0};
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    assert_int_equal(key_pair_make(&stranger.own, NULL), 0);
    join(fixture, &stranger, fixture->client_security.server_key);
    expect_refusal(fixture);
    expect_log(fixture, "is not authorized", stranger.own.public_key);
}

static void a_wrong_server_key_is_refused(void **state)
{
    struct socket_fixture *fixture = *state;
    struct key_pair other;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    assert_int_equal(key_pair_make(&other, NULL), 0);
    join(fixture, &fixture->client_security, other.public_key);
    expect_refusal(fixture);
    expect_log(fixture, "does not use this coordinator's public key", "level=warning");
}

static void plain_text_is_refused(void **state)
{
    struct socket_fixture *fixture = *state;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    join(fixture, NULL, NULL);
    expect_refusal(fixture);
    expect_log(fixture, "refused a connection to", "level=warning");
}

static void an_empty_allow_list_lets_nobody_in(void **state)
{
    struct socket_fixture *fixture = *state;
    struct security closed = {.own = fixture->server_security.own};
    serve(fixture, &closed, "tcp://127.0.0.1:*");
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    expect_refusal(fixture);
}

/* Whoever holds the port now, the right coordinator may come back to it. */
static void a_refused_client_tries_again(void **state)
{
    struct socket_fixture *fixture = *state;
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

int main(void)
{
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, socket_fixture_setup, socket_fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_stranger_is_refused),        TEST(a_wrong_server_key_is_refused),
        TEST(plain_text_is_refused),        TEST(an_empty_allow_list_lets_nobody_in),
        TEST(a_refused_client_tries_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
