#include "tests/unit/wire/socket_fixture.h"

#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

int socket_fixture_setup(void **state)
{
    struct socket_fixture *fixture = calloc(1, sizeof *fixture);
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

int socket_fixture_teardown(void **state)
{
    struct socket_fixture *fixture = *state;
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

void serve(struct socket_fixture *fixture, const struct security *security, const char *address)
{
    struct error err = {0};
    fixture->server_bus = bus_create(security, &fixture->log, &err);
    assert_non_null(fixture->server_bus);
    fixture->server = endpoint_bind(fixture->server_bus, address, &err);
    if (!fixture->server) {
        fail_msg("%s", err.message);
    }
}

void join(struct socket_fixture *fixture, const struct security *security, const char *server_key)
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

void wait_readable(struct endpoint *endpoint, int timeout_ms)
{
    bool readable;
    struct error err = {0};
    assert_true(bus_wait(&endpoint, 1, &readable, NULL, 0, NULL, timeout_ms, &err) >= 0);
}

void receive(struct endpoint *endpoint, struct peer *peer, struct message *message)
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

void send_ready(struct endpoint *endpoint, int64_t slot)
{
    struct message message;
    struct error err = {0};
    message_init(&message, MESSAGE_READY);
    message.slot = slot;
    message.lanes = 1;
    assert_int_equal(endpoint_send(endpoint, NULL, &message, &err), 0);
}

void converse(struct socket_fixture *fixture)
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
