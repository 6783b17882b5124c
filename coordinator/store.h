/* The store: SQLite (store.c is the only includer of sqlite3.h). WAL, synchronous=FULL, STRICT tables,
 * application_id and user_version; SQL as named constants on top, prepared once.
 *
 * One coordinator per database: an flock on PATH.lock (held by store_open for writing); the next gets
 * ERROR_RESOURCE naming the holder's pid and host. Network file systems are refused with the remedy. Readers
 * never block it. */
#ifndef RUNG_COORDINATOR_STORE_H
#define RUNG_COORDINATOR_STORE_H

#include "base/error.h"
#include "base/json.h"
#include "coordinator/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_APPLICATION_ID 0x72756e67 /* "rung" */
#define STORE_VERSION 2

enum store_mode {
    STORE_WRITE, /* creates the file when missing; takes the lock; migrates */
    STORE_READ,  /* the file must exist; never blocks the writer */
};

struct store;
/* vfs: name of a SQLite VFS, NULL for the default (tests and benchmarks pass faulty or slow ones). */
struct store *store_open(const char *path, enum store_mode mode, const char *vfs, struct error *err);
void store_close(struct store *store); /* NULL-safe; checkpoints the WAL when writing */

/* Inserts or replaces all records in ONE transaction with one fsync. Nothing is kept on failure
 * (ERROR_RESOURCE; disk full says so and may be retried with the same records). */
int store_commit(struct store *store, const char *sweep_id, const struct record *records, size_t count,
                 struct error *err);

/* Sweep by name or id, NULL: the newest. 1 found, 0 none, -1 err. */
int store_find_sweep(struct store *store, const char *name_or_id, struct sweep_record *sweep,
                     struct error *err);
int store_load(struct store *store, const char *sweep_id, struct snapshot *snapshot, struct error *err);

/* An object whose keys are the blobs that the trials of all sweeps name as their checkpoints. NULL: err. */
json_t *store_checkpoints(struct store *store, struct error *err);

/* Queries for people; each returns a new JSON array/object in the shapes of DESIGN (docs/operations.md), or
 * NULL. */
struct leaderboard_query {
    const char *where; /* "batch_size >= 64 and state = completed"; NULL */
    const char *sort;  /* a column or parameter or metric; NULL = rank order */
    int64_t top;       /* 0 = all */
};
/* Best first by objective (`maximize` from the sweep's normalised spec), whatever the resource; rows without
 * a finite objective last with rank null; ties by trial number. The winner's refit is in the sweep's "final",
 * not a row. With train.replicates a row also says whether it is "within_one_se" of the best: sd / sqrt(k) of
 * the best's seeds. */
json_t *store_leaderboard(struct store *store, const char *sweep_id, const struct leaderboard_query *query,
                          struct error *err);
/* {"trial","state","reason","parameters","derived","objective","resource","curve":[{"resource","attempt","seconds","metrics"}],
 *  "attempts":[{"attempt","worker","device","start","until","started_ms","ended_ms","outcome","error","seconds"}]}
 */
json_t *store_trial(struct store *store, const char *sweep_id, int64_t trial, struct error *err);
/* `parameters`: names of those that are searched (not constant); best: the best objective.
 * [{"name","id","state","method","metric","goal","parameters","trials","completed","stopped","failed","best","best_trial","created_ms","ended_ms","final"}],
 * newest first */
json_t *store_list(struct store *store, struct error *err);
/* The body of MESSAGE_ANSWER to a MESSAGE_QUERY, and what the commands ask of a file. query: "leaderboard"
 * with body
 * {"sweep","where","sort","top"}, "show" with {"sweep","trial"}, "list" with any. A sweep (name or id) left
 * out is `sweep_id`, NULL the newest. ERROR_USAGE: no such query, sweep or trial. */
json_t *store_answer(struct store *store, const char *sweep_id, const char *query, const json_t *body,
                     struct error *err);

#endif
