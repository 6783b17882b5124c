/* The engine without faults: sessions, work, sequences, objectives, the refit, the operator. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    static struct engine_fixture fixture;
    engine_fixture_init(&fixture, 3, 2);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    engine_fixture_release(*state);
    return 0;
}

static void test_a_sweep_runs_to_its_end(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    expect_assign(f, 1, 1, 0, 2);
    run_trial(f, 1, 1, 1, 2, 0.5);
    expect_trial(f, 1, TRIAL_COMPLETED, REASON_FINISHED);
    say_ready(f, 1, 0);
    expect_assign(f, 2, 1, 0, 2);
    run_trial(f, 1, 2, 1, 2, 0.9);
    say_ready(f, 1, 0);
    run_trial(f, 1, 3, 1, 2, 0.7);
    assert_true(engine_has_ended(f->engine));
    assert_false(engine_is_done(f->engine));
    assert_string_equal(sent(f, MESSAGE_DRAIN)->reason, "sweep finished");
    struct engine_counts counts;
    engine_counts(f->engine, &counts);
    assert_int_equal(counts.completed, 3);
    assert_int_equal(counts.best_trial, 2);
    assert_int_equal(counts.state, SWEEP_FINISHED);
    say_bye(f, 1);
    assert_true(engine_is_done(f->engine));
}

static void test_a_lingering_sweep_is_never_done(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.linger = true;
    f->settings.run_cap = 0;
    engine_fixture_begin(f);
    assert_true(engine_has_ended(f->engine));
    assert_false(engine_is_done(f->engine));
}

static void test_a_stranger_is_asked_to_say_hello(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    say_ready(f, 9, 0);
    assert_string_equal(sent(f, MESSAGE_ERROR)->code, "unknown_session");
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
}

static void test_another_protocol_is_refused(void **state)
{
    struct engine_fixture *f = *state;
    struct message message;
    engine_fixture_begin(f);
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION + 1;
    message.worker = strdup("w");
    message.session = strdup("0123456789abcdef");
    send_message(f, 1, &message);
    assert_string_equal(sent(f, MESSAGE_ERROR)->code, "protocol");
}

static void test_idle_slots_are_served_when_work_appears(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 1;
    engine_fixture_begin(f);
    attach(f, 1);
    expect_assign(f, 1, 1, 0, 2);
    attach(f, 2);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    say_ended(f, 1, 1, 1, 1, OUTCOME_CRASHED, 0, 0);
    expect_assign(f, 1, 2, 0, 2);
    assert_int_equal(f->effects.messages[1].peer, 2);
}

static void test_a_repeated_report_counts_once(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    size_t reports = stored_count(f, RECORD_REPORT);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 2);
    assert_int_equal(f->effects.record_count, 0);
    assert_int_equal(stored_count(f, RECORD_REPORT), reports);
    assert_float_equal(stored_attempt(f, 1, 1)->seconds, 0.5, 0);
}

static void test_an_early_message_is_not_applied(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 2, 2, 0.5);
    expect_acknowledge(f, 0, ACTION_CONTINUE, 2);
    assert_int_equal(stored_count(f, RECORD_REPORT), 0);
    say_ended(f, 1, 1, 1, 3, OUTCOME_FINISHED, 2, 0);
    expect_acknowledge(f, 0, ACTION_CONTINUE, 2);
    expect_trial(f, 1, TRIAL_RUNNING, REASON_NONE);
}

static void test_a_repeated_end_is_answered_alike(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    run_trial(f, 1, 1, 1, 2, 0.5);
    say_ended(f, 1, 1, 1, 3, OUTCOME_FINISHED, 2, 0);
    expect_acknowledge(f, 3, ACTION_STOP, 2);
    assert_int_equal(f->effects.record_count, 0);
}

static void test_an_attempt_of_nobody_may_be_forgotten(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 77, 1, 5, 1, 0.5);
    expect_acknowledge(f, 5, ACTION_STOP, 0);
    attach(f, 2);
    say_report(f, 2, 1, 1, 4, 1, 0.5); /* another worker's */
    expect_acknowledge(f, 4, ACTION_STOP, 0);
    assert_int_equal(stored_count(f, RECORD_REPORT), 0);
}

static void test_the_objective_is_the_last_value(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    say_report(f, 1, 1, 1, 2, 2, 0.4);
    assert_float_equal(engine_trial(f->engine, 1)->objective, 0.4, 0);
}

static void test_the_objective_may_be_the_best_value(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.objective_best = true;
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    say_report(f, 1, 1, 1, 2, 2, NAN);
    assert_true(engine_trial(f->engine, 1)->has_objective);
    assert_float_equal(engine_trial(f->engine, 1)->objective, 0.9, 0);
}

static void test_a_value_that_is_no_number_is_no_objective(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    say_report(f, 1, 1, 1, 2, 2, INFINITY);
    assert_false(engine_trial(f->engine, 1)->has_objective);
    struct engine_counts counts;
    engine_counts(f->engine, &counts);
    assert_int_equal(counts.ranked, 0);
}

static void test_a_misspelt_metric_is_noticed_at_once(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.metric = "scorr";
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    assert_non_null(
        strstr(stored_attempt(f, 1, 1)->error, "\"scorr\" is not in the first report, which has score"));
    say_report(f, 1, 1, 1, 2, 2, 0.9);
    say_ended(f, 1, 1, 1, 3, OUTCOME_FINISHED, 2, 0);
    expect_trial(f, 1, TRIAL_FAILED, REASON_NO_METRIC);
}

static void test_without_a_metric_trials_complete_unranked(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.metric = NULL;
    engine_fixture_begin(f);
    attach(f, 1);
    run_trial(f, 1, 1, 1, 2, 0.5);
    expect_trial(f, 1, TRIAL_COMPLETED, REASON_FINISHED);
    assert_false(engine_trial(f->engine, 1)->has_objective);
}

static void finish_three(struct engine_fixture *f)
{
    static const double scores[] = {0.5, 0.9, 0.7};
    engine_fixture_begin(f);
    attach(f, 1);
    for (int64_t trial = 1; trial <= 3; trial++) {
        say_report(f, 1, trial, 1, 1, 1, scores[trial - 1] + 0.01);
        say_report(f, 1, trial, 1, 2, 2, scores[trial - 1]);
        say_ended(f, 1, trial, 1, 3, OUTCOME_FINISHED, 2, 0);
        say_ready(f, 1, 0);
    }
}

static void test_the_winner_is_trained_again(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i, s:s}", "refit", "all", "seeds", 1, "epochs", "best");
    f->settings.final = final;
    finish_three(f);
    expect_assign(f, 0, 1, 0, 1); /* trial 2 was best at its first epoch */
    const struct assignment *assignment = sent(f, MESSAGE_ASSIGN)->trials;
    assert_true(json_equal(assignment->parameters, engine_trial(f->engine, 2)->parameters));
    assert_int_equal(json_get_integer(assignment->final, "epochs", 0), 1);
    assert_string_equal(json_get_string(assignment->final, "refit", ""), "all");
    assert_false(engine_has_ended(f->engine));

    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.sequence = message.attempt = message.resource = 1;
    message.outcome = OUTCOME_FINISHED;
    message.details = json_pack("{s:f}", "test_accuracy", 0.97);
    send_message(f, 1, &message);
    assert_true(engine_has_ended(f->engine));
    json_t *status = engine_status(f->engine, f->now);
    assert_float_equal(json_get_number(json_object_get(status, "final"), "test_accuracy", 0), 0.97, 0);
    json_decref(status);
    json_decref(final);
}

static void test_a_failed_refit_ends_the_sweep_with_a_note(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i, s:i}", "refit", "all", "seeds", 1, "epochs", 5);
    f->settings.final = final;
    finish_three(f);
    expect_assign(f, 0, 1, 0, 5);
    say_ended(f, 1, 0, 1, 1, OUTCOME_OUT_OF_MEMORY, 0, 0);
    assert_true(engine_has_ended(f->engine));
    json_t *status = engine_status(f->engine, f->now);
    assert_string_equal(json_get_string(status, "state", ""), "finished");
    assert_string_equal(json_get_string(json_object_get(status, "final"), "failed", ""), "out_of_memory");
    assert_int_equal(json_array_size(json_object_get(status, "notes")), 1);
    json_decref(status);
    json_decref(final);
}

static const struct message *operate(struct engine_fixture *f, enum message_type type, bool now)
{
    struct message message;
    message_init(&message, type);
    message.now = now;
    send_message(f, 99, &message);
    assert_int_equal(sent_count(f, MESSAGE_ANSWER), 1);
    return sent(f, MESSAGE_ANSWER);
}

static void test_a_paused_sweep_starts_nothing(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    assert_string_equal(json_get_string(operate(f, MESSAGE_PAUSE, false)->body, "state", ""), "paused");
    attach(f, 1);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    engine_fixture_restart(f); /* it stays paused */
    attach(f, 1);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    assert_string_equal(json_get_string(operate(f, MESSAGE_RESUME, false)->body, "state", ""), "running");
    expect_assign(f, 1, 1, 0, 2);
}

static void test_a_larger_run_cap_goes_on(void **state)
{
    struct engine_fixture *f = *state;
    finish_three(f);
    assert_true(engine_has_ended(f->engine));
    engine_fixture_restart(f);
    assert_true(engine_has_ended(f->engine));
    f->settings.run_cap = 4;
    engine_fixture_restart(f);
    assert_false(engine_has_ended(f->engine));
    attach(f, 1);
    expect_assign(f, 4, 1, 0, 2);
    run_trial(f, 1, 4, 1, 2, 0.1);
    assert_true(engine_has_ended(f->engine));
}

/* The winner is the one of before; its refit runs all the same and replaces what was the result. */
static void test_an_extended_sweep_refits_again(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i, s:i}", "refit", "all", "seeds", 1, "epochs", 2);
    f->settings.final = final;
    finish_three(f);
    say_ended(f, 1, 0, 1, 1, OUTCOME_FINISHED, 2, 'f');
    assert_true(engine_has_ended(f->engine));
    f->settings.run_cap = 4;
    engine_fixture_restart(f);
    attach(f, 1);
    run_trial(f, 1, 4, 1, 2, 0.1);
    say_ready(f, 1, 0);
    expect_assign(f, 0, 2, 0, 2);
    engine_fixture_restart(f); /* not begun a third time */
    pass_seconds(f, 31);
    attach(f, 6);
    expect_assign(f, 0, 3, 0, 2);
    say_ended(f, 6, 0, 3, 1, OUTCOME_FINISHED, 2, 'e');
    assert_true(engine_has_ended(f->engine));
    assert_int_equal(engine_trial(f->engine, 0)->checkpoint[0], 'e');
    json_decref(final);
}

static void test_points_do_not_depend_on_who_asks(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    attach(f, 2);
    engine_fixture_restart(f);
    attach(f, 3);
    for (int64_t trial = 1; trial <= 3; trial++) {
        json_t *expected = random_sampler.propose(&f->space, 7, trial);
        assert_true(json_equal(expected, engine_trial(f->engine, trial)->parameters));
        json_decref(expected);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_sweep_runs_to_its_end),
        TEST(test_a_lingering_sweep_is_never_done),
        TEST(test_a_stranger_is_asked_to_say_hello),
        TEST(test_another_protocol_is_refused),
        TEST(test_idle_slots_are_served_when_work_appears),
        TEST(test_a_repeated_report_counts_once),
        TEST(test_an_early_message_is_not_applied),
        TEST(test_a_repeated_end_is_answered_alike),
        TEST(test_an_attempt_of_nobody_may_be_forgotten),
        TEST(test_the_objective_is_the_last_value),
        TEST(test_the_objective_may_be_the_best_value),
        TEST(test_a_value_that_is_no_number_is_no_objective),
        TEST(test_a_misspelt_metric_is_noticed_at_once),
        TEST(test_without_a_metric_trials_complete_unranked),
        TEST(test_the_winner_is_trained_again),
        TEST(test_a_failed_refit_ends_the_sweep_with_a_note),
        TEST(test_a_paused_sweep_starts_nothing),
        TEST(test_a_larger_run_cap_goes_on),
        TEST(test_an_extended_sweep_refits_again),
        TEST(test_points_do_not_depend_on_who_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
