/* The table of moves: exactly what the diagram in engine.h allows, over every pair of states and every
 * reason. */
#include "coordinator/moves.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* "from>to:reason", one a move that is allowed. */
static const char *const allowed[] = {
    "waiting>running:",           "waiting>cancelled:user",  "waiting>stopped:pruned",
    "waiting>stopped:user",       "running>waiting:",        "running>paused:",
    "running>completed:finished", "running>stopped:pruned",  "running>stopped:threshold",
    "running>stopped:user",       "running>failed:diverged", "running>failed:out_of_memory",
    "running>failed:timed_out",   "running>failed:crashed",  "running>failed:no_metric",
    "running>failed:invalid",     "running>failed:lost",     "paused>waiting:",
    "paused>stopped:pruned",      "paused>stopped:user",
};
#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

static bool is_listed(const char *move)
{
    for (size_t i = 0; i < ALLOWED; i++)
        if (strcmp(allowed[i], move) == 0)
            return true;
    return false;
}

static void test_every_move(void **state)
{
    (void)state;
    size_t count = 0;
    for (int from = TRIAL_WAITING; from <= TRIAL_CANCELLED; from++)
        for (int to = TRIAL_WAITING; to <= TRIAL_CANCELLED; to++)
            for (int reason = REASON_NONE; reason <= REASON_LOST; reason++) {
                char move[80];
                snprintf(move, sizeof(move), "%s>%s:%s", trial_state_name(from), trial_state_name(to),
                         trial_reason_name(reason));
                if (move_is_allowed(from, to, reason) != is_listed(move))
                    fail_msg("%s is %sallowed", move, is_listed(move) ? "not " : "");
                count += is_listed(move);
            }
    assert_int_equal(count, ALLOWED);
}

static void test_a_refused_move_changes_nothing(void **state)
{
    (void)state;
    struct trial_record trial = {.number = 7, .state = TRIAL_COMPLETED, .reason = REASON_FINISHED};
    struct error err = {0};
    assert_int_equal(trial_move(&trial, TRIAL_RUNNING, REASON_NONE, &err), -1);
    assert_int_equal(err.code, ERROR_INTERNAL);
    assert_non_null(strstr(err.message, "trial 7: the move completed -> running"));
    assert_int_equal(trial.state, TRIAL_COMPLETED);
    assert_int_equal(trial.reason, REASON_FINISHED);
}

static void test_a_move_sets_state_and_reason(void **state)
{
    (void)state;
    struct trial_record trial = {.number = 7, .state = TRIAL_RUNNING};
    assert_int_equal(trial_move(&trial, TRIAL_FAILED, REASON_DIVERGED, NULL), 0);
    assert_int_equal(trial.state, TRIAL_FAILED);
    assert_int_equal(trial.reason, REASON_DIVERGED);
    assert_true(trial_state_is_end(trial.state));
    assert_false(trial_state_is_end(TRIAL_PAUSED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_move),
        cmocka_unit_test(test_a_refused_move_changes_nothing),
        cmocka_unit_test(test_a_move_sets_state_and_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
