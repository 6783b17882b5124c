/* The operator ends a sweep: what runs comes to its `until` or is handed back, what waits never runs, and a
 * sweep stopped so is over for good. And what the operator is told of the workers. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int set_up(void **state)
{
    static struct engine_fixture fixture;
    engine_fixture_init(&fixture, 9, 9);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    engine_fixture_release(*state);
    return 0;
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

static void expect_stopped(struct engine_fixture *f)
{
    assert_true(engine_has_ended(f->engine));
    struct engine_counts counts;
    engine_counts(f->engine, &counts);
    assert_int_equal(counts.state, SWEEP_STOPPED);
    assert_int_equal(counts.waiting + counts.running + counts.paused, 0);
    assert_string_equal(operate(f, MESSAGE_RESUME, false)->error, "the sweep has ended");
    engine_fixture_restart(f);
    assert_true(engine_has_ended(f->engine)); /* for good */
}

static void test_what_runs_finishes(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    assert_string_equal(json_get_string(operate(f, MESSAGE_STOP, false)->body, "state", ""), "stopping");
    assert_null(sent(f, MESSAGE_DRAIN));
    assert_string_equal(operate(f, MESSAGE_RESUME, false)->error, "the sweep is being stopped");
    run_trial(f, 1, 1, 1, 9, 0.5);
    expect_trial(f, 1, TRIAL_COMPLETED, REASON_FINISHED);
    assert_string_equal(sent(f, MESSAGE_DRAIN)->reason, "sweep stopped");
    expect_stopped(f);
}

static void test_now_hands_everything_back(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i, s:i}", "refit", "all", "seeds", 1, "epochs", 2);
    f->settings.final = final;
    engine_fixture_begin(f);
    attach(f, 1);
    assert_string_equal(json_get_string(operate(f, MESSAGE_STOP, true)->body, "state", ""), "stopping_now");
    assert_true(sent(f, MESSAGE_DRAIN)->now);
    assert_false(sent(f, MESSAGE_DRAIN)->wait);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_INTERRUPTED, 1, 'a');
    expect_trial(f, 1, TRIAL_STOPPED, REASON_USER);
    assert_int_equal(engine_trial(f->engine, 1)->checkpoint[0], 'a'); /* the best there is */
    assert_null(engine_trial(f->engine, 0));                          /* no refit */
    expect_stopped(f);
    json_decref(final);
}

/* Trial 1 rests paused, 2 waits to be run again, 3 is at work. */
static void begin_halving(struct engine_fixture *f, enum stopping_kind kind)
{
    engine_fixture_halving(f, kind, 1, 9, 3);
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_PAUSED, 1, 'a');
    expect_trial(f, 1, TRIAL_PAUSED, REASON_NONE);
    say_ready(f, 1, 0);
    attach(f, 2);
    say_bye(f, 1);
    expect_trial(f, 2, TRIAL_WAITING, REASON_NONE);
    expect_trial(f, 3, TRIAL_RUNNING, REASON_NONE);
}

static void test_what_is_paused_or_waits_ends_at_once(void **state)
{
    struct engine_fixture *f = *state;
    begin_halving(f, STOPPING_ASHA_PROMOTION);
    operate(f, MESSAGE_STOP, false);
    expect_trial(f, 1, TRIAL_STOPPED, REASON_USER);
    expect_trial(f, 2, TRIAL_STOPPED, REASON_USER);
    say_report(f, 2, 3, 1, 1, 1, 0.9); /* it would be promoted */
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    say_ended(f, 2, 3, 1, 2, OUTCOME_PAUSED, 1, 'c');
    expect_trial(f, 3, TRIAL_STOPPED, REASON_USER);
    assert_int_equal(f->effects.unneeded_count, 1);
    assert_int_equal(f->effects.unneeded_blobs[0][0], 'a'); /* 3 is the best now */
    expect_stopped(f);
}

static void test_what_goes_on_at_its_rung_stops_there_too(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_halving(f, STOPPING_ASHA_STOPPING, 1, 9, 3);
    engine_fixture_begin(f);
    attach(f, 1);
    operate(f, MESSAGE_STOP, false);
    say_report(f, 1, 1, 1, 1, 1, 0.9);
    expect_acknowledge(f, 1, ACTION_CONTINUE, 1);
    say_ended(f, 1, 1, 1, 2, OUTCOME_PAUSED, 1, 'a');
    expect_trial(f, 1, TRIAL_STOPPED, REASON_USER);
    expect_stopped(f);
}

static void test_what_is_lost_meanwhile_is_not_run_again(void **state)
{
    struct engine_fixture *f = *state;
    begin_halving(f, STOPPING_ASHA_PROMOTION);
    operate(f, MESSAGE_STOP, false);
    say_bye(f, 2);
    expect_trial(f, 3, TRIAL_STOPPED, REASON_USER);
    expect_stopped(f);
}

static void test_the_winner_is_refitted_before_the_end(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i, s:i}", "refit", "all", "seeds", 1, "epochs", 2);
    f->settings.final = final;
    engine_fixture_begin(f);
    attach(f, 1);
    attach(f, 2);
    operate(f, MESSAGE_STOP, false);
    run_trial(f, 1, 1, 1, 9, 0.5);
    say_ready(f, 1, 0);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    run_trial(f, 2, 2, 1, 9, 0.7);
    expect_assign(f, 0, 1, 0, 2); /* to the slot that was idle */
    engine_fixture_restart(f);    /* the wish to stop outlives the coordinator */
    say_hello(f, 5, "w1", '1', NULL);
    assert_false(engine_has_ended(f->engine));
    say_ready(f, 5, 0);
    expect_assign(f, 0, 2, 0, 2);
    say_ended(f, 5, 0, 2, 1, OUTCOME_FINISHED, 2, 'f');
    expect_trial(f, 0, TRIAL_COMPLETED, REASON_FINISHED);
    expect_stopped(f);
    json_decref(final);
}

static void test_now_ends_also_the_refit(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i, s:i}", "refit", "all", "seeds", 1, "epochs", 2);
    f->settings.final = final;
    engine_fixture_begin(f);
    attach(f, 1);
    operate(f, MESSAGE_STOP, false);
    run_trial(f, 1, 1, 1, 9, 0.5);
    say_ready(f, 1, 0);
    expect_assign(f, 0, 1, 0, 2);
    operate(f, MESSAGE_STOP, true);
    assert_true(sent(f, MESSAGE_DRAIN)->now);
    say_ended(f, 1, 0, 1, 1, OUTCOME_INTERRUPTED, 0, 0);
    expect_trial(f, 0, TRIAL_STOPPED, REASON_USER);
    expect_stopped(f);
    json_decref(final);
}

static void test_now_outlives_the_coordinator(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    operate(f, MESSAGE_STOP, true);
    engine_fixture_restart(f);
    static const int64_t first[] = {1, 1, 0};
    say_hello(f, 5, "w1", '1', first);
    assert_true(sent(f, MESSAGE_DRAIN)->now);
    say_ended(f, 5, 1, 1, 1, OUTCOME_INTERRUPTED, 0, 0);
    expect_trial(f, 1, TRIAL_STOPPED, REASON_USER);
    expect_stopped(f);
}

static void test_an_interrupted_coordinator_asks_to_wait(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 1);
    send_event(f, EVENT_INTERRUPT);
    assert_true(sent(f, MESSAGE_DRAIN)->now);
    assert_true(sent(f, MESSAGE_DRAIN)->wait);
    say_ended(f, 1, 1, 1, 1, OUTCOME_INTERRUPTED, 0, 0);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    assert_true(engine_is_quiet(f->engine));
    engine_fixture_restart(f);
    say_hello(f, 5, "w1", '1', NULL); /* the same session again */
    assert_int_equal(sent_count(f, MESSAGE_DRAIN), 0);
    say_ready(f, 5, 0);
    expect_assign(f, 1, 2, 0, 9);
}

static void test_status_lists_the_workers(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    attach(f, 2);
    attach(f, 1);
    say_ready(f, 1, 1);
    attach(f, 3);
    pass_seconds(f, 1.5);
    say_bye(f, 3);
    f->now.monotonic_ns += NS_PER_SECOND;
    f->now.utc_ms += 1000;
    json_t *status = engine_status(f->engine, f->now);
    assert_int_equal(json_get_integer(status, "workers", 0), 2);
    const json_t *list = json_object_get(status, "worker_list");
    assert_int_equal(json_array_size(list), 3);
    const json_t *first = json_array_get(list, 0), *third = json_array_get(list, 2);
    assert_string_equal(json_get_string(first, "name", ""), "w1");
    assert_string_equal(json_get_string(first, "host", ""), "host");
    assert_int_equal(json_get_integer(first, "devices", 0), 1);
    assert_int_equal(json_get_integer(first, "slots", 0), 2);
    assert_int_equal(json_get_integer(first, "busy", 0), 2);
    assert_float_equal(json_get_number(first, "last_seen_seconds", 0), 2.5, 0);
    assert_true(json_get_boolean(first, "connected", false));
    assert_false(json_get_boolean(third, "connected", true));
    assert_int_equal(json_get_integer(third, "busy", 1), 0);
    assert_float_equal(json_get_number(third, "last_seen_seconds", 0), 1, 0);
    json_decref(status);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_runs_finishes),
        TEST(test_now_hands_everything_back),
        TEST(test_what_is_paused_or_waits_ends_at_once),
        TEST(test_what_goes_on_at_its_rung_stops_there_too),
        TEST(test_what_is_lost_meanwhile_is_not_run_again),
        TEST(test_the_winner_is_refitted_before_the_end),
        TEST(test_now_ends_also_the_refit),
        TEST(test_now_outlives_the_coordinator),
        TEST(test_an_interrupted_coordinator_asks_to_wait),
        TEST(test_status_lists_the_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
