/* Answers to people's questions, read from the store through a connection of its own: what they see is
 * durable, and the transaction of a turn is not touched. Only the status comes from the engine. */
#include "coordinator/server_state.h"

#include <string.h>

static json_t *stored_answer(struct server *server, const struct message *query, struct error *err)
{
    if (!server->reader) {
        server->reader = store_open(server->settings.db, STORE_READ, server->settings.vfs, err);
    }
    return server->reader ? store_answer(server->reader, server->sweep_id, query->query, query->body, err)
                          : NULL;
}

void server_answer(struct server *server, const struct message *query, struct message *answer)
{
    struct error err = {.code = ERROR_MEMORY, .message = "out of memory"};
    bool asks_status = strcmp(query->query, "status") == 0;
    answer->body =
        asks_status ? engine_status(server->engine, clock_now()) : stored_answer(server, query, &err);
    if (!answer->body) {
        answer->error = strdup(err.message);
    }
}
