/* One question to a live coordinator: connect, send, wait for the answer. For leaderboard, show, list,
 * status, pause, resume and stop. */
#ifndef RUNG_CLI_CLIENT_H
#define RUNG_CLI_CLIENT_H

#include "base/error.h"
#include "wire/message.h"

#include <jansson.h>
#include <stdbool.h>

struct client {
    const char *endpoint;   /* tcp://HOST:PORT, ipc://PATH, @FILE; NULL: RUNG_ENDPOINT */
    const char *config;     /* folder of the keys; NULL: ~/.config/rung */
    const char *server_key; /* the coordinator's public key; NULL: the one in that folder */
    bool insecure;
};

/* Sends `request` and returns the body of the answer (a new reference, json null when it has none), or NULL:
 * ERROR_CONNECT: nobody answers within 10 s, or our key is refused; ERROR_USAGE: the coordinator said no. */
json_t *client_ask(const struct client *client, const struct message *request, struct error *err);
/* MESSAGE_QUERY with this body (borrowed; NULL: none). */
json_t *client_query(const struct client *client, const char *query, json_t *body, struct error *err);

/* The address that `endpoint` stands for, as in struct client; free() it. */
char *client_address(const char *endpoint, struct error *err);

#endif
