/* When a sweep must not begin, and what the server says to callers that are no workers. */
#include "base/files.h"
#include "tests/unit/coordinator/server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    assert_non_null(strstr(err.message, "has finished; choose another --name"));
    fixture->settings.resume = false;
    err = server_refused(fixture);
    assert_non_null(strstr(err.message, "has finished; choose another --name"));
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
    fixture->settings.data_path = "/nowhere/data.csv";
    err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_RESOURCE);
    fixture->settings.data_path = NULL;
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
        TEST(a_name_belongs_to_one_sweep),     TEST(a_failed_start_leaves_nothing),
        TEST(a_database_has_one_coordinator),  TEST(questions_are_answered),
        TEST(what_does_not_belong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
