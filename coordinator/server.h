/* The server: one loop that joins engine, store and sockets. A turn: drain the sockets (at most 1,000
 * messages), handle them, commit all records in ONE transaction, then send. Blobs are served by a second
 * socket on a thread of their own. */
#ifndef RUNG_COORDINATOR_SERVER_H
#define RUNG_COORDINATOR_SERVER_H

#include "base/log.h"
#include "coordinator/blobs.h"
#include "coordinator/engine.h"
#include "coordinator/spec.h"
#include "coordinator/store.h"
#include "wire/socket.h"

/* A file of the data: `key` is its setting below train.data ("path", "labels", ...). */
struct data_file {
    const char *key, *path;
};

struct server_settings {
    const struct spec *spec;            /* borrowed */
    const char *db;                     /* path of the database */
    const char *const *binds;           /* addresses, NULL-terminated: "tcp://127.0.0.1:7155", "ipc://..." */
    const struct security *security;    /* NULL: insecure or ipc only */
    const struct data_file *data_files; /* to publish as blobs; ends with a NULL key; NULL: none */
    /* Name of the one worker that this process starts itself, for which alone binds[0] is, or NULL. None is
     * there when the server starts; nobody else gets the name. */
    const char *own_worker;
    bool baseline; /* the sweep's workers can train the linear model, see engine.h */
    bool resume;   /* continue the stored sweep of that name */
    bool linger;
    const char *vfs; /* SQLite VFS, NULL */
    const struct log *log;
    /* Called between turns at most 10 times a second, and once at the end (progress display); may be NULL. */
    void (*progress_f)(void *user, const struct engine_counts *counts, const struct engine *engine);
    void *user;
};

struct server;
/* Opens the store, creates or resumes the sweep, binds the sockets. Errors carry the exit code of DESIGN
 * section 5. */
struct server *server_create(const struct server_settings *settings, struct error *err);
/* The address workers connect to (the i-th bind, with its real port); borrowed; NULL past the end. */
const char *server_address(const struct server *server, size_t index);
const char *server_sweep_id(const struct server *server);
uint64_t server_seed(const struct server *server); /* the stored one: a spec that names none draws another */
/* Serves until the sweep has ended and workers were told, or until stop was requested. 0 ended; 1 interrupted
 * (resumable); -1 err. */
int server_run(struct server *server, struct error *err);
/* Async-signal-safe: 1 = drain (checkpoint, hand back, at most 25 s), 2 = go at once. */
void server_request_stop(struct server *server, int level);
/* The own worker has ended: what it ran is given to others at once. From progress_f only; takes effect before
 * its next call, and another own worker may be started then. */
void server_own_worker_gone(struct server *server);
/* Whether one trial has a finite objective (else a sweep that ended has exit code 1). */
bool server_has_ranked_trial(const struct server *server);
/* Turns taken so far. */
int64_t server_turns(const struct server *server);
void server_destroy(struct server *server);

#endif
