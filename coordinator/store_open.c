/* Opening a database: whose it is, which version wrote it, and where it may live. */
#include "coordinator/store.h"

#include "base/files.h"
#include "base/text.h"
#include "coordinator/store_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages of WAL before a commit also copies them into the database (4 KiB each: 16 MiB; two more fsyncs each
 * time). */
#define SQL_WRITER_SETTINGS "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4096;"
#define WAL_BYTES (4096 * (4096 + 24) + 32) /* that many pages with their headers, and its own */
#define SQL_READER_SETTINGS "PRAGMA query_only=ON;"
#define TEXT_OF(number) TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number
#define SQL_SIGN                                                                                             \
    "PRAGMA application_id=" TEXT_OF(STORE_APPLICATION_ID) "; PRAGMA user_version=" TEXT_OF(STORE_VERSION) ";"

static int store_ask_integer(struct store *store, const char *sql, int64_t *value, struct error *err)
{
    struct cursor cursor;
    int result = cursor_prepare(&cursor, store, sql, err);
    if (result == 0) {
        result = cursor_step(&cursor, err);
        *value = result == 1 ? cursor_get_integer(&cursor) : 0;
    }
    cursor_end(&cursor);
    return result < 0 ? -1 : 0;
}

/* The version of rung that wrote the file, when its table of origin can still be read. */
static void store_origin(struct store *store, char *version, size_t size)
{
    struct cursor cursor;
    const char *origin = NULL;
    version[0] = '\0';
    if (cursor_prepare(&cursor, store, "SELECT rung_version FROM origin", NULL) == 0 &&
        cursor_step(&cursor, NULL) == 1) {
        origin = cursor_get_static(&cursor);
        strncat(version, origin != NULL ? origin : "", size - 1);
    }
    cursor_end(&cursor);
}

static int store_refuse_version(struct store *store, int64_t version, struct error *err)
{
    char origin[64];
    store_origin(store, origin, sizeof origin);
    return error_set(
        err, ERROR_RESOURCE,
        "database %s was written by a newer rung (%s%sdatabase version %lld; this is rung %s, which "
        "reads up to %d); use that rung, or another --db",
        store->path, origin, origin[0] != '\0' ? ", " : "", (long long)version, RUNG_VERSION, STORE_VERSION);
}

/* 1: ours; 0: empty, to be created; -1: err. Reads the file for the first time. *found: its version. */
static int store_identify(struct store *store, int64_t *found, struct error *err)
{
    int64_t application, version = 0, tables;
    *found = 0;
    if (store_ask_integer(store, "PRAGMA application_id", &application, err) != 0 ||
        store_ask_integer(store, "PRAGMA user_version", &version, err) != 0 ||
        store_ask_integer(store, "SELECT count(*) FROM sqlite_schema", &tables, err) != 0) {
        return -1;
    }
    if (application == 0 && version == 0 && tables == 0) {
        return store->writing ? 0
                              : error_set(err, ERROR_RESOURCE, "%s is an empty file, not a database of rung",
                                          store->path);
    }
    if (application != STORE_APPLICATION_ID) {
        return error_set(err, ERROR_RESOURCE,
                         "%s is a database of another program, not of rung; choose another --db",
                         store->path);
    }
    if (version > STORE_VERSION) {
        return store_refuse_version(store, version, err);
    }
    *found = version;
    return 1;
}

/* Brings the tables of an older version up to this one, all or nothing. */
static int store_migrate(struct store *store, int64_t version, struct error *err)
{
    static const char *const steps[STORE_VERSION] = {[1] = SQL_MIGRATE_1};
    if (version == STORE_VERSION) {
        return 0;
    }
    int result = store_begin(store, true, err);
    if (result != 0) {
        return -1;
    }
    for (int64_t from = version; result == 0 && from < STORE_VERSION; from++) {
        result = steps[from] ? store_execute(store, steps[from], err) : -1;
    }
    result = result == 0 ? store_execute(store, SQL_SIGN, err) : result;
    if (result != 0) {
        store_end(store, false, NULL);
        return -1;
    }
    return store_end(store, true, err);
}

/* WAL first, then everything in one transaction: a crash in between leaves an empty file, which is created
 * again. */
static int store_create_tables(struct store *store, struct error *err)
{
    if (store_begin(store, true, err) != 0) {
        return -1;
    }
    if (store_execute(store, SQL_SCHEMA SQL_SIGN, err) != 0) {
        store_end(store, false, NULL);
        return -1;
    }
    return store_end(store, true, err);
}

/* Gives the WAL its room at once: a commit that makes the file longer has to flush twice, for the bytes and
 * for the length, and takes two to eight times as long. What SQLite did not write reads as zeros, which it
 * takes for the end. Where a file system cannot do this the commits are slower. The file holds no locks that
 * close() could drop. */
static void store_reserve_wal(const struct store *store)
{
    struct text name;
    text_init(&name);
    text_printf(&name, "%s-wal", store->path);
    int fd = name.failed ? -1 : open(name.data, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        fallocate(fd, 0, 0, WAL_BYTES);
        close(fd);
    }
    text_release(&name);
}

/* *created: there was no file while we held the lock, so that whatever is there after a failure is ours. */
static int store_open_writing(struct store *store, const char *vfs, bool *created, struct error *err)
{
    const char *network = store_network_file_system(store->path);
    if (network != NULL) {
        return error_set(
            err, ERROR_RESOURCE,
            "database %s is on a network file system (%s), where it could be damaged; put it on a local "
            "disk, e.g. --db /var/tmp/rung.db (workers need no shared disk)",
            store->path, network);
    }
    if (store_lock_take(&store->lock, store->path, err) != 0) {
        return -1;
    }
    *created = !file_exists(store->path);
    if (store_connect(store, vfs, false, err) != 0) {
        return -1;
    }
    int64_t version;
    int known = store_identify(store, &version, err);
    if (known < 0 || store_execute(store, "PRAGMA journal_mode=WAL; " SQL_WRITER_SETTINGS, err) != 0 ||
        store_prepare_some(store, STATEMENT_BEGIN, STATEMENT_BEGIN_READ, err) != 0) {
        return -1;
    }
    return known == 1 ? store_migrate(store, version, err) : store_create_tables(store, err);
}

/* A reader changes nothing, so an older database is opened as a writer for a moment. */
static int store_modernise(const struct store *store, const char *vfs, struct error *err)
{
    struct store *writer = store_open(store->path, STORE_WRITE, vfs, err);
    if (writer == NULL) {
        return error_prefix(err, "database %s is of an older rung and has to be brought up to date",
                            store->path);
    }
    store_close(writer);
    return 0;
}

static int store_open_reading(struct store *store, const char *vfs, struct error *err)
{
    if (!file_exists(store->path)) {
        return error_set(err, ERROR_RESOURCE, "there is no database %s; name one with --db", store->path);
    }
    struct text wal;
    text_init(&wal);
    text_printf(&wal, "%s-wal", store->path);
    bool quiet = !wal.failed && !file_exists(wal.data);
    text_release(&wal);
    if (!quiet && store_network_file_system(store->path) != NULL) {
        return error_set(err, ERROR_RESOURCE,
                         "database %s is in use on a network file system; ask its coordinator: --endpoint",
                         store->path);
    }
    if (store_connect(store, vfs, false, err) != 0) {
        return -1;
    }
    int readable = store_probe(store, err);
    /* A folder where no WAL can be made (read-only) still gives what a quiet database holds. */
    if (readable == 0 && quiet) {
        store_disconnect(store);
        readable = store_connect(store, vfs, true, err) == 0 ? 1 : -1;
    }
    if (readable != 1) {
        return -1;
    }
    int64_t version;
    if (store_identify(store, &version, err) != 1 ||
        (version < STORE_VERSION && store_modernise(store, vfs, err) != 0)) {
        return -1;
    }
    return store_execute(store, SQL_READER_SETTINGS, err);
}

/* Removes what a failed creation left, so that nothing half-written stays. */
static void store_remove_new(const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct text name;
        text_init(&name);
        text_printf(&name, "%s%s", path, endings[i]);
        if (!name.failed) {
            unlink(name.data);
        }
        text_release(&name);
    }
}

struct store *store_open(const char *path, enum store_mode mode, const char *vfs, struct error *err)
{
    struct store *store = calloc(1, sizeof *store);
    char *copy = strdup(path);
    if (store == NULL || copy == NULL) {
        free(store);
        free(copy);
        error_set(err, ERROR_MEMORY, "no memory for the store");
        return NULL;
    }
    *store = (struct store){.path = copy, .writing = mode == STORE_WRITE, .lock = {.fd = -1}};
    struct stat status;
    bool created = false;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        error_set(err, ERROR_USAGE, "database %s is a folder", path);
        goto fail;
    }
    if ((store->writing ? store_open_writing(store, vfs, &created, err)
                        : store_open_reading(store, vfs, err)) != 0 ||
        store_prepare_some(store, 0, STATEMENT_COUNT - 1, err) != 0) {
        goto fail;
    }
    if (store->writing) {
        store_reserve_wal(store);
    }
    return store;
fail:
    store_disconnect(store);
    if (created) {
        store_remove_new(path);
    }
    store_close(store);
    return NULL;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    store_disconnect(store);
    store_lock_give(&store->lock);
    free(store->path);
    free(store);
}
