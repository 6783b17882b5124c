/* Rows that no engine kept are refused when a sweep is to go on, and the error says which. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static struct snapshot rows;

/* Three of four trials came to the rung at 1; one of them went on to 2, one is paused, one was interrupted.
 */
static void begin(struct engine_fixture *f)
{
    engine_fixture_init(f, 4, 4);
    engine_fixture_halving(f, STOPPING_ASHA_PROMOTION, 1, 4, 2);
    engine_fixture_begin(f);
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    say_ended(f, 1, 1, 1, 2, OUTCOME_PAUSED, 1, 'a');
    say_ready(f, 1, 0);
    say_report(f, 1, 2, 1, 1, 1, 0.9);
    engine_fixture_snapshot(f, &rows);
}

static void trial_is_missing(void)
{
    rows.trials++;
    rows.trial_count--;
}

static void trial_is_huge(void)
{
    rows.trials[0].resource = INT64_MAX;
}

static void checkpoint_is_huge(void)
{
    rows.trials[0].checkpoint_resource = INT64_MAX;
}

static void trial_is_negative(void)
{
    rows.trials[1].resource = -5;
}

static void checkpoint_is_a_path(void)
{
    strcpy(rows.trials[0].checkpoint, "../../../etc/passwd");
}

static void state_is_wrong(void)
{
    rows.trials[0].state = TRIAL_RUNNING;
}

static void end_has_no_reason(void)
{
    rows.trials[0].state = TRIAL_COMPLETED; /* and reason none */
}

static void parameters_are_others(void)
{
    json_decref(rows.trials[0].parameters);
    rows.trials[0].parameters = json_incref(rows.trials[1].parameters);
}

static void parameters_are_missing(void)
{
    json_decref(rows.trials[0].parameters);
    rows.trials[0].parameters = NULL;
}

static void attempts_are_missing(void)
{
    rows.attempt_count = 0;
}

static void attempt_numbers_jump(void)
{
    rows.attempts[0].number += 9007199254740990;
}

static void reports_are_missing(void)
{
    rows.report_count = 0;
}

static void metrics_are_missing(void)
{
    json_decref(rows.reports[0].metrics);
    rows.reports[0].metrics = NULL;
}

static void entries_are_missing(void)
{
    rows.rung_entry_count = 0;
}

static void entry_is_of_another_rung(void)
{
    rows.rung_entries[0].rung = 99999;
}

static void entry_is_of_another_bracket(void)
{
    rows.rung_entries[0].bracket = -7;
}

static void entries_have_one_order(void)
{
    rows.rung_entries[1].order = rows.rung_entries[0].order;
}

static const struct {
    void (*spoil)(void);
    const char *message;
} cases[] = {
    {trial_is_missing, "trial 1 is missing"},
    {trial_is_huge, "trial 1 has 9223372036854775807 as resource, beyond 0 to 4"},
    {checkpoint_is_huge, "trial 1 has 9223372036854775807 as resource of the checkpoint"},
    {trial_is_negative, "trial 2 has -5 as resource"},
    {checkpoint_is_a_path, "trial 1 names a checkpoint that is no SHA-256"},
    {state_is_wrong, "trial 1 is running, and its newest attempt has ended"},
    {end_has_no_reason, "trial 1 is completed for the reason \"\""},
    {parameters_are_others, "trial 1 has other parameters than the seed gives"},
    {parameters_are_missing, "trial 1 has no parameters"},
    {attempts_are_missing, "trial 1 has a report of attempt 1, which is missing"},
    {attempt_numbers_jump, "trial 1 has attempt 9007199254740991 without an end"},
    {reports_are_missing, "trial 1 came to 1 and has no report there"},
    {metrics_are_missing, "trial 1 has a report without metrics at 1"},
    {entries_are_missing, "trial 1 is paused, but not at a rung"},
    {entry_is_of_another_rung, "trial 1 entered rung 99999 without the one before"},
    {entry_is_of_another_bracket, "trial 1 entered a rung of another bracket"},
    {entries_have_one_order, "trial 2 entered rung 0 at the same time as another"},
};

static struct engine *restore(struct engine_fixture *f, struct error *err)
{
    struct effects effects;
    effects_init(&effects);
    struct engine *engine = engine_restore(&f->settings, &rows, f->now, &effects, err);
    effects_release(&effects);
    return engine;
}

static void test_what_no_engine_kept_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct engine_fixture f;
        struct error err = {0};
        begin(&f);
        struct snapshot whole = rows;
        struct engine *engine = restore(&f, &err);
        assert_non_null(engine);
        engine_destroy(engine);
        cases[i].spoil();
        assert_null(restore(&f, &err));
        if (err.code != ERROR_RESOURCE || !strstr(err.message, cases[i].message))
            fail_msg("instead of \"%s\": %s", cases[i].message, err.message);
        rows = whole;
        snapshot_release(&rows);
        engine_fixture_release(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_no_engine_kept_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
