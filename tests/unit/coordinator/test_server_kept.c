/* Blobs that this sweep does not need any more, but something else does: the data, and other sweeps of the
 * same database. */
#include "base/files.h"
#include "tests/unit/coordinator/server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

static char *blob_path(const struct server_fixture *fixture, const char *sha256)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s.files/blobs/%s", fixture->db, sha256) > 0);
    return path;
}

static bool is_there(const struct server_fixture *fixture, const char *sha256)
{
    char *path = blob_path(fixture, sha256);
    bool found = file_exists(path);
    free(path);
    return found;
}

static void blob_put(const struct server_fixture *fixture, const char *text, char sha256[SHA256_TEXT])
{
    sha256_bytes(text, strlen(text), sha256);
    char *path = blob_path(fixture, sha256);
    assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
    free(path);
}

static void say_ended_with(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence,
                           enum outcome outcome, const char *sha256)
{
    struct message ended;
    message_init(&ended, MESSAGE_ENDED);
    ended.trial = trial;
    ended.attempt = attempt;
    ended.sequence = sequence;
    ended.outcome = outcome;
    ended.resource = 1;
    ended.checkpoint = (char *)sha256;
    ended.checkpoint_bytes = 4;
    worker_say(fixture, &ended);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
}

/* A worker that names the data as its checkpoint, and then has no more need of it. */
static void the_data_is_never_a_checkpoint_to_delete(void **state)
{
    struct server_fixture *fixture = *state;
    char data[128], sha256[SHA256_TEXT];
    snprintf(data, sizeof data, "%s/data.csv", fixture->folder);
    assert_int_equal(file_write(data, "1,2\n", 4, 0600, NULL), 0);
    sha256_bytes("1,2\n", 4, sha256);
    data_is(fixture, data);
    spec_make(fixture, "tiny", 2, 1);
    server_start(fixture);
    join_sweep(fixture);
    assert_true(is_there(fixture, sha256));
    assert_int_equal(begin_trial(fixture), 1);
    say_ended_with(fixture, 1, 1, 1, OUTCOME_INTERRUPTED, sha256);
    assert_int_equal(begin_trial(fixture), 1);
    say_ended_with(fixture, 1, 2, 1, OUTCOME_OUT_OF_MEMORY, NULL);
    assert_int_equal(begin_trial(fixture), 2);
    assert_true(is_there(fixture, sha256));
    finish_trial(fixture, 2, 1, 1);
    assert_true(is_there(fixture, sha256));
}

/* Two sweeps that do the same make the same checkpoints. */
static void another_sweep_s_checkpoint_stays(void **state)
{
    struct server_fixture *fixture = *state;
    char sha256[SHA256_TEXT], own[SHA256_TEXT];
    spec_make(fixture, "first", 1, 1);
    server_start(fixture);
    join_sweep(fixture);
    blob_put(fixture, "same", sha256);
    begin_trial(fixture);
    say_report(fixture, 1, 1, 1, 1, 0.5);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    say_ended_with(fixture, 1, 1, 2, OUTCOME_FINISHED, sha256);
    hear_and_forget(fixture, MESSAGE_DRAIN);
    say(fixture, MESSAGE_BYE);
    server_end(fixture);
    assert_true(is_there(fixture, sha256));

    spec_make(fixture, "second", 2, 1);
    server_start(fixture);
    join_sweep(fixture);
    blob_put(fixture, "mine", own);
    assert_int_equal(begin_trial(fixture), 1);
    say_ended_with(fixture, 1, 1, 1, OUTCOME_INTERRUPTED, sha256);
    assert_int_equal(begin_trial(fixture), 1);
    say_ended_with(fixture, 1, 2, 1, OUTCOME_INTERRUPTED, own);
    assert_int_equal(begin_trial(fixture), 1);
    say_ended_with(fixture, 1, 3, 1, OUTCOME_OUT_OF_MEMORY, NULL);
    assert_int_equal(begin_trial(fixture), 2);
    assert_true(is_there(fixture, sha256));
    assert_false(is_there(fixture, own));
}

int main(void)
{
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, server_fixture_setup, server_fixture_teardown)
    const struct CMUnitTest tests[] = {TEST(the_data_is_never_a_checkpoint_to_delete),
                                       TEST(another_sweep_s_checkpoint_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
