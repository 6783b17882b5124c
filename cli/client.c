/* A client's round trip over the wire. */
#include "cli/client.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "wire/security.h"
#include "wire/socket.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_NS (10 * NS_PER_SECOND)
#define STEP_MS 200 /* between looks at the state of the connection */

char *client_address(const char *endpoint, struct error *err)
{
    if (endpoint == NULL || *endpoint == '\0') {
        endpoint = getenv("RUNG_ENDPOINT");
    }
    if (endpoint == NULL || *endpoint == '\0') {
        error_set(err, ERROR_USAGE,
                  "ENDPOINT is missing: tcp://HOST:PORT, ipc://PATH, @FILE, or RUNG_ENDPOINT");
        return NULL;
    }
    if (*endpoint != '@') {
        char *address = strdup(endpoint);
        if (address == NULL) {
            error_set(err, ERROR_MEMORY, "no memory for the address");
        }
        return address;
    }
    char *address = file_read(endpoint + 1, 4096, NULL, err);
    if (address != NULL) {
        address[strcspn(address, "\r\n")] = '\0';
    }
    return address;
}

static json_t *answer_body(struct message *answer, struct error *err)
{
    if (answer->type == MESSAGE_ANSWER && answer->error == NULL) {
        return answer->body != NULL ? json_incref(answer->body) : json_null();
    }
    error_set(err, answer->type == MESSAGE_ANSWER ? ERROR_USAGE : ERROR_CONNECT, "%s",
              answer->error != NULL ? answer->error : "the coordinator did not understand the question");
    return NULL;
}

/* 1: *body is there; 0: not yet; -1: err. */
static int receive_answer(struct endpoint *endpoint, json_t **body, struct error *err)
{
    struct message message;
    int received = endpoint_receive(endpoint, NULL, &message, err);
    if (received <= 0) {
        return received;
    }
    int result = 0;
    if (message.type == MESSAGE_ANSWER || message.type == MESSAGE_ERROR) {
        *body = answer_body(&message, err);
        result = *body != NULL ? 1 : -1;
    }
    message_release(&message);
    return result;
}

static json_t *await_answer(struct endpoint *endpoint, struct error *err)
{
    const char *address = endpoint_address(endpoint);
    json_t *body = NULL;
    int64_t deadline = clock_now().monotonic_ns + ANSWER_NS;
    do {
        bool readable;
        if (bus_wait(&endpoint, 1, &readable, NULL, 0, NULL, STEP_MS, err) < 0) {
            return NULL;
        }
        int result;
        while ((result = receive_answer(endpoint, &body, err)) != 0) {
            return result > 0 ? body : NULL;
        }
        if (endpoint_state(endpoint) == CONNECTION_REFUSED) {
            error_set(err, ERROR_CONNECT,
                      "the coordinator at %s refused this user's key; on its side: rung keygen --for NAME",
                      address);
            return NULL;
        }
    } while (clock_now().monotonic_ns < deadline);
    error_set(err, ERROR_CONNECT, "no coordinator answers at %s; is it running, and is the address right?",
              address);
    return NULL;
}

static json_t *ask_at(const char *address, const struct security *security, const struct message *request,
                      struct error *err)
{
    json_t *body = NULL;
    struct bus *bus = bus_create(security, NULL, err);
    const char *key = security != NULL && security->server_key[0] != '\0' ? security->server_key : NULL;
    struct endpoint *endpoint = bus != NULL ? endpoint_connect(bus, address, key, err) : NULL;
    if (endpoint != NULL && endpoint_send(endpoint, NULL, request, err) == 0) {
        body = await_answer(endpoint, err);
    }
    endpoint_destroy(endpoint);
    if (bus != NULL) {
        bus_destroy(bus);
    }
    return body;
}

json_t *client_ask(const struct client *client, const struct message *request, struct error *err)
{
    char *address = client_address(client->endpoint, err);
    if (address == NULL) {
        return NULL;
    }
    json_t *body = NULL;
    struct security security = {0};
    bool open = client->insecure || strncmp(address, "ipc://", 6) == 0;
    if (open || security_for_client(&security, client->config, client->server_key, err) == 0) {
        body = ask_at(address, open ? NULL : &security, request, err);
    }
    security_release(&security);
    free(address);
    return body;
}

json_t *client_query(const struct client *client, const char *query, json_t *body, struct error *err)
{
    struct message request;
    message_init(&request, MESSAGE_QUERY);
    request.query = (char *)query; /* borrowed: the request is never released */
    request.body = body;
    return client_ask(client, &request, err);
}
