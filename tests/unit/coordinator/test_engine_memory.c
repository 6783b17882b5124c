/* Memory runs out at the i-th allocation of an event, for i = 1, 2, ... until the event succeeds: the engine
 * says ERROR_MEMORY each time, leaks nothing (under the sanitizer), and stays refused from then on. The same
 * for recovery. */
#include "engine_fixture.h"
#include "failing_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static json_t *final_request;

static void hello(struct engine_fixture *f)
{
    say_hello(f, 1, "w1", '1', (int64_t[]){9, 9, 0});
}

static void ready(struct engine_fixture *f)
{
    say_ready(f, 1, 0);
}

static void first_report(struct engine_fixture *f)
{
    say_report(f, 1, 1, 1, 1, 1, 0.5);
}

static void pause(struct engine_fixture *f)
{
    say_ended(f, 1, 1, 1, 2, OUTCOME_PAUSED, 1, 'a');
}

static void second_trial_promotes_the_first(struct engine_fixture *f)
{
    say_report(f, 1, 2, 1, 1, 1, 0.4);
}

static void ended_by_order(struct engine_fixture *f)
{
    say_ended(f, 1, 2, 1, 2, OUTCOME_STOPPED, 1, 'b');
}

static void rest_of_the_first(struct engine_fixture *f)
{
    say_report(f, 1, 1, 2, 1, 3, 0.5);
}

static void finished(struct engine_fixture *f)
{
    say_ended(f, 1, 1, 2, 2, OUTCOME_FINISHED, 3, 'c');
}

static void refit_fails(struct engine_fixture *f)
{
    say_ended(f, 1, 0, 1, 1, OUTCOME_INVALID, 1, 0);
}

static void status(struct engine_fixture *f)
{
    struct message message;
    message_init(&message, MESSAGE_STATUS);
    send_message(f, 50, &message);
}

static void lapse(struct engine_fixture *f)
{
    pass_seconds(f, 31);
}

static void (*const story[])(struct engine_fixture *) = {
    hello,          ready, first_report,      pause,    ready, second_trial_promotes_the_first,
    ended_by_order, ready, rest_of_the_first, finished, ready, refit_fails,
    status,         lapse,
};
#define STEPS (sizeof(story) / sizeof(story[0]))

static void begin(struct engine_fixture *f)
{
    engine_fixture_init(f, 2, 3);
    engine_fixture_halving(f, STOPPING_SUCCESSIVE_HALVING, 1, 3, 3);
    f->settings.final = final_request;
    engine_fixture_begin(f);
}

/* The story up to a step, which fails at its n-th allocation. False once it does not. */
static bool step_fails(size_t step, long n)
{
    struct engine_fixture f;
    begin(&f);
    for (size_t i = 0; i < step; i++)
        story[i](&f);
    f.fail_f = memory_fail_at;
    f.fail_at = n;
    story[step](&f);
    bool failed = f.result != 0;
    if (failed) {
        assert_int_equal(f.err.code, ERROR_MEMORY);
        f.fail_at = 0;
        send_event(&f, EVENT_TICK); /* what is half done is never gone on with */
        assert_int_equal(f.result, -1);
        assert_int_equal(f.err.code, ERROR_MEMORY);
    }
    engine_fixture_release(&f);
    return failed;
}

static void test_every_event_survives(void **state)
{
    (void)state;
    long failures = 0;
    for (size_t step = 0; step < STEPS; step++)
        for (long n = 1; step_fails(step, n); n++)
            failures++;
    assert_true(failures > 50);
}

static void test_recovery_survives(void **state)
{
    (void)state;
    struct engine_fixture f;
    struct snapshot snapshot;
    struct effects effects;
    struct error err = {0};
    struct engine *engine = NULL;
    begin(&f);
    for (size_t i = 0; i < 8; i++)
        story[i](&f);
    engine_fixture_snapshot(&f, &snapshot);
    long n = 0;
    do {
        effects_init(&effects);
        memory_fail_at(++n);
        engine = engine_restore(&f.settings, &snapshot, f.now, &effects, &err);
        memory_fail_at(0);
        effects_release(&effects);
        if (!engine)
            assert_int_equal(err.code, ERROR_MEMORY);
    } while (!engine);
    assert_true(n > 30);
    engine_destroy(engine);
    snapshot_release(&snapshot);
    engine_fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_survives),
        cmocka_unit_test(test_recovery_survives),
    };
    memory_setup();
    final_request = json_pack("{s:s, s:i, s:s}", "refit", "train", "seeds", 1, "epochs", "best");
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(final_request);
    return result;
}
