/* The engine at rungs: halving, asha by promotion and by stopping; what is told to the worker that waits
 * there. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static int set_up(void **state)
{
    static struct engine_fixture fixture;
    engine_fixture_init(&fixture, 3, 9);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    engine_fixture_release(*state);
    return 0;
}

static void begin(struct engine_fixture *f, enum stopping_kind kind)
{
    engine_fixture_halving(f, kind, 1, 9, 3);
    engine_fixture_begin(f);
}

/* Runs a trial's first rung and pauses it there. */
static void pause_at_first_rung(struct engine_fixture *f, peer_number peer, int64_t trial, double score,
                                char checkpoint)
{
    say_report(f, peer, trial, 1, 1, 1, score);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    say_ended(f, peer, trial, 1, 2, OUTCOME_PAUSED, 1, checkpoint);
    expect_trial(f, trial, TRIAL_PAUSED, REASON_NONE);
}

static void test_halving_promotes_the_best_from_its_checkpoint(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    expect_assign(f, 1, 1, 0, 1);
    pause_at_first_rung(f, 1, 1, 0.5, 'a');
    pause_at_first_rung(f, 1, 2, 0.9, 'b');
    say_report(f, 1, 3, 1, 1, 1, 0.7); /* the rung is complete: 2 goes on in this slot, 1 and 3 are out */
    expect_trial(f, 1, TRIAL_STOPPED, REASON_PRUNED);
    expect_acknowledge(f, 1, ACTION_STOP, 1);
    expect_assign(f, 2, 2, 1, 3);
    assert_int_equal(sent(f, MESSAGE_ASSIGN)->trials[0].checkpoint[0], 'b');
    assert_int_equal(f->effects.unneeded_count, 0); /* 1 is the best that has ended yet */
    say_ended(f, 1, 3, 1, 2, OUTCOME_STOPPED, 1, 0);
    expect_trial(f, 3, TRIAL_STOPPED, REASON_PRUNED);
}

static void test_a_pause_frees_the_slot_with_its_answer(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    expect_assign(f, 2, 1, 0, 1);
    assert_int_equal(f->effects.messages[0].message.type, MESSAGE_ACKNOWLEDGE); /* in this order */
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE); /* until its checkpoint is here */
    /* Neither a report that is repeated nor the slot's own word for it gives it away again. */
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    say_ready(f, 1, 0);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    say_heartbeat(f, 1, (int64_t[]){1, 1, 2, 1, 0}, -1);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    /* A worker that does not know of the new one is told again. */
    say_heartbeat(f, 1, (int64_t[]){1, 1, 0}, -1);
    expect_assign(f, 2, 1, 0, 1);
    say_ended(f, 1, 1, 1, 2, OUTCOME_PAUSED, 1, 'a');
    expect_trial(f, 1, TRIAL_PAUSED, REASON_NONE);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
}

static void test_a_worker_that_dies_while_it_uploads_loses_that_trial_too(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    expect_assign(f, 2, 1, 0, 1);
    pass_seconds(f, 30);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    expect_trial(f, 2, TRIAL_WAITING, REASON_NONE);
    attach(f, 2);
    expect_assign(f, 1, 2, 0, 1);
}

static void test_the_last_at_a_rung_goes_on_without_a_pause(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    pause_at_first_rung(f, 1, 1, 0.5, 'a');
    pause_at_first_rung(f, 1, 2, 0.6, 'b');
    say_report(f, 1, 3, 1, 1, 1, 0.7);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
    assert_int_equal(stored_attempt(f, 3, 1)->until, 3);
    say_report(f, 1, 3, 1, 2, 2, 0.7);
    say_report(f, 1, 3, 1, 3, 3, 0.7); /* alone at its rung: on to the top at once */
    expect_acknowledge(f, 3, ACTION_CONTINUE, 9);
}

/* Three workers at a rung, where trial 1 wins; it has not sent its checkpoint, and its slot is free. */
static bool win_at_rung(struct engine_fixture *f)
{
    bool raised = false;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    attach(f, 2);
    attach(f, 3);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    say_report(f, 2, 2, 1, 1, 1, 0.5);
    say_report(f, 3, 3, 1, 1, 1, 0.6);
    for (size_t i = 0; i < f->effects.message_count; i++)
        raised |= f->effects.messages[i].peer == 1 && f->effects.messages[i].message.until == 3;
    return raised;
}

static void test_a_trial_promoted_before_it_uploads_goes_on_there(void **state)
{
    struct engine_fixture *f = *state;
    assert_true(win_at_rung(f));
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    say_ready(f, 1, 0); /* said before it heard */
    assert_int_equal(f->effects.record_count, 0);
    engine_fixture_restart(f);
    assert_int_equal(f->effects.record_count, 0);
    say_hello(f, 5, "w1", '1', (int64_t[]){1, 1, 0});
    say_report(f, 5, 1, 1, 1, 1, 0.9);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
    say_report(f, 5, 1, 1, 2, 2, 0.9);
    expect_acknowledge(f, 2, ACTION_CONTINUE, 3);
}

static void test_a_promotion_and_the_end_of_a_pause_may_cross(void **state)
{
    struct engine_fixture *f = *state;
    assert_true(win_at_rung(f));
    say_ended(f, 1, 1, 1, 2, OUTCOME_PAUSED, 1, 'a');
    expect_assign(f, 1, 2, 1, 3); /* nobody says again that the slot is free */
}

static void test_a_trial_promoted_before_it_uploads_may_be_lost(void **state)
{
    struct engine_fixture *f = *state;
    assert_true(win_at_rung(f));
    say_bye(f, 1);
    expect_assign(f, 1, 2, 0, 3);
}

static void test_answers_at_a_rung_survive_a_restart(void **state)
{
    struct engine_fixture *f = *state;
    static const int64_t third[] = {3, 1, 0};
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    pause_at_first_rung(f, 1, 1, 0.5, 'a');
    pause_at_first_rung(f, 1, 2, 0.9, 'b');
    say_report(f, 1, 3, 1, 1, 1, 0.7);
    expect_acknowledge(f, 1, ACTION_STOP, 1);
    expect_assign(f, 2, 2, 1, 3);
    engine_fixture_restart(f);
    assert_int_equal(f->effects.record_count, 0);
    say_hello(f, 5, "w1", '1', third); /* it never got that assign */
    expect_trial(f, 2, TRIAL_WAITING, REASON_NONE);
    say_report(f, 5, 3, 1, 1, 1, 0.7);
    expect_acknowledge(f, 1, ACTION_STOP, 1);
    say_ended(f, 5, 3, 1, 2, OUTCOME_STOPPED, 1, 0);
    say_ready(f, 5, 0);
    expect_assign(f, 2, 3, 1, 3);
}

static void test_a_retried_trial_enters_its_rung_once(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_CRASHED, 1, 0); /* its checkpoint could not be sent */
    say_ready(f, 1, 1);
    expect_assign(f, 1, 2, 0, 1);
    say_report(f, 1, 1, 2, 1, 1, 0.8);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    assert_int_equal(stored_count(f, RECORD_RUNG_ENTRY), 1);
}

static void test_a_trial_handed_back_at_its_rung_is_paused(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_INTERRUPTED, 1, 'a');
    expect_trial(f, 1, TRIAL_PAUSED, REASON_NONE);
}

static void test_a_diverged_trial_does_not_hold_its_rung_up(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    pause_at_first_rung(f, 1, 1, 0.5, 'a');
    pause_at_first_rung(f, 1, 2, 0.4, 'b');
    say_ended(f, 1, 3, 1, 1, OUTCOME_DIVERGED, 1, 0);
    expect_trial(f, 3, TRIAL_FAILED, REASON_DIVERGED);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    expect_trial(f, 2, TRIAL_STOPPED, REASON_PRUNED);
}

static void test_diverging_does_not_depend_on_when_it_is_heard(void **state)
{
    struct engine_fixture *f = *state;
    begin(f, STOPPING_SUCCESSIVE_HALVING);
    attach(f, 1);
    attach(f, 2);
    say_report(f, 2, 2, 1, 1, 1, NAN); /* and its worker dies before it can say that this was the end */
    for (int i = 0; i < 2; i++) {
        pass_seconds(f, 20);
        say_heartbeat(f, 1, (int64_t[]){1, 1, 0}, -1);
    }
    expect_trial(f, 2, TRIAL_WAITING, REASON_NONE);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    expect_assign(f, 2, 2, 0, 1);
    attach(f, 3);
    expect_assign(f, 3, 2, 0, 1);
    say_report(f, 3, 3, 2, 1, 1, 0.6); /* the rung is complete */
    expect_trial(f, 2, TRIAL_RUNNING, REASON_NONE);
    say_report(f, 1, 2, 2, 1, 1, NAN);
    say_ended(f, 1, 2, 2, 2, OUTCOME_DIVERGED, 1, 0);
    expect_trial(f, 2, TRIAL_FAILED, REASON_DIVERGED);
}

static void test_asha_promotes_when_a_slot_is_free(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 100;
    begin(f, STOPPING_ASHA_PROMOTION);
    attach(f, 1);
    pause_at_first_rung(f, 1, 1, 0.9, 'a');
    pause_at_first_rung(f, 1, 2, 0.5, 'b');
    say_report(f, 1, 3, 1, 1, 1, 0.6); /* three entries: the best one may go on */
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    expect_assign(f, 1, 2, 1, 3);
}

static void test_asha_promotes_the_reporting_trial_at_once(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 100;
    begin(f, STOPPING_ASHA_PROMOTION);
    attach(f, 1);
    pause_at_first_rung(f, 1, 1, 0.4, 'a');
    pause_at_first_rung(f, 1, 2, 0.5, 'b');
    say_report(f, 1, 3, 1, 1, 1, 0.6);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
}

static void test_asha_takes_the_best_to_the_top_in_the_end(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 2;
    begin(f, STOPPING_ASHA_PROMOTION);
    attach(f, 1);
    pause_at_first_rung(f, 1, 1, 0.9, 'a');
    say_report(f, 1, 2, 1, 1, 1, 0.5);
    expect_assign(f, 1, 2, 1, 3);
    say_ended(f, 1, 2, 1, 2, OUTCOME_PAUSED, 1, 'b');
    say_report(f, 1, 1, 2, 1, 2, 0.9);
    say_report(f, 1, 1, 2, 2, 3, 0.9);
    expect_acknowledge(f, 2, ACTION_CONTINUE, 9);
    for (int64_t resource = 4; resource <= 9; resource++)
        say_report(f, 1, 1, 2, resource - 1, resource, 0.9);
    say_ended(f, 1, 1, 2, 9, OUTCOME_FINISHED, 9, 'c');
    expect_trial(f, 1, TRIAL_COMPLETED, REASON_FINISHED);
    expect_trial(f, 2, TRIAL_STOPPED, REASON_PRUNED);
    assert_true(engine_has_ended(f->engine));
}

static void test_asha_stopping_stops_at_the_rung(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 4;
    begin(f, STOPPING_ASHA_STOPPING);
    for (int64_t trial = 1; trial <= 4; trial++)
        attach(f, (peer_number)trial);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
    say_report(f, 2, 2, 1, 1, 1, 0.6);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 3);
    say_report(f, 3, 3, 1, 1, 1, 0.4);
    expect_acknowledge(f, 1, ACTION_STOP, 1);
    expect_trial(f, 3, TRIAL_RUNNING, REASON_NONE);
    engine_fixture_restart(f); /* in hindsight trial 1 would have been stopped: it was not */
    say_hello(f, 11, "w1", '1', (int64_t[]){1, 1, 0});
    say_hello(f, 13, "w3", '1', (int64_t[]){3, 1, 0});
    say_report(f, 13, 3, 1, 1, 1, 0.4);
    expect_acknowledge(f, 1, ACTION_STOP, 1);
    say_report(f, 11, 1, 1, 2, 2, 0.5);
    expect_acknowledge(f, 2, ACTION_CONTINUE, 3);
    say_report(f, 11, 1, 1, 3, 3, 0.5);
    expect_acknowledge(f, 3, ACTION_CONTINUE, 9);
}

static void test_a_stopped_trial_whose_worker_dies_is_stopped(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 3;
    begin(f, STOPPING_ASHA_STOPPING);
    for (int64_t trial = 1; trial <= 3; trial++)
        attach(f, (peer_number)trial);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_report(f, 2, 2, 1, 1, 1, 0.6);
    say_report(f, 3, 3, 1, 1, 1, 0.4);
    pass_seconds(f, 30);
    expect_trial(f, 3, TRIAL_STOPPED, REASON_PRUNED);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
}

static void test_a_jump_enters_every_rung_it_passed(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 1;
    begin(f, STOPPING_ASHA_STOPPING);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 4, 0.5);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 9);
    assert_int_equal(stored_count(f, RECORD_RUNG_ENTRY), 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_halving_promotes_the_best_from_its_checkpoint),
        TEST(test_the_last_at_a_rung_goes_on_without_a_pause),
        TEST(test_a_pause_frees_the_slot_with_its_answer),
        TEST(test_a_worker_that_dies_while_it_uploads_loses_that_trial_too),
        TEST(test_a_trial_promoted_before_it_uploads_goes_on_there),
        TEST(test_a_promotion_and_the_end_of_a_pause_may_cross),
        TEST(test_a_trial_promoted_before_it_uploads_may_be_lost),
        TEST(test_answers_at_a_rung_survive_a_restart),
        TEST(test_a_retried_trial_enters_its_rung_once),
        TEST(test_a_trial_handed_back_at_its_rung_is_paused),
        TEST(test_a_diverged_trial_does_not_hold_its_rung_up),
        TEST(test_diverging_does_not_depend_on_when_it_is_heard),
        TEST(test_asha_promotes_when_a_slot_is_free),
        TEST(test_asha_promotes_the_reporting_trial_at_once),
        TEST(test_asha_takes_the_best_to_the_top_in_the_end),
        TEST(test_asha_stopping_stops_at_the_rung),
        TEST(test_a_stopped_trial_whose_worker_dies_is_stopped),
        TEST(test_a_jump_enters_every_rung_it_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
