/* The store: what goes in comes out, all or nothing; who may open a database, and what is said to the others.
 */
#include "base/files.h"
#include "base/text.h"
#include "coordinator/store_lock.h"
#include "coordinator/store_internal.h"
#include "tests/unit/coordinator/store_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' does not contain '%s'", text, part);
    }
}

/* Runs SQL on a database file, as another program would. */
static void run_sql(const char *path, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void refuses(const char *path, enum store_mode mode, enum error_code code, const char *part)
{
    struct error err = {0};
    assert_null(store_open(path, mode, NULL, &err));
    assert_int_equal(err.code, code);
    assert_contains(err.message, part);
}

static void test_everything_comes_back(void **state)
{
    struct fixture *fixture = *state;
    struct snapshot snapshot;
    struct error err = {0};
    keep_sweep(fixture->store, "last");

    struct record trial = trial_record(1, TRIAL_PAUSED, -0.1, 3, "{\"b\": [1, 2.0], \"a\": true}");
    trial.trial.derived = json_pack("{s:f}", "peak", 1e-5);
    trial.trial.bracket = 2;
    memset(trial.trial.checkpoint, 'c', 64);
    trial.trial.checkpoint_bytes = 1LL << 40;
    trial.trial.checkpoint_resource = 3;
    trial.trial.retries = 1;
    trial.trial.losses = 2;
    keep(fixture->store, trial);
    struct record attempt = attempt_record(1, 2, "node 1", 2.5);
    attempt.attempt.error = strdup("line\nbreak \xc3\xa4");
    attempt.attempt.last_sequence = 17;
    attempt.attempt.details = strdup("{\"precision\":\"bf16\"}");
    keep(fixture->store, attempt);
    keep(fixture->store, report_record(1, 2, 3, "{\"accuracy\": -0.1, \"loss\": \"NaN\"}"));
    keep(fixture->store, (struct record){.type = RECORD_RUNG_ENTRY,
                                         .rung_entry = {1, 2, 0, 5, (double)NAN, (double)-INFINITY, true}});
    keep(fixture->store,
         (struct record){.type = RECORD_WORKER,
                         .worker = {strdup("node 1"), strdup("ffff"), strdup("h"), strdup("v"),
                                    json_pack("[{s:s}]", "id", "cpu:0"), 5, 6, true}});
    fixture_reopen(fixture, NULL);

    assert_int_equal(store_load(fixture->store, SWEEP_ID, &snapshot, &err), 0);
    assert_string_equal(snapshot.sweep.name, "digits");
    assert_true(snapshot.sweep.seed == UINT64_MAX - 7);
    assert_string_equal(snapshot.sweep.spec_text, "method: random\n");
    assert_int_equal(strlen(snapshot.sweep.spec_sha256), 64);
    assert_null(snapshot.sweep.final);
    assert_int_equal(snapshot.trial_count, 1);
    const struct trial_record *loaded = &snapshot.trials[0];
    char *canonical = json_canonical(loaded->parameters);
    assert_string_equal(canonical, "{\"a\":true,\"b\":[1,2.0]}");
    free(canonical);
    assert_int_equal(loaded->state, TRIAL_PAUSED);
    assert_int_equal(loaded->reason, REASON_NONE);
    assert_true(loaded->has_objective && loaded->objective == -0.1);
    assert_true(json_get_number(loaded->derived, "peak", 0) == 1e-5);
    assert_int_equal(loaded->bracket, 2);
    assert_int_equal(strlen(loaded->checkpoint), 64);
    assert_true(loaded->checkpoint_bytes == 1LL << 40 && loaded->checkpoint_resource == 3);
    assert_true(loaded->retries == 1 && loaded->losses == 2 && !loaded->is_final);
    assert_int_equal(snapshot.attempt_count, 1);
    assert_string_equal(snapshot.attempts[0].error, "line\nbreak \xc3\xa4");
    assert_string_equal(snapshot.attempts[0].worker, "node 1");
    assert_int_equal(snapshot.attempts[0].last_sequence, 17);
    assert_int_equal(snapshot.attempts[0].outcome, OUTCOME_FINISHED);
    assert_int_equal(snapshot.report_count, 1);
    assert_string_equal(json_get_string(snapshot.reports[0].metrics, "loss", ""), "NaN");
    assert_int_equal(snapshot.rung_entry_count, 1);
    assert_true(isnan(snapshot.rung_entries[0].value));
    assert_true(isinf(snapshot.rung_entries[0].tie) && snapshot.rung_entries[0].promoted);
    assert_int_equal(snapshot.rung_entries[0].order, 5);
    assert_int_equal(snapshot.worker_count, 1);
    assert_string_equal(json_get_string(json_array_get(snapshot.workers[0].devices, 0), "id", ""), "cpu:0");
    assert_true(snapshot.workers[0].connected);
    snapshot_release(&snapshot);
}

static void test_a_row_is_replaced_by_its_key(void **state)
{
    struct fixture *fixture = *state;
    struct snapshot snapshot;
    keep_sweep(fixture->store, "last");
    keep(fixture->store, trial_record(2, TRIAL_RUNNING, (double)NAN, 0, "{}"));
    keep(fixture->store, trial_record(1, TRIAL_RUNNING, (double)NAN, 0, "{}"));
    keep(fixture->store, trial_record(2, TRIAL_COMPLETED, (double)INFINITY, 4, "{}"));
    keep_sweep(fixture->store, "best");
    assert_int_equal(store_load(fixture->store, SWEEP_ID, &snapshot, NULL), 0);
    assert_int_equal(snapshot.trial_count, 2);
    assert_int_equal(snapshot.trials[0].number, 1);
    assert_false(snapshot.trials[0].has_objective);
    assert_int_equal(snapshot.trials[1].state, TRIAL_COMPLETED);
    assert_true(isinf(snapshot.trials[1].objective));
    snapshot_release(&snapshot);
}

static void test_sweeps_are_found(void **state)
{
    struct fixture *fixture = *state;
    struct sweep_record sweep;
    struct error err = {0};
    assert_int_equal(store_find_sweep(fixture->store, NULL, &sweep, &err), 0);
    keep(fixture->store, sweep_record("11111111", "older", 1, "{}"));
    keep(fixture->store, sweep_record("22222222", "newest", 3, "{}"));
    keep(fixture->store, sweep_record("33333333", "11111111", 2, "{}"));
    static const struct {
        const char *asked, *id;
    } cases[] = {
        {NULL, "22222222"}, {"older", "11111111"}, {"11111111", "11111111"}, {"33333333", "33333333"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(store_find_sweep(fixture->store, cases[i].asked, &sweep, &err), 1);
        assert_string_equal(sweep.id, cases[i].id);
        struct record record = {.type = RECORD_SWEEP, .sweep = sweep};
        record_release(&record);
    }
    assert_int_equal(store_find_sweep(fixture->store, "none", &sweep, &err), 0);

    struct record same_name = sweep_record("44444444", "older", 4, "{}");
    assert_int_equal(store_commit(fixture->store, "44444444", &same_name, 1, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_contains(err.message, "another sweep of this name");
    record_release(&same_name);
    assert_int_equal(store_find_sweep(fixture->store, "44444444", &sweep, &err), 0);
}

static void test_a_failing_record_keeps_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct snapshot snapshot;
    struct error err = {0};
    keep_sweep(fixture->store, "last");
    struct record records[] = {trial_record(1, TRIAL_RUNNING, 1, 1, "{}"),
                               sweep_record("99999999", "digits", 1, "{}")};
    assert_int_equal(store_commit(fixture->store, SWEEP_ID, records, 2, &err), -1);
    assert_int_equal(store_load(fixture->store, SWEEP_ID, &snapshot, NULL), 0);
    assert_int_equal(snapshot.trial_count, 0);
    snapshot_release(&snapshot);
    assert_int_equal(store_commit(fixture->store, SWEEP_ID, records, 1, &err), 0);
    record_release(&records[0]);
    record_release(&records[1]);
}

static void test_database_in_use(void **state)
{
    struct fixture *fixture = *state;
    char pid[32];
    snprintf(pid, sizeof pid, "pid %ld ", (long)getpid());
    refuses(fixture->path, STORE_WRITE, ERROR_RESOURCE, pid);
    refuses(fixture->path, STORE_WRITE, ERROR_RESOURCE, "on host");
    struct store *reader = store_open(fixture->path, STORE_READ, NULL, NULL);
    assert_non_null(reader);
    struct record trial = trial_record(1, TRIAL_RUNNING, 1, 1, "{}");
    struct error err = {0};
    assert_int_equal(store_commit(reader, SWEEP_ID, &trial, 1, &err), -1);
    record_release(&trial);
    store_close(reader);
    fixture_reopen(fixture, NULL);
    store_close(fixture->store);
    fixture->store = NULL;
    char lock[120];
    snprintf(lock, sizeof lock, "%s.lock", fixture->path);
    assert_false(file_exists(lock));
}

static void test_newer_database(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    fixture->store = NULL;
    run_sql(fixture->path, "PRAGMA user_version = 3; UPDATE origin SET rung_version = '9.8.7'");
    refuses(fixture->path, STORE_WRITE, ERROR_RESOURCE, "newer rung (9.8.7, database version 3");
    refuses(fixture->path, STORE_READ, ERROR_RESOURCE, "use that rung, or another --db");
    run_sql(fixture->path, "DROP TABLE origin");
    refuses(fixture->path, STORE_READ, ERROR_RESOURCE, "newer rung (database version 3");
}

/* As version 1 had the tables. */
static void make_older(struct fixture *fixture)
{
    store_close(fixture->store);
    fixture->store = NULL;
    run_sql(fixture->path, "ALTER TABLE sweep DROP COLUMN baseline; ALTER TABLE sweep DROP COLUMN precision;"
                           "ALTER TABLE attempt DROP COLUMN details; PRAGMA user_version = 1");
}

static void test_older_database(void **state)
{
    struct fixture *fixture = *state;
    struct snapshot snapshot;
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.5, "{\"learning_rate\": 0.1}");
    make_older(fixture);
    struct store *reader = store_open(fixture->path, STORE_READ, NULL, NULL);
    assert_non_null(reader);
    json_t *trial = store_trial(reader, SWEEP_ID, 1, NULL);
    json_t *attempt = json_array_get(json_object_get(trial, "attempts"), 0);
    assert_string_equal(json_get_string(attempt, "worker", ""), "node1");
    assert_true(json_is_null(json_object_get(attempt, "details")));
    json_decref(trial);
    store_close(reader);

    make_older(fixture);
    fixture_reopen(fixture, NULL);
    assert_int_equal(store_load(fixture->store, SWEEP_ID, &snapshot, NULL), 0);
    assert_int_equal(snapshot.attempt_count, 1);
    assert_null(snapshot.sweep.baseline);
    assert_string_equal(snapshot.sweep.precision, "");
    snapshot_release(&snapshot);
}

static void test_older_database_in_use(void **state)
{
    struct fixture *fixture = *state;
    keep_sweep(fixture->store, "last");
    make_older(fixture);
    struct store_lock lock = {.fd = -1};
    assert_int_equal(store_lock_take(&lock, fixture->path, NULL), 0);
    refuses(fixture->path, STORE_READ, ERROR_RESOURCE, "has to be brought up to date");
    store_lock_give(&lock);
}

static void test_other_files(void **state)
{
    struct fixture *fixture = *state;
    char path[120], lock[130];
    snprintf(path, sizeof path, "%s/other.db", fixture->folder);
    snprintf(lock, sizeof lock, "%s.lock", path);
    refuses(path, STORE_READ, ERROR_RESOURCE, "there is no database");
    assert_false(file_exists(path));
    run_sql(path, "CREATE TABLE t (x)");
    refuses(path, STORE_WRITE, ERROR_RESOURCE, "another program");
    refuses(path, STORE_READ, ERROR_RESOURCE, "another program");
    run_sql(path, "SELECT x FROM t");
    assert_int_equal(file_write(path, "not a database, just text of some length........", 48, 0600, NULL), 0);
    refuses(path, STORE_WRITE, ERROR_RESOURCE, "not a database");
    refuses(path, STORE_READ, ERROR_RESOURCE, "not a database");
    char *text = file_read(path, 0, NULL, NULL);
    assert_contains(text, "just text");
    free(text);
    assert_int_equal(file_write(path, "", 0, 0600, NULL), 0);
    refuses(path, STORE_READ, ERROR_RESOURCE, "empty");
    refuses(fixture->folder, STORE_WRITE, ERROR_USAGE, "folder");
    refuses("/nowhere/at/all.db", STORE_WRITE, ERROR_RESOURCE, "folder does not exist");
    assert_false(file_exists(lock));
}

/* What the open says to a user who is not root, in a folder of someone else. */
static void test_read_only_folder(void **state)
{
    struct fixture *fixture = *state;
    char path[120];
    keep_sweep(fixture->store, "last");
    store_close(fixture->store);
    fixture->store = NULL;
    snprintf(path, sizeof path, "%s/new.db", fixture->folder);
    assert_int_equal(chmod(fixture->folder, 0555), 0);
    pid_t child = fork();
    if (child == 0) {
        struct error err = {0};
        struct sweep_record sweep;
        if (getuid() == 0 && setuid(65534) != 0) {
            _exit(10);
        }
        if (store_open(path, STORE_WRITE, NULL, &err) != NULL ||
            strstr(err.message, "cannot be written") == NULL) {
            _exit(11);
        }
        struct store *reader = store_open(fixture->path, STORE_READ, NULL, &err);
        if (reader == NULL || store_find_sweep(reader, NULL, &sweep, &err) != 1) {
            fprintf(stderr, "%s\n", err.message);
            _exit(12);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    chmod(fixture->folder, 0755);
    assert_int_equal(status, 0);
}

/* kill -9 leaves lock file and WAL behind; neither is in the way. */
static void test_after_a_crash(void **state)
{
    struct fixture *fixture = *state;
    struct snapshot snapshot;
    store_close(fixture->store);
    fixture->store = NULL;
    pid_t child = fork();
    if (child == 0) {
        struct store *store = store_open(fixture->path, STORE_WRITE, NULL, NULL);
        keep_sweep(store, "last");
        keep_trial(store, 1, 0.5, "{}");
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct store *reader = store_open(fixture->path, STORE_READ, NULL, NULL);
    assert_non_null(reader);
    assert_int_equal(store_load(reader, SWEEP_ID, &snapshot, NULL), 0);
    assert_int_equal(snapshot.trial_count, 1);
    snapshot_release(&snapshot);
    store_close(reader);
    fixture_reopen(fixture, NULL);
    assert_int_equal(store_load(fixture->store, SWEEP_ID, &snapshot, NULL), 0);
    assert_int_equal(snapshot.report_count, 1);
    snapshot_release(&snapshot);
}

/* A look at a database leaves nothing beside it. */
static void test_a_reader_leaves_no_files(void **state)
{
    struct fixture *fixture = *state;
    static const char *const endings[] = {"-wal", "-shm", "-journal", ".lock"};
    keep_sweep(fixture->store, "last");
    store_close(fixture->store);
    fixture->store = NULL;
    struct store *reader = store_open(fixture->path, STORE_READ, NULL, NULL);
    json_decref(store_list(reader, NULL));
    store_close(reader);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char path[120];
        snprintf(path, sizeof path, "%s%s", fixture->path, endings[i]);
        assert_false(file_exists(path));
    }
}

static void test_damaged_database(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    struct snapshot snapshot;
    keep_sweep(fixture->store, "last");
    for (int i = 1; i <= 300; i++) {
        keep_trial(fixture->store, i, 0.5, "{\"learning_rate\": 0.1}");
    }
    store_close(fixture->store);
    fixture->store = NULL;
    /* Everything behind the first pages (schema) is overwritten. */
    size_t size;
    char *bytes = file_read(fixture->path, 0, &size, NULL);
    memset(bytes + 3 * 4096, 0x5a, size - 3 * 4096);
    assert_int_equal(file_write(fixture->path, bytes, size, 0600, NULL), 0);
    free(bytes);
    struct store *reader = store_open(fixture->path, STORE_READ, NULL, &err);
    assert_non_null(reader);
    assert_int_equal(store_load(reader, SWEEP_ID, &snapshot, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_contains(err.message, "damaged");
    store_close(reader);
}

/* A value that cannot be is named, with the trial it is of. */
static void test_damaged_values(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *sql, *back, *message;
    } cases[] = {
        {"UPDATE trial SET state = 'zzz' WHERE number = 2", "UPDATE trial SET state = 'completed'",
         "trial 2: state is 'zzz'"},
        {"UPDATE trial SET derived = '{' WHERE number = 3", "UPDATE trial SET derived = NULL",
         "trial 3: derived is '{'"},
        {"UPDATE report SET metrics = 'nope' WHERE trial = 2", "UPDATE report SET metrics = '{}'",
         "trial 2: metrics is 'nope'"},
        {"UPDATE sweep SET seed = 'x'", "UPDATE sweep SET seed = '7'", "seed is 'x'"},
        {"UPDATE sweep SET seed = '18446744073709551616'", "UPDATE sweep SET seed = '7'", "seed is '18446"},
        {"UPDATE sweep SET state = ''", "UPDATE sweep SET state = 'running'", "state is ''"},
    };
    keep_sweep(fixture->store, "last");
    for (int i = 1; i <= 3; i++) {
        keep_trial(fixture->store, i, 0.5, "{\"learning_rate\": 0.1}");
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct snapshot snapshot;
        assert_int_equal(store_execute(fixture->store, cases[i].sql, &err), 0);
        assert_int_equal(store_load(fixture->store, SWEEP_ID, &snapshot, &err), -1);
        assert_int_equal(err.code, ERROR_RESOURCE);
        assert_contains(err.message, cases[i].message);
        assert_int_equal(store_execute(fixture->store, cases[i].back, &err), 0);
    }
}

static void test_network_file_systems(void **state)
{
    (void)state;
    assert_string_equal(store_network_magic(0x6969), "NFS");
    assert_string_equal(store_network_magic(0xFF534D42), "CIFS");
    /* A 32-bit magic number, sign-extended by the system. */
    assert_string_equal(store_network_magic((unsigned long)(long)(int)0xFE534D42), "SMB2");
    assert_null(store_network_magic(0xEF53));     /* ext4 */
    assert_null(store_network_magic(0x01021994)); /* tmpfs */
    assert_string_equal(store_network_mount("36 35 0:32 / /mnt rw - fuse.sshfs me@host:/x rw\n"),
                        "fuse.sshfs");
    assert_null(store_network_mount("36 35 0:32 / /mnt rw - fuse.fuse-overlayfs overlay rw\n"));
    assert_null(store_network_mount("36 35 0:32 / /mnt/fuse.sshfs rw - ext4 /dev/x rw\n"));
    assert_null(store_network_file_system("/tmp/x.db"));
}

static void test_strange_paths(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {":memory:", "file:x?mode=memory", "with blank %41.db"};
    assert_int_equal(chdir(fixture->folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct store *store = store_open(names[i], STORE_WRITE, NULL, NULL);
        assert_non_null(store);
        store_close(store);
        assert_true(file_exists(names[i]));
    }
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_everything_comes_back), TEST(test_a_row_is_replaced_by_its_key),
        TEST(test_sweeps_are_found),      TEST(test_a_failing_record_keeps_nothing),
        TEST(test_database_in_use),       TEST(test_newer_database),
        TEST(test_older_database),        TEST(test_older_database_in_use),
        TEST(test_other_files),           TEST(test_read_only_folder),
        TEST(test_after_a_crash),         TEST(test_a_reader_leaves_no_files),
        TEST(test_damaged_values),        TEST(test_damaged_database),
        TEST(test_network_file_systems),  TEST(test_strange_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
