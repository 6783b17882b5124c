/* The engine without faults: sessions, work, sequences, the end, the refit, the operator. */
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

static void test_a_stranger_is_asked_to_say_hello(void **state)
{
    struct engine_fixture *f = *state;
    engine_fixture_begin(f);
    say_ready(f, 9, 0);
    assert_string_equal(sent(f, MESSAGE_ERROR)->code, "unknown_session");
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sweep_runs_to_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stranger_is_asked_to_say_hello, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
