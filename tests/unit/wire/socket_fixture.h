/* A server and a client with keys in a folder of their own, and the verbs that let them talk. */
#ifndef RUNG_TESTS_SOCKET_FIXTURE_H
#define RUNG_TESTS_SOCKET_FIXTURE_H

#include "base/clock.h"
#include "wire/socket.h"

#define PATIENCE_NS (10 * NS_PER_SECOND)

struct socket_fixture {
    char folder[64];
    struct security server_security, client_security;
    struct log log;
    int log_pipe[2];
    struct bus *server_bus, *client_bus;
    struct endpoint *server, *client;
};

int socket_fixture_setup(void **state);
int socket_fixture_teardown(void **state);
void serve(struct socket_fixture *fixture, const struct security *security, const char *address);
void join(struct socket_fixture *fixture, const struct security *security, const char *server_key);
void wait_readable(struct endpoint *endpoint, int timeout_ms);
/* Waits for a message; release it. */
void receive(struct endpoint *endpoint, struct peer *peer, struct message *message);
void send_ready(struct endpoint *endpoint, int64_t slot);
/* There and back again, with a megabyte of bytes. */
void converse(struct socket_fixture *fixture);

#endif
