/* Faults of the disk, and time: the i-th write, sync, open ... fails for every i until a pass meets no fault.
 * After each, the same records are committed again and everything is there once; nothing is leaked. */
#include "tests/support/vfs.h"
#include "tests/unit/coordinator/store_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#define VFS "faulty"
#define TRIALS 40

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

/* One turn of a sweep: trials with an attempt and a report each. */
static size_t make_turn(struct record *records, int first, int trials)
{
    size_t count = 0;
    for (int i = first; i < first + trials; i++) {
        records[count++] =
            trial_record(i, TRIAL_COMPLETED, i / 100.0, 3, "{\"learning_rate\": 0.1, \"batch_size\": 64}");
        records[count++] = attempt_record(i, 1, "node1", 0.5);
        records[count++] = report_record(i, 1, 3, "{\"accuracy\": 0.25, \"loss\": 0.123456789}");
    }
    return count;
}

static void release_turn(struct record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        record_release(&records[i]);
    }
}

static void assert_contents(const char *path, size_t trials)
{
    struct snapshot snapshot;
    struct error err = {0};
    struct store *store = store_open(path, STORE_WRITE, NULL, &err);
    if (store == NULL || store_load(store, SWEEP_ID, &snapshot, &err) != 0) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(snapshot.trial_count, trials);
    assert_int_equal(snapshot.attempt_count, trials);
    assert_int_equal(snapshot.report_count, trials);
    snapshot_release(&snapshot);
    store_close(store);
    sqlite3 *database;
    sqlite3_stmt *check;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, "PRAGMA integrity_check", -1, &check, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(check), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(check, 0), "ok");
    sqlite3_finalize(check);
    sqlite3_close(database);
}

/* Commits until it succeeds, as the server does; a fault strikes once, so the second time at the latest. */
static void commit_stubbornly(struct store *store, const struct record *records, size_t count)
{
    struct error err = {0};
    for (int tries = 0; store_commit(store, SWEEP_ID, records, count, &err) != 0; tries++) {
        assert_int_equal(err.code, ERROR_RESOURCE);
        assert_true(tries < 3);
    }
}

/* A whole life of a database with one fault in it: create, two turns, close. */
static void live_once(const char *path, struct test_vfs *vfs, unsigned calls, long nth,
                      enum test_vfs_fault fault, struct record *first, struct record *second, size_t count)
{
    struct error err = {0};
    test_vfs_fail(vfs, calls, nth, fault);
    struct store *store = store_open(path, STORE_WRITE, VFS, &err);
    if (store == NULL) {
        assert_true(err.code == ERROR_RESOURCE);
        assert_true(test_vfs_failed(vfs));
        assert_int_equal(access(path, F_OK), -1); /* nothing half-written */
        store = store_open(path, STORE_WRITE, VFS, &err);
    }
    if (store == NULL) {
        fail_msg("%s", err.message);
    }
    struct record sweep = sweep_record(SWEEP_ID, "digits", 1, "{}");
    commit_stubbornly(store, &sweep, 1);
    record_release(&sweep);
    commit_stubbornly(store, first, count);
    commit_stubbornly(store, second, count);
    store_close(store);
}

static long torture(struct fixture *fixture, unsigned calls, enum test_vfs_fault fault)
{
    struct test_vfs *vfs = test_vfs_create(VFS);
    struct record first[3 * TRIALS], second[3 * TRIALS];
    size_t count = make_turn(first, 1, TRIALS);
    make_turn(second, 1 + TRIALS, TRIALS);
    int descriptors = open_descriptors();
    long faults = 0;
    for (long i = 1;; i++) {
        char path[130];
        snprintf(path, sizeof path, "%s/life-%ld.db", fixture->folder, i);
        live_once(path, vfs, calls, i, fault, first, second, count);
        assert_int_equal(test_vfs_open_files(vfs), 0);
        assert_int_equal(open_descriptors(), descriptors);
        assert_contents(path, 2 * TRIALS);
        unlink(path);
        if (!test_vfs_failed(vfs)) {
            break;
        }
        faults++;
    }
    release_turn(first, count);
    release_turn(second, count);
    test_vfs_destroy(vfs);
    return faults;
}

static void test_failing_writes(void **state)
{
    long faults = torture(*state, TEST_VFS_WRITE | TEST_VFS_TRUNCATE, TEST_VFS_FAULT_IO);
    print_message("%ld failed writes\n", faults);
    assert_true(faults > 20);
}

static void test_full_disk_at_any_write(void **state)
{
    long faults = torture(*state, TEST_VFS_WRITE, TEST_VFS_FAULT_FULL);
    print_message("%ld full disks\n", faults);
    assert_true(faults > 20);
}

static void test_failing_syncs_and_opens(void **state)
{
    long faults = torture(*state, TEST_VFS_SYNC | TEST_VFS_OPEN | TEST_VFS_SHARED_MEMORY | TEST_VFS_DELETE,
                          TEST_VFS_FAULT_IO);
    print_message("%ld failed syncs, opens, maps, deletes\n", faults);
    assert_true(faults > 8);
}

static void test_failing_reads(void **state)
{
    long faults = torture(*state, TEST_VFS_READ, TEST_VFS_FAULT_IO);
    print_message("%ld failed reads\n", faults);
    assert_true(faults >= 1);
}

/* In a child that is killed at its nth disk call: turn after turn, each told through the pipe once it is
 * durable. */
static void live_until_killed(const char *path, long nth, int pipe_fd, struct record *turns[2], size_t count)
{
    struct test_vfs *vfs = test_vfs_create(VFS);
    test_vfs_fail(vfs, TEST_VFS_ALL, nth, TEST_VFS_FAULT_KILL);
    struct store *store = store_open(path, STORE_WRITE, VFS, NULL);
    struct record sweep = sweep_record(SWEEP_ID, "digits", 1, "{}");
    bool kept = store != NULL && store_commit(store, SWEEP_ID, &sweep, 1, NULL) == 0;
    for (int turn = 0; kept && turn < 2; turn++) {
        kept = write(pipe_fd, "+", 1) == 1 && store_commit(store, SWEEP_ID, turns[turn], count, NULL) == 0;
    }
    kept = kept && write(pipe_fd, "+", 1) == 1;
    store_close(store);
    _exit(kept ? 0 : 1);
}

/* The number of trials that a database holds after its writer was killed; every row with them, and none
 * twice. */
static size_t count_after_kill(const char *path, size_t acknowledged)
{
    struct snapshot snapshot;
    struct error err = {0};
    struct store *store = store_open(path, STORE_WRITE, NULL, &err);
    if (store == NULL) {
        fail_msg("%s", err.message);
    }
    int found = store_load(store, SWEEP_ID, &snapshot, &err);
    if (acknowledged == 0 && found != 0) {
        store_close(store);
        return 0;
    }
    assert_int_equal(found, 0);
    size_t trials = snapshot.trial_count;
    assert_int_equal(snapshot.attempt_count, trials);
    assert_int_equal(snapshot.report_count, trials);
    snapshot_release(&snapshot);
    store_close(store);
    return trials;
}

static void test_killed_at_any_disk_call(void **state)
{
    struct fixture *fixture = *state;
    struct record first[3 * TRIALS], second[3 * TRIALS], *turns[2] = {first, second};
    size_t count = make_turn(first, 1, TRIALS);
    make_turn(second, 1 + TRIALS, TRIALS);
    long kills = 0;
    for (bool killed = true; killed;) {
        char path[130], told[8];
        int pipe_fds[2], status;
        snprintf(path, sizeof path, "%s/killed-%ld.db", fixture->folder, kills);
        assert_int_equal(pipe(pipe_fds), 0);
        pid_t child = fork();
        if (child == 0) {
            live_until_killed(path, kills + 1, pipe_fds[1], turns, count);
        }
        close(pipe_fds[1]);
        ssize_t acknowledged = read(pipe_fds[0], told, sizeof told);
        while (acknowledged > 0 && read(pipe_fds[0], told + acknowledged, 1) == 1) {
            acknowledged++;
        }
        close(pipe_fds[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        killed = WIFSIGNALED(status);
        assert_true(killed || WEXITSTATUS(status) == 0);
        /* 1 told: the sweep is durable; 2: the first turn; 3: the second. One more may be, whose telling was
         * cut off. */
        size_t least = acknowledged > 1 ? (size_t)(acknowledged - 1) * TRIALS : 0;
        size_t trials = count_after_kill(path, (size_t)acknowledged);
        assert_true(trials == least || trials == least + TRIALS);
        kills += killed;
    }
    print_message("killed at each of %ld disk calls\n", kills);
    assert_true(kills > 100);
    release_turn(first, count);
    release_turn(second, count);
}

static void test_a_disk_that_stays_full(void **state)
{
    struct fixture *fixture = *state;
    struct test_vfs *vfs = test_vfs_create(VFS);
    struct record turn[3 * TRIALS];
    struct error err = {0};
    size_t count = make_turn(turn, 1, TRIALS);
    keep(fixture->store, sweep_record(SWEEP_ID, "digits", 1, "{}"));
    fixture_reopen(fixture, VFS);
    test_vfs_fail_from(vfs, TEST_VFS_WRITE, 2, TEST_VFS_FAULT_FULL);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(store_commit(fixture->store, SWEEP_ID, turn, count, &err), -1);
        assert_int_equal(err.code, ERROR_RESOURCE);
        assert_non_null(strstr(err.message, "disk is full"));
    }
    test_vfs_fail(vfs, 0, 0, TEST_VFS_FAULT_IO);
    assert_int_equal(store_commit(fixture->store, SWEEP_ID, turn, count, &err), 0);
    store_close(fixture->store);
    fixture->store = NULL;
    assert_contents(fixture->path, TRIALS);
    release_turn(turn, count);
    test_vfs_destroy(vfs);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* 5,000 records in one commit, and one fsync for all of them. The bound is far below what an idle machine
 * does: it catches a lost prepared statement or an fsync per row, on a busy one as well. */
static void test_throughput(void **state)
{
    struct fixture *fixture = *state;
    struct test_vfs *vfs = test_vfs_create(VFS);
    enum { RECORDS = 4998, TURNS = 4 };
    struct record *records = calloc(RECORDS, sizeof *records);
    double fastest = 1e9;
    keep(fixture->store, sweep_record(SWEEP_ID, "digits", 1, "{}"));
    fixture_reopen(fixture, VFS);
    for (int turn = 0; turn < TURNS; turn++) {
        size_t count = make_turn(records, 1 + turn * RECORDS / 3, RECORDS / 3);
        long syncs = test_vfs_syncs(vfs);
        double start = seconds_now();
        assert_int_equal(store_commit(fixture->store, SWEEP_ID, records, count, NULL), 0);
        double took = seconds_now() - start;
        fastest = took < fastest ? took : fastest;
        /* A new WAL's header is synced as well. */
        assert_int_equal(test_vfs_syncs(vfs) - syncs, turn == 0 ? 2 : 1);
        release_turn(records, count);
    }
    print_message("commit of %d records: %.1f ms, %.0f rows/s\n", RECORDS, fastest * 1e3, RECORDS / fastest);
    assert_true(fastest < 1.0);
    free(records);
    store_close(fixture->store);
    fixture->store = NULL;
    test_vfs_destroy(vfs);
}

struct reading {
    const char *path;
    atomic_bool stop;
    atomic_int boards, failures;
};

/* Reads whole leaderboards; a turn is all there or not at all. */
static void *read_boards(void *argument)
{
    struct reading *reading = argument;
    struct leaderboard_query query = {0};
    while (!atomic_load(&reading->stop)) {
        struct error err = {0};
        struct store *store = store_open(reading->path, STORE_READ, NULL, &err);
        json_t *rows = store != NULL ? store_leaderboard(store, SWEEP_ID, &query, &err) : NULL;
        if (rows == NULL || json_array_size(rows) % TRIALS != 0) {
            fprintf(stderr, "reader: %zu rows, %s\n", json_array_size(rows), err.message);
            atomic_fetch_add(&reading->failures, 1);
        }
        json_decref(rows);
        store_close(store);
        atomic_fetch_add(&reading->boards, 1);
    }
    return NULL;
}

static void test_readers_do_not_block_the_writer(void **state)
{
    struct fixture *fixture = *state;
    struct reading reading = {.path = fixture->path};
    pthread_t threads[2];
    keep_sweep(fixture->store, "last");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_boards, &reading), 0);
    }
    double worst = 0;
    int turns = 0;
    for (; turns < 30 || atomic_load(&reading.boards) < 10; turns++) {
        struct record turn[3 * TRIALS];
        struct error err = {0};
        size_t count = make_turn(turn, 1 + turns * TRIALS, TRIALS);
        double start = seconds_now();
        if (store_commit(fixture->store, SWEEP_ID, turn, count, &err) != 0) {
            fail_msg("%s", err.message);
        }
        double took = seconds_now() - start;
        worst = took > worst ? took : worst;
        release_turn(turn, count);
    }
    atomic_store(&reading.stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    print_message("%d commits beside %d leaderboards, slowest %.1f ms\n", turns, reading.boards, worst * 1e3);
    assert_int_equal(reading.failures, 0);
}

/* Also a reader that keeps a transaction open for long, which stops the WAL from being reset. */
static void test_a_slow_reader(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *database;
    sqlite3_stmt *statement;
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.5, "{}");
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, "SELECT * FROM trial", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    for (int i = 2; i < 40; i++) {
        keep_trial(fixture->store, i, 0.5, "{}");
    }
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE); /* its own moment: one trial */
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_failing_writes),
        TEST(test_full_disk_at_any_write),
        TEST(test_failing_syncs_and_opens),
        TEST(test_failing_reads),
        TEST(test_killed_at_any_disk_call),
        TEST(test_a_disk_that_stays_full),
        TEST(test_throughput),
        TEST(test_readers_do_not_block_the_writer),
        TEST(test_a_slow_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
