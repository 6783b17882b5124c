/* The server's insides, shared by its source files:
 *
 *   server.c            life
 *   server_sweep.c      which sweep is served
 *   server_extend.c     whether it may have more trials than it had
 *   server_data.c       its data
 *   server_leftovers.c  blobs that nobody names
 *   server_turn.c       the loop
 *   server_logs.c       what attempts printed
 *   server_query.c      answers from the store */
#ifndef RUNG_COORDINATOR_SERVER_STATE_H
#define RUNG_COORDINATOR_SERVER_STATE_H

#include "coordinator/server.h"
#include "coordinator/server_blobs.h"
#include "coordinator/server_compact.h"
#include "coordinator/server_leftovers.h"
#include "coordinator/server_logs.h"
#include "coordinator/server_peers.h"

#include <stdatomic.h>

#define BIND_LIMIT 8

struct server {
    struct server_settings settings; /* borrowed pointers */
    const struct log *log;
    struct log own_log; /* settings.log with the sweep in its context */

    struct bus *bus;
    struct endpoint *endpoints[BIND_LIMIT];
    size_t endpoint_count;
    struct peers peers;

    struct blobs blobs;
    struct blob_server *blob_server;
    struct store *store;
    struct store *reader; /* for queries; opened by the first */

    char sweep_id[SWEEP_ID_SIZE];
    json_t *data_hashes; /* of the data's files, by their keys: {"path": sha256, ...} */
    json_t *train;       /* the spec's, with the data's blobs */
    struct engine_settings engine_settings;
    struct engine *engine;
    struct effects effects;
    struct compactor compactor;
    struct leftovers leftovers;
    json_t *kept_before; /* names of blobs, as keys: what was named when the sweep was opened */
    struct log_keeper *log_keeper;

    int stop_pipe[2];      /* wakes the loop */
    atomic_int stop_level; /* 0, 1: hand back, 2: at once */
    bool interrupted;      /* EVENT_INTERRUPT was given */
    int64_t interrupt_deadline_ns;
    bool own_worker_gone; /* and the engine was not told yet */
    int64_t turns;
    int64_t turn_ns;     /* when the last turn began */
    int64_t refused_ns;  /* when a refused message was logged last */
    int64_t progress_ns; /* when progress was last shown */
};

/* Creates or resumes the sweep in the open store: engine, its settings, its first records committed. */
int server_sweep_open(struct server *server, struct error *err);
/* The train settings that workers get, with the data's files published as blobs. */
int server_train_build(struct server *server, struct error *err);
/* Refuses (ERROR_USAGE) to go on with other data than a stored sweep began with. */
int server_data_check(const struct server *server, const char *sweep_id, struct error *err);
int server_data_remember(const struct server *server, struct error *err);
/* The hashes that a file data.sha256 holds, by key; empty where there is no such file. New object; NULL: err.
 */
json_t *server_data_read(const char *path, struct error *err);
/* Refuses (ERROR_USAGE) a number of trials that the stored sweep cannot have. */
int server_extension_check(const struct server *server, const struct snapshot *snapshot, struct error *err);
/* Commits what the effects hold, trying until it succeeds or the server is told to go at once (-1). */
int server_commit(struct server *server, struct error *err);
/* Fills `answer` (an initialised MESSAGE_ANSWER) for a MESSAGE_QUERY. */
void server_answer(struct server *server, const struct message *query, struct message *answer);

#endif
