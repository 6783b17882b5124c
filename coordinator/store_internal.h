/* Inside the store: how its other files (store_rows.c, store_leaderboard.c, store_show.c) run statements.
 * Only store.c knows SQLite.
 *
 * A cursor is one run of a statement: put its values in order, step, get the columns in order. Failures of
 * puts and gets (memory, a damaged row) are kept in the cursor and reported by the next step or end, so that
 * they need no check each. */
#ifndef RUNG_COORDINATOR_STORE_INTERNAL_H
#define RUNG_COORDINATOR_STORE_INTERNAL_H

#include "base/error.h"
#include "base/json.h"
#include "coordinator/store_lock.h"
#include "coordinator/store_sql.h"

#include <stdbool.h>
#include <stdint.h>

enum statement {
#define X(name, sql) STATEMENT_##name,
    STORE_STATEMENTS(X)
#undef X
        STATEMENT_COUNT
};

struct sqlite3;
struct sqlite3_stmt;

struct store {
    struct sqlite3 *database;
    struct sqlite3_stmt *statements[STATEMENT_COUNT];
    struct store_lock lock;
    char *path;
    bool writing;
};

struct cursor {
    struct store *store;
    struct sqlite3_stmt *statement;
    int position;     /* of the last value put, or of the last column got */
    int failure;      /* an SQLite code, 0: none */
    char damage[160]; /* which value cannot be; "": SQLite knows what failed */
    bool prepared;    /* made by cursor_prepare: finalised at the end */
};

void cursor_start(struct cursor *cursor, struct store *store, enum statement statement);
int cursor_prepare(struct cursor *cursor, struct store *store, const char *sql, struct error *err);

void cursor_put_integer(struct cursor *cursor, int64_t value);
void cursor_put_real(struct cursor *cursor, double value);        /* NaN is stored as NULL */
void cursor_put_text(struct cursor *cursor, const char *value);   /* copied; NULL allowed */
void cursor_put_static(struct cursor *cursor, const char *value); /* must live until cursor_end */
void cursor_put_json(struct cursor *cursor, const json_t *value); /* canonical text; NULL allowed */

/* 1: a row is there; 0: no more; -1: err. */
int cursor_step(struct cursor *cursor, struct error *err);

int64_t cursor_get_integer(struct cursor *cursor);
double cursor_get_real(struct cursor *cursor);        /* NULL is NaN */
const char *cursor_get_static(struct cursor *cursor); /* until the next step; NULL allowed */
char *cursor_get_text(struct cursor *cursor);         /* a copy to free(); NULL allowed */
json_t *cursor_get_json(struct cursor *cursor);       /* a new reference; NULL for NULL */
bool cursor_next_is_null(struct cursor *cursor);      /* does not move */
/* A value in this row that cannot be (an unknown state): the database is damaged. */
void cursor_fail_damaged(struct cursor *cursor);
/* 0, or -1 with what failed since the last step. */
int cursor_check(struct cursor *cursor, struct error *err);
void cursor_end(struct cursor *cursor);

/* A transaction; `store_end` commits it, or rolls it back when `keep` is false (err may be NULL then). */
int store_begin(struct store *store, bool write, struct error *err);
int store_end(struct store *store, bool keep, struct error *err);

/* For opening (store_open.c). `immutable`: a database nobody writes, on a medium that takes no WAL beside it;
 * SQLite then locks nothing. store_disconnect finalises the statements and closes. */
int store_connect(struct store *store, const char *vfs, bool immutable, struct error *err);
void store_disconnect(struct store *store);
/* First look into the file. 1: readable; 0: not, for want of a WAL (err is set); -1: err. */
int store_probe(struct store *store, struct error *err);
/* Prepares statements first..last that are not prepared yet. */
int store_prepare_some(struct store *store, int first, int last, struct error *err);
int store_execute(struct store *store, const char *sql, struct error *err);

/* ERROR_USAGE: the sweep asked for (NULL: the newest) is not there. */
int store_no_sweep(struct store *store, const char *asked, struct error *err);

/* One row of the statements that select them; the cursor keeps failures. */
struct sweep_record;
struct trial_record;
struct attempt_record;
struct report_record;
void cursor_get_sweep(struct cursor *cursor, struct sweep_record *sweep);
void cursor_get_trial(struct cursor *cursor, struct trial_record *trial);
void cursor_get_attempt(struct cursor *cursor, struct attempt_record *attempt);
void cursor_get_report(struct cursor *cursor, struct report_record *report);

/* Metric and goal of a sweep, from its normalised spec. Borrowed strings; metric "" when it has none. */
struct sweep_goal {
    const char *metric;
    bool maximize, best;
};
void sweep_goal_read(struct sweep_goal *goal, const json_t *normalised);

#endif
