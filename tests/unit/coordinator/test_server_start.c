/* When a sweep must not begin, and what the server says to callers that are no workers. */
#include "base/files.h"
#include "tests/unit/coordinator/server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

static void a_name_belongs_to_one_sweep(void **state)
{
    struct server_fixture *fixture = *state;
    server_start(fixture);
    join_sweep(fixture);
    assert_int_equal(begin_trial(fixture), 1);
    server_request_stop(fixture->server, 2);
    server_end(fixture);

    struct error err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "--resume"));
    assert_non_null(strstr(err.message, "--name"));

    fixture->settings.resume = true;
    spec_make(fixture, "tiny", 3, 2);
    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "epochs"));

    spec_make(fixture, "other", 3, 1);
    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "no sweep other"));

    /* One more trial than before is no other sweep. */
    spec_make(fixture, "tiny", 2, 1);
    server_start(fixture);
    endpoint_destroy(fixture->worker);
    fixture->worker = NULL;
    worker_connect(fixture, fixture->address);
    struct running_attempt running = {.trial = 1, .attempt = 1};
    say_hello(fixture, &running, 1);
    hear_and_forget(fixture, MESSAGE_WELCOME);
    finish_trial(fixture, 1, 1, 1);
    run_to_the_end(fixture, 2, 2);
    server_end(fixture);

    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message,
                           "has finished, and nothing is left to resume; for more trials add --set run_cap=N "
                           "with N above 2"));
    fixture->settings.resume = false;
    err = server_refused(fixture);
    assert_non_null(
        strstr(err.message, "has finished; choose another --name, or raise run_cap with --resume"));

    fixture->settings.resume = true;
    spec_make(fixture, "tiny", 3, 1);
    server_start(fixture);
    join_sweep(fixture);
    run_to_the_end(fixture, 3, 3);
}

/* Runs a whole sweep of this text. */
static void sweep_finish(struct server_fixture *fixture, const char *text, int64_t trials)
{
    spec_take(fixture, text);
    server_start(fixture);
    join_sweep(fixture);
    run_to_the_end(fixture, 1, trials);
    server_end(fixture);
    fixture->settings.resume = true;
}

#define SPEC(rest)                                                                                           \
    "name: wide\nmetric: {name: accuracy, goal: maximize}\nseed: 7\ntrain: {epochs: 1}\n" rest "\n"
#define GRID "method: grid\nparameters: {learning_rate: {values: [0.1, 0.2]}}"
#define RANDOM "method: random\nparameters: {learning_rate: {min: 0.0, max: 1.0}}\n"
#define HALVING(size)                                                                                        \
    RANDOM "early_terminate: {type: successive_halving, min_iter: 1, max_iter: 1, eta: 2" size "}\n"

static void a_grid_that_was_tried_is_over(void **state)
{
    struct server_fixture *fixture = *state;
    sweep_finish(fixture, SPEC(GRID), 2);
    spec_take(fixture, SPEC(GRID "\nrun_cap: 9"));
    struct error err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "all 2 points of its space were tried"));
}

static void halving_grows_by_whole_brackets(void **state)
{
    struct server_fixture *fixture = *state;
    struct error err;
    sweep_finish(fixture, SPEC(HALVING(", bracket_size: 2") "run_cap: 2"), 2);
    spec_take(fixture, SPEC(HALVING(", bracket_size: 2") "run_cap: 3"));
    err = server_refused(fixture); /* a third trial would be decided alone, and the bracket never filled */
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "a multiple of 2"));
    spec_take(fixture, SPEC(HALVING(", bracket_size: 2") "run_cap: 4"));
    server_start(fixture);
    join_sweep(fixture);
    run_to_the_end(fixture, 3, 4);
    server_end(fixture);
}

static void a_short_bracket_that_was_decided_does_not_grow(void **state)
{
    struct server_fixture *fixture = *state;
    struct error err;
    sweep_finish(fixture, SPEC(HALVING(", bracket_size: 2") "run_cap: 3"), 3);
    spec_take(fixture, SPEC(HALVING(", bracket_size: 2") "run_cap: 4"));
    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "the last bracket has 1 of 2 trials"));
}

static void halving_without_brackets_does_not_grow(void **state)
{
    struct server_fixture *fixture = *state;
    sweep_finish(fixture, SPEC(HALVING("") "run_cap: 2"), 2);
    spec_take(fixture, SPEC(HALVING("") "run_cap: 4"));
    struct error err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "compares all trials of the sweep at once"));
}

static void a_stopped_sweep_is_over(void **state)
{
    struct server_fixture *fixture = *state;
    server_start(fixture);
    join_sweep(fixture);
    say(fixture, MESSAGE_STOP);
    hear_and_forget(fixture, MESSAGE_ANSWER);
    hear_and_forget(fixture, MESSAGE_DRAIN);
    say(fixture, MESSAGE_BYE);
    assert_int_equal(server_join(fixture), 0);
    server_end(fixture);
    for (int resume = 0; resume < 2; resume++) {
        fixture->settings.resume = resume;
        struct error err = server_refused(fixture);
        assert_int_equal(err.code, ERROR_USAGE);
        assert_non_null(strstr(err.message, "was stopped by an operator"));
        assert_non_null(strstr(err.message, "choose another --name"));
    }
}

/* That the spec names another file is said before that this file holds something else. */
static void another_spec_is_told_from_changed_data(void **state)
{
    struct server_fixture *fixture = *state;
    char data[200], other[200];
    snprintf(data, sizeof data, "%s/data.csv", fixture->folder);
    snprintf(other, sizeof other, "%s/other.csv", fixture->folder);
    assert_int_equal(file_write(data, "1,2\n", 4, 0600, NULL), 0);
    assert_int_equal(file_write(other, "3,4\n", 4, 0600, NULL), 0);
    data_is(fixture, data);
    server_start(fixture);
    server_request_stop(fixture->server, 2);
    server_end(fixture);
    fixture->settings.resume = true;
    data_is(fixture, other);
    struct error err = server_refused(fixture);
    assert_non_null(strstr(err.message, "has changed since this sweep began"));
    spec_make(fixture, "tiny", 3, 2);
    err = server_refused(fixture);
    assert_non_null(strstr(err.message, "made from another spec: train.epochs: stored 1, now 2"));
}

static void descriptors_suffice_for_many_workers(void **state)
{
    struct server_fixture *fixture = *state;
    struct rlimit before, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = before.rlim_max < 256 ? before.rlim_max : 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    server_start(fixture);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, before.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void a_failed_start_leaves_nothing(void **state)
{
    struct server_fixture *fixture = *state;
    struct error err = {0};
    struct endpoint *other = endpoint_bind(fixture->bus, "tcp://127.0.0.1:*", &err);
    assert_non_null(other);
    fixture->binds[1] = endpoint_address(other);
    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, "in use"));
    assert_false(file_exists(fixture->db));
    endpoint_destroy(other);

    fixture->binds[1] = NULL;
    data_is(fixture, "/nowhere/data.csv");
    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_RESOURCE);
    fixture->settings.data_files = NULL;
    server_start(fixture); /* no sweep of that name was left behind */
}

static void a_database_has_one_coordinator(void **state)
{
    struct server_fixture *fixture = *state;
    char other[128];
    const char *binds[] = {other, NULL};
    server_start(fixture);
    snprintf(other, sizeof other, "ipc://%s/other", fixture->folder);
    fixture->settings.binds = binds;
    struct error err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_null(strstr(err.message, "rung stop")); /* that would end somebody's sweep */
    fixture->settings.binds = fixture->binds;
}

/* ---- other callers ---- */

static void questions_are_answered(void **state)
{
    struct server_fixture *fixture = *state;
    struct message query, answer;
    server_start(fixture);
    join_sweep(fixture);
    finish_trial(fixture, begin_trial(fixture), 1, 1);

    message_init(&query, MESSAGE_QUERY);
    query.query = "leaderboard";
    worker_say(fixture, &query);
    hear(fixture, MESSAGE_ANSWER, &answer);
    assert_null(answer.error);
    assert_int_equal(json_array_size(answer.body), 1);
    message_release(&answer);

    query.query = "show";
    query.body = json_pack("{s:s, s:i}", "sweep", "tiny", "trial", 1);
    worker_say(fixture, &query);
    hear(fixture, MESSAGE_ANSWER, &answer);
    assert_int_equal(json_array_size(json_object_get(answer.body, "curve")), 1);
    message_release(&answer);

    query.query = "list";
    worker_say(fixture, &query);
    hear(fixture, MESSAGE_ANSWER, &answer);
    assert_string_equal(json_get_string(json_array_get(answer.body, 0), "name", ""), "tiny");
    message_release(&answer);
    json_decref(query.body);

    query.query = "leaderboard";
    query.body = json_pack("{s:s}", "sweep", "nobody");
    worker_say(fixture, &query);
    hear(fixture, MESSAGE_ANSWER, &answer);
    assert_null(answer.body);
    assert_non_null(strstr(answer.error, "nobody"));
    message_release(&answer);
    json_decref(query.body);

    query.query = "fortune";
    query.body = NULL;
    worker_say(fixture, &query);
    hear(fixture, MESSAGE_ANSWER, &answer);
    assert_non_null(strstr(answer.error, "fortune"));
    message_release(&answer);

    say(fixture, MESSAGE_STATUS);
    hear(fixture, MESSAGE_ANSWER, &answer);
    assert_int_equal(json_get_integer(json_object_get(answer.body, "trials"), "completed", 0), 1);
    message_release(&answer);
}

static void what_does_not_belong_is_refused(void **state)
{
    struct server_fixture *fixture = *state;
    struct message message;
    char hash[SHA256_TEXT];
    server_start(fixture);
    join_sweep(fixture);
    sha256_bytes("", 0, hash);
    message_init(&message, MESSAGE_FETCH);
    message.checkpoint = hash;
    worker_say(fixture, &message);
    hear(fixture, MESSAGE_ERROR, &message);
    assert_string_equal(message.code, "malformed");
    message_release(&message);

    /* An encoder that writes what a decoder refuses: no session. */
    message_init(&message, MESSAGE_HELLO);
    message.worker = "w";
    message.session = "short";
    worker_say(fixture, &message);
    hear(fixture, MESSAGE_ERROR, &message);
    assert_string_equal(message.code, "malformed");
    assert_non_null(strstr(message.error, "session"));
    message_release(&message);
    run_to_the_end(fixture, 1, 3);
}

int main(void)
{
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, server_fixture_setup, server_fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_name_belongs_to_one_sweep),
        TEST(a_failed_start_leaves_nothing),
        TEST(a_database_has_one_coordinator),
        TEST(questions_are_answered),
        TEST(what_does_not_belong_is_refused),
        TEST(a_grid_that_was_tried_is_over),
        TEST(halving_grows_by_whole_brackets),
        TEST(a_short_bracket_that_was_decided_does_not_grow),
        TEST(halving_without_brackets_does_not_grow),
        TEST(a_stopped_sweep_is_over),
        TEST(another_spec_is_told_from_changed_data),
        TEST(descriptors_suffice_for_many_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
