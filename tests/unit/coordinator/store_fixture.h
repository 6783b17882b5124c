/* A temporary folder with a database in it, and the verbs that fill one. */
#ifndef RUNG_TESTS_STORE_FIXTURE_H
#define RUNG_TESTS_STORE_FIXTURE_H

#include "coordinator/store.h"

struct fixture {
    char folder[64];
    char path[96];
    struct store *store; /* open for writing, or NULL */
};

#define SWEEP_ID "abcd1234"

/* cmocka's setup and teardown: *state is a struct fixture with an open, empty store. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Closes and opens for writing again, through `vfs` (NULL: the default). */
void fixture_reopen(struct fixture *fixture, const char *vfs);

/* Records of the sweep SWEEP_ID; release each. `json` is an object's text, NULL: none. */
struct record sweep_record(const char *id, const char *name, int64_t created_ms, const char *normalised);
struct record trial_record(int64_t number, enum trial_state state, double objective, int64_t resource,
                           const char *parameters);
struct record attempt_record(int64_t trial, int64_t number, const char *worker, double seconds);
struct record report_record(int64_t trial, int64_t attempt, int64_t resource, const char *metrics);

/* Commits and releases one record, which must succeed. */
void keep(struct store *store, struct record record);
/* A sweep that maximizes `accuracy`, by `objective` ("last" or "best"). */
void keep_sweep(struct store *store, const char *objective);
/* A completed trial with one attempt and one report whose accuracy is the objective. */
void keep_trial(struct store *store, int64_t number, double accuracy, const char *parameters);

#endif
