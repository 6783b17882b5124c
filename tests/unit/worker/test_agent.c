/* The agent against a scripted coordinator, with runners that obey the test: assignments, judging at a rung,
 * lost answers, a coordinator that forgets or goes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_coordinator.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOW "{\"epochs\": 9, \"delay_ms\": 40}"
#define QUICK "{\"epochs\": 9}"

static void test_a_trial_runs_to_its_end(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_expect(coordinator, MESSAGE_HELLO, &message);
    assert_string_equal(message.worker, "fake");
    assert_int_equal(strlen(message.session), 16);
    assert_int_equal(message.device_count, 1);
    assert_int_equal(message.running_count, 0);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect(coordinator, MESSAGE_READY, &message);
    assert_int_equal(message.slot, 0);
    message_release(&message);
    coordinator_assign(coordinator, 0, 1, 1, QUICK, 0, 9, NULL);
    coordinator_expect(coordinator, MESSAGE_REPORT, &message);
    assert_int_equal(message.sequence, 1);
    assert_int_equal(message.report_count, 1);
    assert_int_equal(message.reports[0].resource, 1);
    assert_string_equal(message.device, "cpu/fake");
    message_release(&message);
    coordinator_expect_reports(coordinator, 1, 1, 2, 9);
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    assert_int_equal(message.sequence, 10);
    assert_int_equal(message.outcome, OUTCOME_FINISHED);
    assert_int_equal(message.resource, 9);
    assert_non_null(json_object_get(message.details, "derived"));
    message_release(&message);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_acknowledge(coordinator, 1, 1, 10, ACTION_STOP, 0);
    coordinator_drain(coordinator, false);
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 0);
}

static void test_a_pause_uploads_before_it_ends(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char checkpoint[SHA256_TEXT];
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 5, 1, QUICK, 0, 3, NULL);
    coordinator_expect_reports(coordinator, 5, 1, 1, 3);
    coordinator_expect_silence(coordinator, 200); /* not judged yet: nothing is uploaded, nothing ends */
    assert_int_equal(coordinator->puts, 0);
    coordinator_acknowledge(coordinator, 5, 1, 3, ACTION_CONTINUE, 3);
    coordinator_expect_only(coordinator, MESSAGE_READY); /* the slot waits for no upload */
    coordinator_expect_ended(coordinator, 5, 1, 4, OUTCOME_PAUSED, checkpoint);
    assert_string_equal(coordinator_blob(coordinator, checkpoint), "trial 5 resource 3");
    /* It comes back from its checkpoint, as the next attempt. */
    coordinator_assign(coordinator, 0, 5, 2, QUICK, 3, 9, checkpoint);
    coordinator_expect_reports(coordinator, 5, 2, 1, 6);
    coordinator_expect_ended(coordinator, 5, 2, 7, OUTCOME_FINISHED, NULL);
}

static void test_a_checkpoint_from_elsewhere_is_fetched(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct fake_blob *blob = &coordinator->blobs[coordinator->blob_count++];
    /* More than one chunk, more than four outstanding, an odd end. */
    blob->size = blob->capacity = 7 * (1 << 20) + 123;
    blob->bytes = malloc((size_t)blob->size);
    for (int64_t i = 0; i < blob->size; i++) {
        blob->bytes[i] = (char)(i * 31 % 251);
    }
    memcpy(blob->bytes, "trial 2 resource 4", 19);
    sha256_bytes(blob->bytes, (size_t)blob->size, blob->sha256);
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 2, 3, "{\"epochs\": 5}", 4, 9, blob->sha256);
    coordinator_expect_reports(coordinator, 2, 3, 1, 1);
    coordinator_expect_ended(coordinator, 2, 3, 2, OUTCOME_FINISHED, NULL);
}

/* Neither gone nor damaged is it the trial's fault; the worker goes on. */
static void test_a_checkpoint_that_cannot_be_used_is_told(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    struct fake_blob *blob = &coordinator->blobs[coordinator->blob_count++];
    blob->bytes = calloc(1, blob->size = blob->capacity = 50);
    sha256_bytes(blob->bytes, (size_t)blob->size, blob->sha256);
    char nowhere[SHA256_TEXT];
    sha256_bytes("nowhere", 7, nowhere);
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 2, 3, QUICK, 4, 9, nowhere);
    for (int trial = 2; trial <= 3; trial++) {
        coordinator_expect(coordinator, MESSAGE_ENDED, &message);
        assert_int_equal(message.trial, trial);
        assert_int_equal(message.outcome, OUTCOME_INTERRUPTED);
        assert_true(message.checkpoint_lost);
        coordinator_acknowledge(coordinator, trial, message.attempt, 1, ACTION_STOP, 0);
        message_release(&message);
        coordinator_expect_only(coordinator, MESSAGE_READY);
        if (trial == 2)
            coordinator_assign(coordinator, 0, 3, 1, "{\"damaged\": 1}", 4, 9, blob->sha256);
    }
}

static void test_a_higher_until_goes_on_in_memory(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, QUICK, 0, 1, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_acknowledge(coordinator, 1, 1, 1, ACTION_CONTINUE, 3);
    coordinator_expect_reports(coordinator, 1, 1, 2, 3);
    coordinator_expect_silence(coordinator, 100); /* long paused and saved */
    coordinator_acknowledge(coordinator, 1, 1, 3, ACTION_CONTINUE, 9);
    coordinator_expect_reports(coordinator, 1, 1, 4, 9);
    coordinator_expect_ended(coordinator, 1, 1, 10, OUTCOME_FINISHED, NULL);
    assert_int_equal(coordinator->puts, 0);
}

static void test_an_assign_waits_for_the_answer_that_frees_its_slot(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char checkpoint[SHA256_TEXT];
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, QUICK, 0, 3, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 3);
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 3, NULL);
    coordinator_expect_silence(coordinator, 100); /* the answer that was sent before it got lost */
    coordinator_acknowledge(coordinator, 1, 1, 3, ACTION_CONTINUE, 3);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    assert_int_equal(coordinator->puts, 0); /* the upload can wait */
    coordinator_expect_ended(coordinator, 1, 1, 4, OUTCOME_PAUSED, checkpoint);
    assert_string_equal(coordinator_blob(coordinator, checkpoint), "trial 1 resource 3");
}

static void test_a_paused_trial_goes_on_from_its_own_file(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, QUICK, 0, 3, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 3);
    coordinator_acknowledge(coordinator, 1, 1, 3, ACTION_CONTINUE, 3);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 3, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    /* Its runner had another trial since; nothing was sent yet. */
    coordinator_acknowledge(coordinator, 1, 1, 3, ACTION_CONTINUE, 9);
    coordinator_expect_reports(coordinator, 1, 1, 4, 9);
    coordinator_expect_ended(coordinator, 1, 1, 10, OUTCOME_FINISHED, NULL);
    assert_int_equal(coordinator->puts, 0);
}

static void test_stop_while_it_runs_and_while_it_waits(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 9, \"delay_ms\": 300}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_acknowledge(coordinator, 1, 1, 1, ACTION_STOP, 0);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_STOPPED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 2, 1, QUICK, 0, 3, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 3);
    coordinator_expect_silence(coordinator, 50);
    coordinator_acknowledge(coordinator, 2, 1, 3, ACTION_STOP, 3);
    coordinator_expect_ended(coordinator, 2, 1, 4, OUTCOME_STOPPED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 3, 1, "{\"epochs\": 1}", 0, 3,
                       NULL); /* the runner is free for others */
    coordinator_expect_reports(coordinator, 3, 1, 1, 1);
    coordinator_expect_ended(coordinator, 3, 1, 2, OUTCOME_FINISHED, NULL);
    assert_int_equal(coordinator->puts, 0);
}

static void test_unacknowledged_messages_are_repeated(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 3}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 3);
    coordinator_expect_only(coordinator, MESSAGE_ENDED);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_acknowledge(coordinator, 1, 1, 1, ACTION_CONTINUE, 9); /* the others were lost */
    coordinator_expect_reports(coordinator, 1, 1, 2, 3);
    coordinator_expect_ended(coordinator, 1, 1, 4, OUTCOME_FINISHED, NULL);
    coordinator_expect_silence(coordinator, 2500); /* and never again */
}

static void test_an_assign_is_taken_once(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 2, "{\"epochs\": 2, \"delay_ms\": 20}", 0, 9, NULL);
    coordinator_assign(coordinator, 0, 1, 2, "{\"epochs\": 2, \"delay_ms\": 20}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 2, 1, 2);
    coordinator_expect_ended(coordinator, 1, 2, 3, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 1, 2, QUICK, 0, 9, NULL); /* ended */
    coordinator_assign(coordinator, 0, 1, 1, QUICK, 0, 9, NULL); /* an older attempt yet */
    coordinator_expect_silence(coordinator, 300);
}

static void test_an_assign_for_a_busy_slot_waits_its_turn(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 3, \"delay_ms\": 400}", 0, 9, NULL);
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect_heartbeat(coordinator, &message);
    while (message.running_count < 2) {
        message_release(&message);
        coordinator_expect_heartbeat(coordinator, &message);
    }
    assert_int_equal(message.running[1].trial, 2);
    assert_int_equal(message.running[1].sequence, 0);
    assert_int_equal(json_array_size(message.ready_slots), 0);
    message_release(&message);
    coordinator_expect_reports(coordinator, 1, 1, 2, 3);
    coordinator_expect_ended(coordinator, 1, 1, 4, OUTCOME_FINISHED, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
}

static void test_an_assign_for_a_busy_slot_takes_a_free_one(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:2", NULL);
    coordinator_join(coordinator, 2);
    coordinator_assign(coordinator, 1, 1, 1, "{\"hang_at\": 1}", 0, 9, NULL);
    coordinator_assign(coordinator, 1, 2, 1, "{\"epochs\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
}

static void test_an_unknown_session_says_hello_with_what_runs(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:2", NULL);
    coordinator_join(coordinator, 2);
    coordinator_assign(coordinator, 0, 4, 2, "{\"epochs\": 2}", 0, 2, NULL);
    coordinator_expect_reports(coordinator, 4, 2, 1, 2);
    coordinator_expect_only(coordinator, MESSAGE_ENDED);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_error(coordinator, "unknown_session");
    coordinator_error(coordinator, "unknown_session");
    coordinator_expect(coordinator, MESSAGE_HELLO, &message);
    assert_int_equal(message.running_count, 1);
    assert_int_equal(message.running[0].trial, 4);
    assert_int_equal(message.running[0].attempt, 2);
    assert_int_equal(message.running[0].sequence, 3);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_reports(coordinator, 4, 2, 1, 2); /* all that is unacknowledged, from the first */
    coordinator_expect_ended(coordinator, 4, 2, 3, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_expect_only(coordinator, MESSAGE_READY);
}

static void test_another_sweep_drops_what_was_held(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, SLOW, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator->sweep = "another1";
    coordinator_error(coordinator, "unknown_session");
    coordinator_await_hello(coordinator, &message);
    assert_int_equal(message.running_count, 1);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_only(coordinator, MESSAGE_READY); /* of a new runner */
    coordinator_expect_heartbeat(coordinator, &message);
    assert_int_equal(message.running_count, 0);
    message_release(&message);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 1}", 0, 9, NULL); /* that sweep's own trial 1 */
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_FINISHED, NULL);
}

static void test_it_trains_on_without_a_coordinator(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, SLOW, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_acknowledge(coordinator, 1, 1, 1, ACTION_CONTINUE, 9);
    coordinator_expect_reports(coordinator, 1, 1, 2, 2);
    coordinator_vanish(coordinator);
    struct timespec while_away = {.tv_nsec = 600 * 1000000};
    nanosleep(&while_away, NULL);
    coordinator_return(coordinator);
    /* What was on its way, or tried too early, may come before the hello. */
    coordinator_await_hello(coordinator, &message);
    assert_int_equal(message.running_count, 1);
    assert_int_equal(message.running[0].sequence, 10);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_reports(coordinator, 1, 1, 2, 9);
    coordinator_expect_ended(coordinator, 1, 1, 10, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
}

static void test_a_refit_brings_its_model(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char model[SHA256_TEXT];
    struct assignment assignment = {
        .trial = 0,
        .attempt = 1,
        .parameters = json_object(),
        .until = 6,
        .final = json_pack("{s:s,s:i,s:i}", "refit", "train+validation", "seeds", 2, "epochs", 6)};
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    message_init(&message, MESSAGE_ASSIGN);
    message.trials = &assignment;
    message.trial_count = 1;
    coordinator_send(coordinator, &message);
    coordinator_expect_ended(coordinator, 0, 1, 1, OUTCOME_FINISHED, model);
    assert_string_equal(coordinator_blob(coordinator, model), "trial 0 resource 6");
    json_decref(assignment.parameters);
    json_decref(assignment.final);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, coordinator_setup, coordinator_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_a_trial_runs_to_its_end),
        STORY(test_a_pause_uploads_before_it_ends),
        STORY(test_a_checkpoint_from_elsewhere_is_fetched),
        STORY(test_a_checkpoint_that_cannot_be_used_is_told),
        STORY(test_a_higher_until_goes_on_in_memory),
        STORY(test_an_assign_waits_for_the_answer_that_frees_its_slot),
        STORY(test_a_paused_trial_goes_on_from_its_own_file),
        STORY(test_stop_while_it_runs_and_while_it_waits),
        STORY(test_unacknowledged_messages_are_repeated),
        STORY(test_an_assign_is_taken_once),
        STORY(test_an_assign_for_a_busy_slot_waits_its_turn),
        STORY(test_an_assign_for_a_busy_slot_takes_a_free_one),
        STORY(test_an_unknown_session_says_hello_with_what_runs),
        STORY(test_another_sweep_drops_what_was_held),
        STORY(test_it_trains_on_without_a_coordinator),
        STORY(test_a_refit_brings_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
