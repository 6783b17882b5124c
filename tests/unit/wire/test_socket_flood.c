/* Peers that send faster than anybody reads, do not read what they asked for, or vanish in the middle. */
#include "tests/unit/wire/socket_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define FLOOD 150000

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    nanosleep(&pause, NULL);
}

/* Sends until the queues on both sides are full; returns how many went. */
static int flood(struct endpoint *client, int limit)
{
    struct message message;
    int sent = 0;
    message_init(&message, MESSAGE_STATUS);
    for (int64_t give_up = clock_now().monotonic_ns + NS_PER_SECOND;
         sent < limit && clock_now().monotonic_ns < give_up;) {
        if (endpoint_send(client, NULL, &message, NULL) == 0) {
            sent++;
        }
    }
    return sent;
}

/* Reads until nothing has come for a while: what stands behind a full queue comes when there is room. */
static int drain(struct endpoint *server)
{
    struct peer peer;
    struct message message;
    int count = 0;
    for (int silent = 0; silent < 10; silent++, pause_ms(30)) {
        while (endpoint_receive(server, &peer, &message, NULL) > 0) {
            message_release(&message);
            count++;
            silent = 0;
        }
    }
    return count;
}

/* The server reads nothing for longer than any timer of a connection takes, though it answers, which tells
 * the kernel that nobody is there; then it goes on as if nothing were. */
static void who_floods_and_hangs_up_harms_nobody(void **state)
{
    struct socket_fixture *fixture = *state;
    struct peer peers[3];
    struct message message;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    for (int i = 0; i < 3; i++) {
        join(fixture, &fixture->client_security, fixture->client_security.server_key);
        send_ready(fixture->client, 1);
        receive(fixture->server, &peers[i], &message);
        message_release(&message);
        assert_true(flood(fixture->client, FLOOD) > 1000);
        endpoint_destroy(fixture->client);
        fixture->client = NULL;
        bus_destroy(fixture->client_bus);
        fixture->client_bus = NULL;
    }
    message_init(&message, MESSAGE_DRAIN);
    for (int i = 0; i < 30; i++) {
        endpoint_send(fixture->server, &peers[i % 3], &message, NULL);
        pause_ms(20);
    }
    pause_ms(5500);
    assert_true(drain(fixture->server) > 0);
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    converse(fixture);
}

#define LARGE_MESSAGES 600
#define LARGE_BYTES 100000 /* each; together far more than the kernel buffers for a connection */

/* What nobody reads is not kept without end: the rest stays with its sender. */
static void a_server_keeps_little_of_a_flood(void **state)
{
    struct socket_fixture *fixture = *state;
    struct message message;
    serve(fixture, &fixture->server_security, "tcp://127.0.0.1:*");
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    message_init(&message, MESSAGE_STOP);
    message.reason = malloc(LARGE_BYTES + 1);
    memset(message.reason, 'x', LARGE_BYTES);
    message.reason[LARGE_BYTES] = '\0';
    for (int i = 0; i < LARGE_MESSAGES; i++) {
        assert_int_equal(endpoint_send(fixture->client, NULL, &message, NULL), 0);
    }
    free(message.reason);
    endpoint_destroy(fixture->client);
    fixture->client = NULL;
    bus_destroy(fixture->client_bus); /* a second of patience, in which the server does not read */
    fixture->client_bus = NULL;
    int kept = drain(fixture->server);
    assert_true(kept > 0);
    assert_true(kept < LARGE_MESSAGES / 2);
}

/* Chunks for a peer that does not read them: after a few the server says so, instead of taking more. */
static void few_blobs_wait_for_a_peer_that_does_not_read(void **state)
{
    struct socket_fixture *fixture = *state;
    struct error err = {0};
    struct peer peer;
    struct message message;
    fixture->server_bus = bus_create(&fixture->server_security, &fixture->log, &err);
    fixture->server = endpoint_bind_blobs(fixture->server_bus, "tcp://127.0.0.1:*", &err);
    assert_non_null(fixture->server);
    join(fixture, &fixture->client_security, fixture->client_security.server_key);
    send_ready(fixture->client, 1);
    receive(fixture->server, &peer, &message);
    message_release(&message);
    message_init(&message, MESSAGE_CHUNK);
    message.checkpoint = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    message.byte_count = 1 << 20;
    message.bytes = calloc(1, message.byte_count);
    message.size = 1 << 20;
    int sent = 0;
    while (sent < 1000 && endpoint_send(fixture->server, &peer, &message, NULL) == 0) {
        sent++;
    }
    free(message.bytes);
    assert_true(sent >= 4); /* as many as a peer may ask for at a time */
    assert_true(sent < 100);
}

int main(void)
{
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, socket_fixture_setup, socket_fixture_teardown)
    const struct CMUnitTest tests[] = {TEST(who_floods_and_hangs_up_harms_nobody),
                                       TEST(a_server_keeps_little_of_a_flood),
                                       TEST(few_blobs_wait_for_a_peer_that_does_not_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
