/* Records: names read back, copies are deep and equal, releasing leaves nothing. */
#include "coordinator/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void test_names_read_back(void **state)
{
    (void)state;
    enum sweep_state sweep_state;
    enum trial_state trial_state;
    enum trial_reason reason;
    for (int i = SWEEP_RUNNING; i <= SWEEP_STOPPED; i++) {
        assert_true(sweep_state_parse(sweep_state_name(i), &sweep_state));
        assert_int_equal(sweep_state, i);
    }
    for (int i = TRIAL_WAITING; i <= TRIAL_CANCELLED; i++) {
        assert_true(trial_state_parse(trial_state_name(i), &trial_state));
        assert_int_equal(trial_state, i);
    }
    for (int i = REASON_NONE; i <= REASON_LOST; i++) {
        assert_true(trial_reason_parse(trial_reason_name(i), &reason));
        assert_int_equal(reason, i);
    }
    assert_string_equal(trial_reason_name(REASON_NONE), "");
    assert_false(trial_state_parse("Running", &trial_state));
    assert_false(trial_state_parse(NULL, &trial_state));
    assert_false(sweep_state_parse("", &sweep_state));
}

static void test_a_copy_of_a_trial_is_its_own(void **state)
{
    (void)state;
    struct record copy, record = {.type = RECORD_TRIAL};
    record.trial.number = 3;
    record.trial.parameters = json_pack("{s:f, s:[i, i]}", "x", 0.5, "hidden", 64, 32);
    assert_int_equal(record_copy(&copy, &record), 0);
    json_array_append_new(json_object_get(record.trial.parameters, "hidden"), json_integer(1));
    assert_int_equal(json_array_size(json_object_get(copy.trial.parameters, "hidden")), 2);
    record_release(&record);
    assert_int_equal(copy.trial.number, 3);
    assert_float_equal(json_get_number(copy.trial.parameters, "x", 0), 0.5, 0);
    record_release(&copy);
    assert_null(copy.trial.parameters);
}

static void test_every_kind_is_copied_whole(void **state)
{
    (void)state;
    struct record records[] = {
        {.type = RECORD_SWEEP,
         .sweep = {.name = strdup("n"),
                   .spec_text = strdup("t"),
                   .normalised = json_object(),
                   .version = strdup("1"),
                   .final = json_object(),
                   .baseline = json_object()}},
        {.type = RECORD_ATTEMPT,
         .attempt = {.worker = strdup("w"),
                     .session = strdup("s"),
                     .device = strdup("d"),
                     .error = strdup("e"),
                     .details = strdup("{}")}},
        {.type = RECORD_REPORT, .report = {.metrics = json_pack("{s:i}", "loss", 1)}},
        {.type = RECORD_RUNG_ENTRY, .rung_entry = {.trial = 1, .order = 9}},
        {.type = RECORD_WORKER,
         .worker = {.name = strdup("w"),
                    .session = strdup("s"),
                    .host = strdup("h"),
                    .version = strdup("1"),
                    .devices = json_array()}},
    };
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        struct record copy;
        assert_int_equal(record_copy(&copy, &records[i]), 0);
        assert_int_equal(copy.type, records[i].type);
        if (copy.type == RECORD_ATTEMPT) {
            assert_ptr_not_equal(copy.attempt.worker, records[i].attempt.worker);
            assert_string_equal(copy.attempt.error, "e");
        }
        record_release(&records[i]);
        record_release(&copy);
    }
}

static void test_a_snapshot_is_released_whole(void **state)
{
    (void)state;
    struct snapshot snapshot = {.sweep = {.name = strdup("n")}};
    snapshot.trials = calloc(1, sizeof(*snapshot.trials));
    snapshot.trial_count = 1;
    snapshot.trials[0].parameters = json_object();
    snapshot.reports = calloc(1, sizeof(*snapshot.reports));
    snapshot.report_count = 1;
    snapshot.reports[0].metrics = json_object();
    snapshot_release(&snapshot);
    assert_null(snapshot.trials);
    assert_int_equal(snapshot.report_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_read_back),
        cmocka_unit_test(test_a_copy_of_a_trial_is_its_own),
        cmocka_unit_test(test_every_kind_is_copied_whole),
        cmocka_unit_test(test_a_snapshot_is_released_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
