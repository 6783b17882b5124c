/* Answers to people's questions, read from the store through a connection of their own: what they see is
 * durable, and the engine is not asked. */
#include "coordinator/server_state.h"

#include <stdlib.h>
#include <string.h>

static struct store *reader(struct server *server, struct error *err)
{
    if (!server->reader) {
        server->reader = store_open(server->settings.db, STORE_READ, server->settings.vfs, err);
    }
    return server->reader;
}

/* The id of the sweep asked for; the one being served when none is named. */
static int sweep_find(struct server *server, const json_t *body, char id[SWEEP_ID_SIZE], struct error *err)
{
    const char *name = json_get_string(body, "sweep", NULL);
    struct record found = {.type = RECORD_SWEEP};
    if (!name) {
        memcpy(id, server->sweep_id, SWEEP_ID_SIZE);
        return 0;
    }
    int result = store_find_sweep(server->reader, name, &found.sweep, err);
    if (result == 0) {
        return error_set(err, ERROR_USAGE, "there is no sweep %.80s", name);
    }
    if (result < 0) {
        return -1;
    }
    memcpy(id, found.sweep.id, SWEEP_ID_SIZE);
    record_release(&found);
    return 0;
}

static json_t *leaderboard(struct server *server, const json_t *body, struct error *err)
{
    char id[SWEEP_ID_SIZE];
    if (sweep_find(server, body, id, err)) {
        return NULL;
    }
    struct leaderboard_query query = {
        .where = json_get_string(body, "where", NULL),
        .sort = json_get_string(body, "sort", NULL),
        .top = json_get_integer(body, "top", 0),
    };
    return store_leaderboard(server->reader, id, &query, err);
}

static json_t *show(struct server *server, const json_t *body, struct error *err)
{
    char id[SWEEP_ID_SIZE];
    if (sweep_find(server, body, id, err)) {
        return NULL;
    }
    return store_trial(server->reader, id, json_get_integer(body, "trial", 0), err);
}

static json_t *list(struct server *server, const json_t *body, struct error *err)
{
    (void)body;
    return store_list(server->reader, err);
}

static json_t *status(struct server *server, const json_t *body, struct error *err)
{
    (void)body;
    (void)err;
    return engine_status(server->engine);
}

static const struct {
    const char *name;
    json_t *(*answer_f)(struct server *server, const json_t *body, struct error *err);
} queries[] = {
    {"leaderboard", leaderboard},
    {"show", show},
    {"list", list},
    {"status", status},
};

void server_answer(struct server *server, const struct message *query, struct message *answer)
{
    struct error err = {0};
    if (reader(server, &err)) {
        error_set(&err, ERROR_USAGE, "unknown query \"%.64s\"", query->query);
        for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
            if (strcmp(query->query, queries[i].name) == 0) {
                error_set(&err, ERROR_MEMORY, "out of memory");
                answer->body = queries[i].answer_f(server, query->body, &err);
            }
        }
    }
    if (!answer->body) {
        answer->error = strdup(err.message);
    }
}
