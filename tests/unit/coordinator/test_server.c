/* The server over real sockets and a real database: a sweep from hello to drain, restarts in the middle, a
 * disk that fails, and every way in which a sweep must not begin. */
#include "base/clock.h"
#include "base/files.h"
#include "tests/support/vfs.h"
#include "tests/unit/coordinator/server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static json_t *leaderboard_of(struct server_fixture *fixture)
{
    struct error err = {0};
    struct leaderboard_query query = {0};
    struct store *store = store_open(fixture->db, STORE_READ, NULL, &err);
    assert_non_null(store);
    json_t *rows = store_leaderboard(store, server_sweep_id(fixture->server), &query, &err);
    store_close(store);
    assert_non_null(rows);
    return rows;
}

static void a_sweep_runs_to_its_end(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    server_start(fixture);
    assert_int_equal(strlen(server_sweep_id(fixture->server)), 8);
    assert_string_equal(server_address(fixture->server, 0), fixture->address);
    assert_null(server_address(fixture->server, 1));

    worker_connect(fixture, fixture->address);
    say_hello(fixture, NULL, 0);
    hear(fixture, MESSAGE_WELCOME, &welcome);
    assert_string_equal(welcome.sweep, server_sweep_id(fixture->server));
    assert_string_equal(welcome.sweep_name, "tiny");
    assert_string_equal(welcome.metric, "accuracy");
    assert_string_equal(welcome.seed, "7");
    assert_int_equal(json_get_integer(welcome.train, "epochs", 0), 1);
    assert_int_equal(welcome.blob_port, 0);
    assert_non_null(strstr(welcome.blob_endpoint, "/socket-blobs"));
    message_release(&welcome);
    run_to_the_end(fixture, 1, 3);

    assert_true(server_has_ranked_trial(fixture->server));
    json_t *rows = leaderboard_of(fixture);
    assert_int_equal(json_array_size(rows), 3);
    assert_int_equal(json_get_integer(json_array_get(rows, 0), "trial", 0), 3);
    assert_string_equal(json_get_string(json_array_get(rows, 2), "state", ""), "completed");
    json_decref(rows);
}

/* A message that nobody could read is a fault of ours: it is named, and not made for ever. */
static void what_cannot_be_said_ends_the_server(void **state)
{
    struct server_fixture *fixture = *state;
    char *long_name = calloc(1, 301), *kept = fixture->spec.metric;
    memset(long_name, 'm', 300);
    fixture->spec.metric = long_name;
    server_start(fixture);
    worker_connect(fixture, fixture->address);
    say_hello(fixture, NULL, 0);
    assert_int_equal(server_join(fixture), -1);
    assert_int_equal(fixture->run_error.code, ERROR_INTERNAL);
    assert_non_null(strstr(fixture->run_error.message, "encode welcome: metric is longer than 256 bytes"));
    server_end(fixture);
    fixture->spec.metric = kept;
    free(long_name);
}

/* The process dies in the middle of a trial; the next one meets a worker that never stopped. */
static void a_sweep_goes_on_after_a_restart(void **state)
{
    struct server_fixture *fixture = *state;
    char id[SWEEP_ID_SIZE];
    struct message message;
    server_start(fixture);
    memcpy(id, server_sweep_id(fixture->server), sizeof id);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);
    finish_trial(fixture, 1, 1, 1);
    assert_int_equal(begin_trial(fixture), 2);
    say_report(fixture, 2, 1, 1, 1, 0.9);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    server_request_stop(fixture->server, 2);
    assert_int_equal(server_join(fixture), 1);
    server_end(fixture);

    fixture->settings.resume = true;
    server_start(fixture);
    assert_string_equal(server_sweep_id(fixture->server), id);
    struct running_attempt running = {.trial = 2, .attempt = 1, .sequence = 1};
    say_heartbeat(fixture, &running, 1);
    hear(fixture, MESSAGE_ERROR, &message);
    assert_string_equal(message.code, "unknown_session");
    message_release(&message);
    say_hello(fixture, &running, 1);
    hear_and_forget(fixture, MESSAGE_WELCOME);
    say_ended(fixture, 2, 1, 2, OUTCOME_FINISHED, 1);
    hear(fixture, MESSAGE_ACKNOWLEDGE, &message);
    assert_int_equal(message.trial, 2);
    assert_int_equal(message.sequence, 2);
    message_release(&message);
    run_to_the_end(fixture, 3, 3);
    json_t *rows = leaderboard_of(fixture);
    assert_int_equal(json_array_size(rows), 3);
    assert_int_equal(json_get_integer(json_array_get(rows, 0), "trial", 0), 2);
    assert_int_equal(json_get_integer(json_array_get(rows, 0), "attempts", 0), 1);
    json_decref(rows);
}

static void nothing_is_said_before_it_is_durable(void **state)
{
    struct server_fixture *fixture = *state;
    struct test_vfs *vfs = test_vfs_create("failing");
    struct message message;
    fixture->settings.vfs = "failing";
    server_start(fixture);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);

    test_vfs_fail_from(vfs, TEST_VFS_WRITE | TEST_VFS_SYNC, 1, TEST_VFS_FAULT_FULL);
    say_report(fixture, 1, 1, 1, 1, 0.25);
    say_ended(fixture, 1, 1, 2, OUTCOME_FINISHED, 1);
    hear_nothing(fixture, 700);
    assert_true(test_vfs_failed(vfs));
    test_vfs_fail(vfs, 0, 0, TEST_VFS_FAULT_IO);
    hear(fixture, MESSAGE_ACKNOWLEDGE, &message);
    assert_int_equal(message.sequence, 1);
    message_release(&message);
    hear(fixture, MESSAGE_ACKNOWLEDGE, &message);
    assert_int_equal(message.sequence, 2);
    message_release(&message);
    run_to_the_end(fixture, 2, 3);
    server_end(fixture);
    test_vfs_destroy(vfs);
}

/* A heartbeat changes nothing that is kept, and so costs no fsync. */
static void a_turn_without_records_does_not_commit(void **state)
{
    struct server_fixture *fixture = *state;
    struct test_vfs *vfs = test_vfs_create("counting");
    struct running_attempt running = {.trial = 1, .attempt = 1};
    fixture->settings.vfs = "counting";
    server_start(fixture);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);
    long syncs = test_vfs_syncs(vfs);
    for (int i = 0; i < 20; i++) {
        say_heartbeat(fixture, &running, 1);
    }
    say(fixture, MESSAGE_STATUS);
    hear_and_forget(fixture, MESSAGE_ANSWER);
    assert_int_equal(test_vfs_syncs(vfs), syncs);
    say_report(fixture, 1, 1, 1, 1, 0.5);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    assert_int_equal(test_vfs_syncs(vfs), syncs + 1);
    server_request_stop(fixture->server, 2);
    server_end(fixture);
    test_vfs_destroy(vfs);
}

/* While the disk is full there is nothing to wait for but the disk. */
static void a_full_disk_does_not_keep_the_server(void **state)
{
    struct server_fixture *fixture = *state;
    struct test_vfs *vfs = test_vfs_create("full");
    fixture->settings.vfs = "full";
    server_start(fixture);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);
    test_vfs_fail_from(vfs, TEST_VFS_WRITE | TEST_VFS_SYNC, 1, TEST_VFS_FAULT_FULL);
    say_report(fixture, 1, 1, 1, 1, 0.25);
    hear_nothing(fixture, 100);
    server_request_stop(fixture->server, 2);
    assert_int_equal(server_join(fixture), -1);
    assert_int_equal(fixture->run_error.code, ERROR_RESOURCE);
    assert_non_null(strstr(fixture->run_error.message, "disk is full"));
    test_vfs_fail(vfs, 0, 0, TEST_VFS_FAULT_IO);
    server_end(fixture);
    test_vfs_destroy(vfs);
}

static void an_interrupted_worker_hands_back(void **state)
{
    struct server_fixture *fixture = *state;
    struct message message;
    server_start(fixture);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);
    server_request_stop(fixture->server, 1);
    hear(fixture, MESSAGE_DRAIN, &message);
    assert_true(message.now);
    message_release(&message);
    hear_nothing(fixture, 100);
    say_ended(fixture, 1, 1, 1, OUTCOME_INTERRUPTED, 0);
    assert_int_equal(server_join(fixture), 1);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    server_end(fixture);

    fixture->settings.resume = true;
    server_start(fixture);
    join_sweep(fixture);
    say_ready(fixture);
    hear(fixture, MESSAGE_ASSIGN, &message);
    assert_int_equal(message.trials[0].trial, 1);
    assert_int_equal(message.trials[0].attempt, 2);
    message_release(&message);
}

/* What an attempt printed lies beside the database; what printed nothing has no file. */
static void logs_are_kept(void **state)
{
    struct server_fixture *fixture = *state;
    struct message ended;
    char path[300];
    server_start(fixture);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);
    size_t size = 3 << 20;
    char *text = malloc(size + 1);
    memset(text, 'x', size);
    memcpy(text, "begin", 5);
    memcpy(text + size - 4, "end\n", 5);
    message_init(&ended, MESSAGE_ENDED);
    ended.trial = ended.attempt = ended.sequence = 1;
    ended.outcome = OUTCOME_INTERRUPTED;
    ended.log_stderr = text;
    ended.log_stdout = "";
    worker_say(fixture, &ended);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    ended.log_stderr = "not this";
    worker_say(fixture, &ended); /* repeated: was applied already */
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    say(fixture, MESSAGE_STATUS);
    hear_and_forget(fixture, MESSAGE_ANSWER);
    free(text);

    char id[SWEEP_ID_SIZE];
    memcpy(id, server_sweep_id(fixture->server), sizeof id);
    server_request_stop(fixture->server, 2);
    server_end(fixture); /* writes what it has first */
    snprintf(path, sizeof path, "%s.files/%s/trial-000001/attempt-1/stderr", fixture->db, id);
    text = file_read(path, 0, &size, NULL);
    assert_non_null(text);
    assert_memory_equal(text, "beginx", 6);
    assert_string_equal(text + size - 5, "xend\n");
    assert_non_null(strstr(text, "x\n[...]\nx"));
    assert_int_equal(size, (2 << 20) + 7);
    free(text);
    snprintf(path, sizeof path, "%s.files/%s/trial-000001/attempt-1/stdout", fixture->db, id);
    assert_false(file_exists(path));
}

static void an_idle_server_stops_at_once(void **state)
{
    struct server_fixture *fixture = *state;
    server_start(fixture);
    int64_t start_ns = clock_now().monotonic_ns;
    server_request_stop(fixture->server, 1);
    assert_int_equal(server_join(fixture), 1);
    assert_true(clock_now().monotonic_ns - start_ns < NS_PER_SECOND);
}

int main(void)
{
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, server_fixture_setup, server_fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_sweep_runs_to_its_end),
        TEST(what_cannot_be_said_ends_the_server),
        TEST(a_sweep_goes_on_after_a_restart),
        TEST(nothing_is_said_before_it_is_durable),
        TEST(a_turn_without_records_does_not_commit),
        TEST(a_full_disk_does_not_keep_the_server),
        TEST(an_interrupted_worker_hands_back),
        TEST(logs_are_kept),
        TEST(an_idle_server_stops_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
