/* The engine when things break: leases, lost and crashed attempts, lost messages, restarts of either side. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static int set_up(void **state)
{
    static struct engine_fixture fixture;
    engine_fixture_init(&fixture, 3, 3);
    engine_fixture_begin(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    engine_fixture_release(*state);
    return 0;
}

static const int64_t nothing[] = {0};
static const int64_t first_of_trial_1[] = {1, 1, 0};

static void test_a_lapsed_lease_loses_the_attempt(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    assert_int_equal(f->effects.wake_ns, f->now.monotonic_ns + LEASE_NS);
    pass_seconds(f, 29);
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
    pass_seconds(f, 1);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    assert_int_equal(stored_attempt(f, 1, 1)->outcome, OUTCOME_LOST);
    attach(f, 2);
    expect_assign(f, 1, 2, 0, 3);
}

static void test_heartbeats_keep_the_lease(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    for (int i = 0; i < 10; i++) {
        pass_seconds(f, 20);
        say_heartbeat(f, 1, first_of_trial_1, -1);
        assert_int_equal(f->effects.record_count, 0);
    }
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
}

static void test_a_sleeping_server_does_not_lapse_leases(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    f->now.monotonic_ns += 100 * NS_PER_SECOND;
    send_event(f, EVENT_RENEW);
    pass_seconds(f, 29);
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
    pass_seconds(f, 1);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
}

static void test_a_trial_lost_too_often_fails(void **state)
{
    struct engine_fixture *f = *state;
    for (int64_t attempt = 1; attempt <= 4; attempt++) {
        attach(f, (peer_number)attempt);
        expect_assign(f, 1, attempt, 0, 3);
        pass_seconds(f, 31);
    }
    expect_trial(f, 1, TRIAL_FAILED, REASON_LOST);
}

static void test_a_crashed_trial_is_retried_once(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_ended(f, 1, 1, 1, 1, OUTCOME_CRASHED, 0, 0);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    say_ready(f, 1, 0);
    expect_assign(f, 1, 2, 0, 3);
    say_ended(f, 1, 1, 2, 1, OUTCOME_CRASHED, 0, 0);
    expect_trial(f, 1, TRIAL_FAILED, REASON_CRASHED);
}

static void test_failures_that_would_repeat_are_not_retried(void **state)
{
    struct engine_fixture *f = *state;
    static const struct {
        enum outcome outcome;
        enum trial_reason reason;
    } cases[] = {{OUTCOME_OUT_OF_MEMORY, REASON_OUT_OF_MEMORY},
                 {OUTCOME_INVALID, REASON_INVALID},
                 {OUTCOME_DIVERGED, REASON_DIVERGED}};
    attach(f, 1);
    for (int64_t trial = 1; trial <= 3; trial++) {
        say_report(f, 1, trial, 1, 1, 1, 0.5);
        say_ended(f, 1, trial, 1, 2, cases[trial - 1].outcome, 1, 0);
        expect_trial(f, trial, TRIAL_FAILED, cases[trial - 1].reason);
        assert_false(engine_trial(f->engine, trial)->has_objective);
        say_ready(f, 1, 0);
    }
}

static void test_an_interrupted_trial_goes_on_before_new_ones(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_report(f, 1, 1, 1, 2, 2, 0.6);
    say_ended(f, 1, 1, 1, 3, OUTCOME_INTERRUPTED, 2, 'c');
    say_bye(f, 1);
    attach(f, 2);
    expect_assign(f, 1, 2, 2, 3);
    const struct assignment *assignment = sent(f, MESSAGE_ASSIGN)->trials;
    assert_int_equal(assignment->checkpoint[0], 'c');
    assert_int_equal(assignment->checkpoint_bytes, 100);
    assert_int_equal(engine_trial(f->engine, 1)->retries + engine_trial(f->engine, 1)->losses, 0);
}

static void say_checkpoint_lost(struct engine_fixture *f, int64_t attempt)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.trial = message.sequence = 1;
    message.attempt = attempt;
    message.outcome = OUTCOME_INTERRUPTED;
    message.checkpoint_lost = true;
    send_message(f, 1, &message);
}

/* It begins again from 0 and reports again; its objective stays what it was; the blob is let go. */
static void test_a_lost_checkpoint_costs_progress_only(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_INTERRUPTED, 1, 'c');
    say_ready(f, 1, 0);
    expect_assign(f, 1, 2, 1, 3);
    say_checkpoint_lost(f, 2);
    assert_int_equal(f->effects.unneeded_count, 1);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    assert_int_equal(engine_trial(f->engine, 1)->losses, 1);
    engine_fixture_restart(f);
    attach(f, 1);
    expect_assign(f, 1, 3, 0, 3);
    say_report(f, 1, 1, 3, 1, 1, 0.5);
    assert_int_equal(engine_trial(f->engine, 1)->resource, 1);
    assert_true(engine_trial(f->engine, 1)->objective == 0.5);
    say_report(f, 1, 1, 3, 2, 2, 0.6);
    assert_true(engine_trial(f->engine, 1)->objective == 0.6);
}

static void test_a_superseded_checkpoint_is_unneeded(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_INTERRUPTED, 1, 'a');
    assert_int_equal(f->effects.unneeded_count, 0);
    say_ready(f, 1, 0);
    say_report(f, 1, 1, 2, 1, 2, 0.5);
    say_ended(f, 1, 1, 2, 2, OUTCOME_INTERRUPTED, 2, 'b');
    assert_int_equal(f->effects.unneeded_count, 1);
    assert_int_equal(f->effects.unneeded_blobs[0][0], 'a');
}

static void test_only_the_best_trial_keeps_its_checkpoint(void **state)
{
    struct engine_fixture *f = *state;
    static const double scores[] = {0.5, 0.9, 0.7};
    static const char unneeded[] = {0, 'a', 'c'}; /* none; trial 1's; trial 3's own */
    attach(f, 1);
    for (int64_t trial = 1; trial <= 3; trial++) {
        say_report(f, 1, trial, 1, 1, 3, scores[trial - 1]);
        say_ended(f, 1, trial, 1, 2, OUTCOME_FINISHED, 3, (char)('a' + trial - 1));
        assert_int_equal(f->effects.unneeded_count, unneeded[trial - 1] != 0);
        if (unneeded[trial - 1])
            assert_int_equal(f->effects.unneeded_blobs[0][0], unneeded[trial - 1]);
        say_ready(f, 1, 0);
    }
    assert_int_equal(engine_trial(f->engine, 2)->checkpoint[0], 'b');
    assert_int_equal(engine_trial(f->engine, 1)->checkpoint[0], 0);
}

static void test_an_old_attempt_is_kept_and_ignored(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    pass_seconds(f, 31);
    attach(f, 2);
    expect_assign(f, 1, 2, 0, 3);
    say_hello(f, 1, "w1", '1', first_of_trial_1);
    expect_acknowledge(f, 0, ACTION_STOP, 3);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    expect_acknowledge(f, 1, ACTION_STOP, 3);
    assert_int_equal(stored_count(f, RECORD_REPORT), 1);
    assert_int_equal(engine_trial(f->engine, 1)->resource, 0);
    say_ended(f, 1, 1, 1, 2, OUTCOME_FINISHED, 3, 'd');
    expect_acknowledge(f, 2, ACTION_STOP, 3);
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
    assert_int_equal(stored_attempt(f, 1, 1)->outcome, OUTCOME_LOST);
    engine_fixture_restart(f); /* and recovery still knows that it came too late */
    assert_int_equal(engine_trial(f->engine, 1)->resource, 0);
    assert_false(engine_trial(f->engine, 1)->has_objective);
}

static void test_a_lost_assign_is_sent_again(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_heartbeat(f, 1, nothing, 0);
    expect_assign(f, 1, 1, 0, 3);
    assert_int_equal(f->effects.record_count, 0);
    say_heartbeat(f, 1, first_of_trial_1, -1);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
}

static void test_a_lost_ready_is_heard_in_the_heartbeat(void **state)
{
    struct engine_fixture *f = *state;
    say_hello(f, 1, "w1", '1', NULL);
    say_heartbeat(f, 1, nothing, 0);
    expect_assign(f, 1, 1, 0, 3);
}

static void test_what_a_worker_should_not_run_it_stops(void **state)
{
    struct engine_fixture *f = *state;
    static const int64_t foreign[] = {55, 2, 0};
    attach(f, 1);
    say_heartbeat(f, 1, foreign, -1);
    assert_int_equal(sent(f, MESSAGE_ACKNOWLEDGE)->trial, 55);
    assert_int_equal(sent(f, MESSAGE_ACKNOWLEDGE)->action, ACTION_STOP);
}

static void test_a_second_live_worker_of_a_name_is_refused(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_hello(f, 2, "w1", '2', NULL);
    assert_string_equal(sent(f, MESSAGE_ERROR)->code, "name_taken");
    pass_seconds(f, 30);
    say_hello(f, 2, "w1", '2', NULL);
    assert_non_null(sent(f, MESSAGE_WELCOME));
}

static void test_a_worker_that_said_bye_leaves_its_name(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_heartbeat(f, 1, first_of_trial_1, -1);
    say_bye(f, 1);
    assert_int_equal(stored_attempt(f, 1, 1)->outcome, OUTCOME_LOST);
    say_hello(f, 2, "w1", '2', NULL);
    assert_non_null(sent(f, MESSAGE_WELCOME));
}

static void test_what_a_leaving_worker_never_heard_of_is_not_lost(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_bye(f, 1);
    assert_int_equal(stored_attempt(f, 1, 1)->outcome, OUTCOME_INTERRUPTED);
    assert_int_equal(engine_trial(f->engine, 1)->losses, 0);
}

static void test_a_reconnected_worker_keeps_its_attempt(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_hello(f, 7, "w1", '1', first_of_trial_1);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    say_report(f, 7, 1, 1, 1, 1, 0.5);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
    say_report(f, 1, 1, 1, 2, 2, 0.5); /* the old peer is nobody now */
    assert_string_equal(sent(f, MESSAGE_ERROR)->code, "unknown_session");
}

static void test_a_restarted_coordinator_meets_its_workers(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    engine_fixture_restart(f);
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
    say_report(f, 5, 1, 1, 2, 2, 0.6);
    assert_string_equal(sent(f, MESSAGE_ERROR)->code, "unknown_session");
    say_hello(f, 5, "w1", '1', first_of_trial_1);
    say_report(f, 5, 1, 1, 1, 1, 0.5); /* its acknowledge was lost */
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
    assert_int_equal(f->effects.record_count, 0);
    say_report(f, 5, 1, 1, 2, 2, 0.6);
    expect_acknowledge(f, 2, ACTION_CONTINUE, 3);
}

static void test_an_assign_lost_in_a_restart_goes_to_somebody_else(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    engine_fixture_restart(f);
    say_hello(f, 5, "w1", '1', nothing);
    assert_int_equal(stored_attempt(f, 1, 1)->outcome, OUTCOME_INTERRUPTED);
    say_ready(f, 5, 0);
    expect_assign(f, 1, 2, 0, 3);
}

static void test_a_restarted_coordinator_waits_a_whole_lease(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    pass_seconds(f, 29);
    engine_fixture_restart(f);
    pass_seconds(f, 29);
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
    pass_seconds(f, 1);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
}

static void test_an_interrupted_coordinator_hands_everything_back(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    assert_false(engine_is_quiet(f->engine));
    send_event(f, EVENT_INTERRUPT);
    assert_true(sent(f, MESSAGE_DRAIN)->now);
    say_ended(f, 1, 1, 1, 2, OUTCOME_INTERRUPTED, 1, 'a');
    assert_true(engine_is_quiet(f->engine));
    say_ready(f, 1, 0);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    attach(f, 2);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    assert_false(engine_has_ended(f->engine));
    engine_fixture_restart(f);
    attach(f, 3);
    expect_assign(f, 1, 2, 1, 3);
}

static void test_done_waits_for_workers_or_their_leases(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    for (int64_t trial = 1; trial <= 3; trial++) {
        run_trial(f, 1, trial, 1, 3, 0.5);
        if (trial < 3)
            say_ready(f, 1, 0);
    }
    assert_true(engine_has_ended(f->engine));
    say_heartbeat(f, 1, nothing, 0);
    assert_non_null(sent(f, MESSAGE_DRAIN)); /* the first may have been lost */
    assert_false(engine_is_done(f->engine));
    pass_seconds(f, 30);
    assert_true(engine_is_done(f->engine));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_lapsed_lease_loses_the_attempt),
        TEST(test_heartbeats_keep_the_lease),
        TEST(test_a_sleeping_server_does_not_lapse_leases),
        TEST(test_a_trial_lost_too_often_fails),
        TEST(test_a_crashed_trial_is_retried_once),
        TEST(test_failures_that_would_repeat_are_not_retried),
        TEST(test_an_interrupted_trial_goes_on_before_new_ones),
        TEST(test_a_lost_checkpoint_costs_progress_only),
        TEST(test_a_superseded_checkpoint_is_unneeded),
        TEST(test_only_the_best_trial_keeps_its_checkpoint),
        TEST(test_an_old_attempt_is_kept_and_ignored),
        TEST(test_a_lost_assign_is_sent_again),
        TEST(test_a_lost_ready_is_heard_in_the_heartbeat),
        TEST(test_what_a_worker_should_not_run_it_stops),
        TEST(test_a_second_live_worker_of_a_name_is_refused),
        TEST(test_a_worker_that_said_bye_leaves_its_name),
        TEST(test_what_a_leaving_worker_never_heard_of_is_not_lost),
        TEST(test_a_reconnected_worker_keeps_its_attempt),
        TEST(test_a_restarted_coordinator_meets_its_workers),
        TEST(test_an_assign_lost_in_a_restart_goes_to_somebody_else),
        TEST(test_a_restarted_coordinator_waits_a_whole_lease),
        TEST(test_an_interrupted_coordinator_hands_everything_back),
        TEST(test_done_waits_for_workers_or_their_leases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
