/* The store's SQLite: connections, statements, transactions, and what SQLite's errors mean. */
#include "coordinator/store.h"

#include "base/files.h"
#include "base/text.h"
#include "coordinator/store_internal.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A reader waits this long for another process that recovers the WAL after a crash. */
#define BUSY_MS 10000
static const char *const statement_text[STATEMENT_COUNT] = {
#define X(name, sql) [STATEMENT_##name] = sql,
    STORE_STATEMENTS(X)
#undef X
};

/* What an SQLite code means to the user, and what to do about it. Retriable failures are ERROR_RESOURCE. */
static int store_error(const struct store *store, int code, struct error *err)
{
    int number = store->database != NULL ? sqlite3_system_errno(store->database) : 0;
    const char *path = store->path;
    switch (code & 0xff) {
    case SQLITE_FULL:
        return error_set(err, ERROR_RESOURCE,
                         "database %s: the disk is full; free some space (nothing was half-written, it can "
                         "be tried again)",
                         path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, ERROR_RESOURCE,
                         "database %s: another program holds it locked; close that program", path);
    case SQLITE_NOTADB:
        return error_set(err, ERROR_RESOURCE, "%s is not a database; choose another --db", path);
    case SQLITE_CORRUPT:
        return error_set(err, ERROR_RESOURCE,
                         "database %s is damaged (%s); use a copy, or save what is left: sqlite3 %s .recover",
                         path, store->database != NULL ? sqlite3_errmsg(store->database) : "unreadable row",
                         path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return error_set(err, ERROR_RESOURCE, "database %s cannot be written; choose another --db", path);
    case SQLITE_CANTOPEN:
        return error_set(err, ERROR_RESOURCE, "database %s cannot be opened: %s", path,
                         number != 0 ? strerror(number) : "unknown reason");
    case SQLITE_NOMEM:
        return error_set(err, ERROR_MEMORY, "database %s: no memory", path);
    case SQLITE_IOERR:
        if (number == ENOSPC || number == EDQUOT) {
            return store_error(store, SQLITE_FULL, err);
        }
        return error_set(err, ERROR_RESOURCE, "database %s: the disk failed: %s (%s); it can be tried again",
                         path, sqlite3_errstr(code), number != 0 ? strerror(number) : "no reason given");
    case SQLITE_CONSTRAINT:
        if (code == SQLITE_CONSTRAINT_UNIQUE) { /* sweep.name is the only one that is not a key */
            return error_set(err, ERROR_USAGE, "database %s already has another sweep of this name", path);
        }
        /* fall through */
    default:
        return error_set(err, ERROR_INTERNAL, "database %s: %s", path,
                         store->database != NULL ? sqlite3_errmsg(store->database) : sqlite3_errstr(code));
    }
}

void cursor_start(struct cursor *cursor, struct store *store, enum statement statement)
{
    *cursor = (struct cursor){.store = store, .statement = store->statements[statement]};
}

int cursor_prepare(struct cursor *cursor, struct store *store, const char *sql, struct error *err)
{
    *cursor = (struct cursor){.store = store, .prepared = true};
    int code = sqlite3_prepare_v3(store->database, sql, -1, 0, &cursor->statement, NULL);
    return code == SQLITE_OK ? 0 : store_error(store, code, err);
}

static void cursor_note(struct cursor *cursor, int code)
{
    if (code != SQLITE_OK && cursor->failure == 0) {
        cursor->failure = code;
    }
}

void cursor_put_integer(struct cursor *cursor, int64_t value)
{
    cursor_note(cursor, sqlite3_bind_int64(cursor->statement, ++cursor->position, value));
}

void cursor_put_real(struct cursor *cursor, double value)
{
    cursor_note(cursor, sqlite3_bind_double(cursor->statement, ++cursor->position, value));
}

void cursor_put_text(struct cursor *cursor, const char *value)
{
    cursor_note(cursor,
                sqlite3_bind_text(cursor->statement, ++cursor->position, value, -1, SQLITE_TRANSIENT));
}

void cursor_put_static(struct cursor *cursor, const char *value)
{
    cursor_note(cursor, sqlite3_bind_text(cursor->statement, ++cursor->position, value, -1, SQLITE_STATIC));
}

void cursor_put_json(struct cursor *cursor, const json_t *value)
{
    char *canonical = value != NULL ? json_canonical(value) : NULL;
    if (value != NULL && canonical == NULL) {
        cursor_note(cursor, SQLITE_NOMEM);
    }
    cursor_note(cursor, sqlite3_bind_text(cursor->statement, ++cursor->position, canonical, -1, free));
}

int cursor_step(struct cursor *cursor, struct error *err)
{
    if (cursor_check(cursor, err) != 0) {
        return -1;
    }
    cursor->position = -1;
    int code = sqlite3_step(cursor->statement);
    if (code == SQLITE_ROW || code == SQLITE_DONE) {
        return code == SQLITE_ROW;
    }
    cursor->failure = code;
    return store_error(cursor->store, code, err);
}

int64_t cursor_get_integer(struct cursor *cursor)
{
    return sqlite3_column_int64(cursor->statement, ++cursor->position);
}

double cursor_get_real(struct cursor *cursor)
{
    bool null = cursor_next_is_null(cursor);
    double value = sqlite3_column_double(cursor->statement, ++cursor->position);
    return null ? (double)NAN : value;
}

const char *cursor_get_static(struct cursor *cursor)
{
    bool null = cursor_next_is_null(cursor);
    const char *value = (const char *)sqlite3_column_text(cursor->statement, ++cursor->position);
    if (value == NULL && !null) {
        cursor_note(cursor, SQLITE_NOMEM);
    }
    return value;
}

char *cursor_get_text(struct cursor *cursor)
{
    const char *value = cursor_get_static(cursor);
    char *copy = value != NULL ? strdup(value) : NULL;
    if (value != NULL && copy == NULL) {
        cursor_note(cursor, SQLITE_NOMEM);
    }
    return copy;
}

json_t *cursor_get_json(struct cursor *cursor)
{
    const char *value = cursor_get_static(cursor);
    if (value == NULL) {
        return NULL;
    }
    json_t *json = json_parse(value, strlen(value), NULL);
    if (json == NULL) {
        cursor_fail_damaged(cursor);
    }
    return json;
}

bool cursor_next_is_null(struct cursor *cursor)
{
    return sqlite3_column_type(cursor->statement, cursor->position + 1) == SQLITE_NULL;
}

/* "trial 3: state is 'zzz'", as far as the row says what it is of. */
void cursor_fail_damaged(struct cursor *cursor)
{
    const char *column = sqlite3_column_name(cursor->statement, cursor->position);
    const char *value = (const char *)sqlite3_column_text(cursor->statement, cursor->position);
    char row[64] = "";
    for (int i = 0; i < sqlite3_column_count(cursor->statement); i++) {
        const char *name = sqlite3_column_name(cursor->statement, i);
        bool of_trial = strcmp(name, "trial") == 0; /* trials themselves have only a number */
        if (of_trial || (row[0] == '\0' && strcmp(name, "number") == 0)) {
            snprintf(row, sizeof row, "trial %lld: ", (long long)sqlite3_column_int64(cursor->statement, i));
        }
    }
    if (cursor->failure == 0) {
        snprintf(cursor->damage, sizeof cursor->damage, "%s%s is %s%.40s%s", row,
                 column != NULL ? column : "a value", value != NULL ? "'" : "",
                 value != NULL ? value : "missing", value != NULL ? "'" : "");
    }
    cursor_note(cursor, SQLITE_CORRUPT);
}

int cursor_check(struct cursor *cursor, struct error *err)
{
    if (cursor->failure != 0 && cursor->damage[0] != '\0') {
        const char *path = cursor->store->path;
        return error_set(err, ERROR_RESOURCE,
                         "database %s is damaged: %s; use a copy, or begin anew with another --name", path,
                         cursor->damage);
    }
    return cursor->failure == 0 ? 0 : store_error(cursor->store, cursor->failure, err);
}

void cursor_end(struct cursor *cursor)
{
    if (cursor->prepared) {
        sqlite3_finalize(cursor->statement);
    } else {
        sqlite3_reset(cursor->statement);
        sqlite3_clear_bindings(cursor->statement);
    }
    cursor->statement = NULL;
}

static int store_run(struct store *store, enum statement statement, struct error *err)
{
    struct cursor cursor;
    cursor_start(&cursor, store, statement);
    int result = cursor_step(&cursor, err);
    cursor_end(&cursor);
    return result < 0 ? -1 : 0;
}

int store_begin(struct store *store, bool write, struct error *err)
{
    return store_run(store, write ? STATEMENT_BEGIN : STATEMENT_BEGIN_READ, err);
}

int store_end(struct store *store, bool keep, struct error *err)
{
    if (keep && store_run(store, STATEMENT_COMMIT, err) == 0) {
        return 0;
    }
    /* After a full disk or a failed write SQLite may have rolled back by itself. */
    if (!sqlite3_get_autocommit(store->database)) {
        store_run(store, STATEMENT_ROLLBACK, NULL);
    }
    return keep ? -1 : 0;
}

int store_execute(struct store *store, const char *sql, struct error *err)
{
    int code = sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : store_error(store, code, err);
}

int store_prepare_some(struct store *store, int first, int last, struct error *err)
{
    for (int i = first; i <= last; i++) {
        if (store->statements[i] != NULL) {
            continue;
        }
        int code = sqlite3_prepare_v3(store->database, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->statements[i], NULL);
        if (code != SQLITE_OK) {
            return store_error(store, code, err);
        }
    }
    return 0;
}

int store_connect(struct store *store, const char *vfs, bool immutable, struct error *err)
{
    struct text name;
    text_init(&name);
    if (immutable) {
        text_append(&name, "file:");
        for (const char *c = store->path; *c != '\0'; c++) {
            text_printf(&name, strchr("?#%", *c) != NULL ? "%%%02x" : "%c", (unsigned char)*c);
        }
        text_append(&name, "?immutable=1");
    } else {
        /* ":memory:" and the like are file names to us. */
        text_append(&name, store->path[0] == '/' ? "" : "./");
        text_append(&name, store->path);
    }
    char *file = text_steal(&name);
    if (file == NULL) {
        return error_set(err, ERROR_MEMORY, "database %s: no memory", store->path);
    }
    /* A reader that may write removes the WAL's files when it is the last to leave; query_only keeps it from
     * more. */
    int flags = immutable ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
    flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | (store->writing ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(file, &store->database, flags, vfs);
    free(file);
    if (code != SQLITE_OK) {
        return store_error(store, code, err);
    }
    sqlite3_busy_timeout(store->database, BUSY_MS);
    return 0;
}

void store_disconnect(struct store *store)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
    sqlite3_close(store->database);
    store->database = NULL;
}

int store_probe(struct store *store, struct error *err)
{
    int code = sqlite3_exec(store->database, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
    if ((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY) {
        store_error(store, code, err);
        return 0;
    }
    return code == SQLITE_OK ? 1 : store_error(store, code, err);
}
