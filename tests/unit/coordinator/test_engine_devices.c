/* What a worker's devices decide: the sweep's precision, where a trial is tried again, slots that are lost.
 * And the linear baseline, which one of them trains when the search is over. */
#include "tests/unit/coordinator/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int setup(void **state)
{
    struct engine_fixture *fixture = calloc(1, sizeof *fixture);
    engine_fixture_init(fixture, 3, 2);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    engine_fixture_release(*state);
    free(*state);
    return 0;
}

/* hello of worker "w<peer>" with `count` GPUs. */
static void say_hello_with_gpus(struct engine_fixture *f, peer_number peer, size_t count, bool bf16)
{
    struct message message;
    char name[20];
    snprintf(name, sizeof name, "w%d", (int)peer);
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = strdup(name);
    message.session = calloc(1, SESSION_SIZE);
    memset(message.session, '1', SESSION_SIZE - 1);
    message.devices = calloc(count, sizeof *message.devices);
    message.device_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "cuda:%d", (int)i);
        message.devices[i].id = strdup(name);
        message.devices[i].kind = strdup("cuda");
        message.devices[i].name = strdup("GPU");
        message.devices[i].bf16 = bf16;
    }
    send_message(f, peer, &message);
}

static const char *precision_sent(const struct engine_fixture *f)
{
    return json_get_string(sent(f, MESSAGE_WELCOME)->train, "auto_precision", "none");
}

static void the_first_worker_decides_the_precision(void **state)
{
    struct engine_fixture *f = *state;
    json_t *train = json_pack("{s:s}", "precision", "auto");
    f->settings.train = train;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 2, true);
    assert_string_equal(precision_sent(f), "bf16");
    attach(f, 2); /* of CPUs: the same, and a note */
    say_hello(f, 3, "w3", '1', NULL);
    assert_string_equal(precision_sent(f), "bf16");
    json_t *status = engine_status(f->engine, f->now);
    const char *note = json_string_value(json_array_get(json_object_get(status, "notes"), 0));
    assert_non_null(note);
    assert_non_null(strstr(note, "bf16"));
    json_decref(status);
    engine_fixture_restart(f); /* kept with the sweep */
    say_hello(f, 4, "w4", '1', NULL);
    assert_string_equal(precision_sent(f), "bf16");
    assert_null(json_object_get(train, "auto_precision"));
    json_decref(train);
}

static void without_native_bf16_it_is_fp32(void **state)
{
    struct engine_fixture *f = *state;
    json_t *train = json_pack("{s:s}", "precision", "auto");
    f->settings.train = train;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 1, false);
    assert_string_equal(precision_sent(f), "fp32");
    say_hello_with_gpus(f, 2, 1, true);
    assert_string_equal(precision_sent(f), "fp32");
    json_decref(train);
}

static void a_precision_that_was_given_needs_no_decision(void **state)
{
    struct engine_fixture *f = *state;
    json_t *train = json_pack("{s:s}", "precision", "fp16");
    f->settings.train = train;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 1, true);
    assert_string_equal(precision_sent(f), "none");
    json_decref(train);
}

static void say_device_failed(struct engine_fixture *f, peer_number peer, int64_t trial, int64_t attempt)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.trial = trial;
    message.attempt = attempt;
    message.sequence = 1;
    message.outcome = OUTCOME_CRASHED;
    message.device_failed = true;
    message.error = strdup("cudaErrorIllegalAddress");
    send_message(f, peer, &message);
}

/* Heartbeat of two GPUs, of which those with a text have failed; lists what is held. */
static void say_faults(struct engine_fixture *f, peer_number peer, const char *first, const char *second,
                       int64_t trial, int64_t attempt)
{
    const char *faults[2] = {first, second};
    struct message message;
    message_init(&message, MESSAGE_HEARTBEAT);
    message.devices = calloc(2, sizeof *message.devices);
    message.device_count = 2;
    for (size_t i = 0; i < 2; i++) {
        message.devices[i].id = strdup(i ? "cuda:1" : "cuda:0");
        message.devices[i].kind = strdup("cuda");
        message.devices[i].fault = faults[i] ? strdup(faults[i]) : NULL;
    }
    message.running = calloc(1, sizeof *message.running);
    message.running[0] = (struct running_attempt){trial, attempt, 1};
    message.running_count = trial ? 1 : 0;
    send_message(f, peer, &message);
}

static void a_failed_device_is_not_asked_again_while_there_is_another(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 2;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 2, true);
    say_ready(f, 1, 0);
    expect_assign(f, 1, 1, 0, 2);
    say_ready(f, 1, 1);
    expect_assign(f, 2, 1, 0, 2);
    say_device_failed(f, 1, 1, 1);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    say_ready(f, 1, 0); /* a fresh process on the same device */
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    run_trial(f, 1, 2, 1, 2, 0.5);
    say_ready(f, 1, 1);
    expect_assign(f, 1, 2, 0, 2);
    assert_int_equal(sent(f, MESSAGE_ASSIGN)->slot, 1);
}

static void the_only_device_is_asked_again(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 1;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 1, true);
    say_ready(f, 1, 0);
    say_device_failed(f, 1, 1, 1);
    say_ready(f, 1, 0);
    expect_assign(f, 1, 2, 0, 2);
}

/* A bad device must not use up the retries of the trials that it gets. */
static void a_failed_device_counts_apart_from_crashes(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 1;
    f->settings.max_retries = 0;
    f->settings.max_losses = 3;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 1, true);
    for (int attempt = 1; attempt <= 4; attempt++) {
        say_ready(f, 1, 0);
        expect_assign(f, 1, attempt, 0, 2);
        say_device_failed(f, 1, 1, attempt);
        expect_trial(f, 1, attempt < 4 ? TRIAL_WAITING : TRIAL_FAILED,
                     attempt < 4 ? REASON_NONE : REASON_CRASHED);
    }
}

/* So bad devices are found out by many trials, none of which loses much; a good one takes the retries first.
 */
static void a_slot_whose_device_failed_gets_other_trials_first(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 8;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 2, true);
    say_ready(f, 1, 0);
    expect_assign(f, 1, 1, 0, 2);
    say_ready(f, 1, 1);
    expect_assign(f, 2, 1, 0, 2);
    say_device_failed(f, 1, 1, 1);
    say_device_failed(f, 1, 2, 1);
    say_ready(f, 1, 0);
    expect_assign(f, 3, 1, 0, 2);
    say_ready(f, 1, 1);
    expect_assign(f, 4, 1, 0, 2);
    run_trial(f, 1, 4, 1, 2, 0.5); /* this device is good */
    say_ready(f, 1, 1);
    expect_assign(f, 1, 2, 0, 2);
}

static void the_trial_with_the_least_bad_luck_is_tried_first(void **state)
{
    struct engine_fixture *f = *state;
    f->settings.run_cap = 2;
    f->settings.max_losses = 3;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 1, true);
    say_ready(f, 1, 0);
    say_device_failed(f, 1, 1, 1);
    say_ready(f, 1, 0);
    expect_assign(f, 2, 1, 0, 2);
    say_hello_with_gpus(f, 2, 1, true);
    say_ready(f, 2, 0);
    expect_assign(f, 1, 2, 0, 2);
    say_device_failed(f, 1, 2, 1);
    say_device_failed(f, 2, 1, 2);
    say_hello_with_gpus(f, 3, 1, true);
    say_ready(f, 3, 0);
    expect_assign(f, 2, 2, 0, 2);
}

static void a_slot_that_is_given_up_gets_no_more(void **state)
{
    struct engine_fixture *f = *state;
    struct engine_counts counts;
    f->settings.run_cap = 2;
    engine_fixture_begin(f);
    say_hello_with_gpus(f, 1, 2, true);
    say_ready(f, 1, 0);
    say_ready(f, 1, 1);
    say_device_failed(f, 1, 1, 1);
    say_ready(f, 1, 0);
    assert_int_equal(sent_count(f, MESSAGE_ASSIGN), 0);
    /* Its trial has nowhere else to go once the other slot is lost. */
    say_faults(f, 1, NULL, "cudaErrorDeviceUnavailable", 2, 1);
    engine_counts(f->engine, &counts);
    assert_int_equal(counts.slots, 1);
    expect_assign(f, 1, 2, 0, 2);
    assert_int_equal(sent(f, MESSAGE_ASSIGN)->slot, 0);
    json_t *status = engine_status(f->engine, f->now);
    json_t *worker = json_array_get(json_object_get(status, "worker_list"), 0);
    assert_int_equal(json_get_integer(worker, "faulty", 0), 1);
    assert_int_equal(json_get_integer(worker, "slots", 0), 1);
    const char *note = json_string_value(json_array_get(json_object_get(status, "notes"), 0));
    assert_string_equal(note, "worker w1: cuda:1 takes no more work: cudaErrorDeviceUnavailable");
    json_decref(status);
    say_faults(f, 1, NULL, "cudaErrorDeviceUnavailable", 2, 1); /* said again: no news */
    status = engine_status(f->engine, f->now);
    assert_int_equal(json_array_size(json_object_get(status, "notes")), 1);
    json_decref(status);
}

/* ---- the baseline ---- */

static void finish_all(struct engine_fixture *f)
{
    f->settings.baseline = true;
    engine_fixture_begin(f);
    attach(f, 1);
    for (int64_t trial = 1; trial <= 3; trial++) {
        run_trial(f, 1, trial, 1, 2, 0.1 * (double)trial);
        say_ready(f, 1, 0);
    }
}

static void say_baseline(struct engine_fixture *f, double score)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.sequence = message.attempt = message.resource = 1;
    message.outcome = OUTCOME_FINISHED;
    message.details = json_pack("{s:{s:{s:f}}}", "baseline", "metrics", "score", score);
    send_message(f, 1, &message);
}

/* The sweep as it is stored. */
static const struct sweep_record *stored_sweep(const struct engine_fixture *f)
{
    for (size_t i = 0; i < f->row_count; i++) {
        if (f->rows[i].type == RECORD_SWEEP) {
            return &f->rows[i].sweep;
        }
    }
    fail_msg("no sweep is stored");
    return NULL;
}

static void the_baseline_is_trained_after_the_search(void **state)
{
    struct engine_fixture *f = *state;
    finish_all(f);
    const struct assignment *assignment = sent(f, MESSAGE_ASSIGN)->trials;
    assert_int_equal(assignment->trial, 0);
    assert_string_equal(json_get_string(assignment->final, "refit", ""), "none");
    assert_true(json_get_boolean(assignment->final, "baseline", false));
    assert_false(engine_has_ended(f->engine));
    say_baseline(f, 0.25);
    assert_true(engine_has_ended(f->engine));
    const struct sweep_record *sweep = stored_sweep(f);
    assert_float_equal(json_get_number(json_object_get(sweep->baseline, "metrics"), "score", 0), 0.25, 0);
    assert_null(sweep->final);
    assert_int_equal(sweep->state, SWEEP_FINISHED);
}

static void the_refit_brings_the_baseline_along(void **state)
{
    struct engine_fixture *f = *state;
    json_t *final = json_pack("{s:s, s:i}", "refit", "train", "seeds", 1);
    f->settings.final = final;
    finish_all(f);
    assert_true(json_get_boolean(sent(f, MESSAGE_ASSIGN)->trials->final, "baseline", false));
    assert_string_equal(json_get_string(sent(f, MESSAGE_ASSIGN)->trials->final, "refit", ""), "train");
    say_baseline(f, 0.25);
    const struct sweep_record *sweep = stored_sweep(f);
    assert_non_null(json_object_get(sweep->baseline, "metrics"));
    assert_non_null(sweep->final);
    assert_null(json_object_get(sweep->final, "baseline"));
    json_decref(final);
}

static void a_failed_baseline_fails_nothing(void **state)
{
    struct engine_fixture *f = *state;
    finish_all(f);
    say_ended(f, 1, 0, 1, 1, OUTCOME_OUT_OF_MEMORY, 0, 0);
    assert_true(engine_has_ended(f->engine));
    const struct sweep_record *sweep = stored_sweep(f);
    assert_string_equal(json_get_string(sweep->baseline, "failed", ""), "out_of_memory");
    assert_int_equal(sweep->state, SWEEP_FINISHED);
}

static void nobody_is_waited_for_only_for_a_baseline(void **state)
{
    struct engine_fixture *f = *state;
    finish_all(f);
    assert_false(engine_has_ended(f->engine));
    send_gone(f, "w1");
    assert_true(engine_has_ended(f->engine));
    assert_int_equal(stored_sweep(f)->state, SWEEP_FINISHED);
    assert_null(stored_sweep(f)->baseline);
}

static void a_stopped_sweep_has_no_baseline_now(void **state)
{
    struct engine_fixture *f = *state;
    struct message message;
    finish_all(f);
    message_init(&message, MESSAGE_STOP);
    message.now = true;
    send_message(f, 9, &message);
    say_ended(f, 1, 0, 1, 1, OUTCOME_INTERRUPTED, 0, 0);
    assert_true(engine_has_ended(f->engine));
    assert_int_equal(stored_sweep(f)->state, SWEEP_STOPPED);
    assert_null(stored_sweep(f)->baseline);
}

static void details_are_kept_with_the_attempt(void **state)
{
    struct engine_fixture *f = *state;
    struct message message;
    engine_fixture_begin(f);
    attach(f, 1);
    message_init(&message, MESSAGE_REPORT);
    message.trial = message.attempt = message.sequence = 1;
    message.report_count = 1;
    message.reports = calloc(1, sizeof *message.reports);
    message.reports[0].resource = 1;
    message.reports[0].metrics = json_pack("{s:f}", "score", 0.5);
    message.details = json_pack("{s:{s:i}, s:s}", "derived", "batch_size", 32, "precision", "bf16");
    send_message(f, 1, &message);
    const char *kept = "{\"derived\":{\"batch_size\":32},\"precision\":\"bf16\"}";
    assert_string_equal(stored_attempt(f, 1, 1)->details, kept);
    assert_int_equal(json_get_integer(engine_trial(f->engine, 1)->derived, "batch_size", 0), 32);
    engine_fixture_restart(f);
    say_hello(f, 1, "w1", '1', (int64_t[]){1, 1, 0});
    say_report(f, 1, 1, 1, 2, 2, 0.6);
    assert_string_equal(stored_attempt(f, 1, 1)->details, kept);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_worker_decides_the_precision),
        TEST(without_native_bf16_it_is_fp32),
        TEST(a_precision_that_was_given_needs_no_decision),
        TEST(a_failed_device_is_not_asked_again_while_there_is_another),
        TEST(the_only_device_is_asked_again),
        TEST(a_slot_whose_device_failed_gets_other_trials_first),
        TEST(the_trial_with_the_least_bad_luck_is_tried_first),
        TEST(a_failed_device_counts_apart_from_crashes),
        TEST(a_slot_that_is_given_up_gets_no_more),
        TEST(the_baseline_is_trained_after_the_search),
        TEST(the_refit_brings_the_baseline_along),
        TEST(a_failed_baseline_fails_nothing),
        TEST(nobody_is_waited_for_only_for_a_baseline),
        TEST(a_stopped_sweep_has_no_baseline_now),
        TEST(details_are_kept_with_the_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
