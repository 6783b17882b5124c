/* A worker that is known to have ended: nobody waits for its lease. And an interrupt waits only for those who
 * can hand something back. */
#include "tests/unit/coordinator/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static int setup(void **state)
{
    struct engine_fixture *fixture = calloc(1, sizeof *fixture);
    engine_fixture_init(fixture, 4, 3);
    engine_fixture_begin(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    engine_fixture_release(*state);
    free(*state);
    return 0;
}

static int64_t live_workers(const struct engine_fixture *fixture)
{
    struct engine_counts counts;
    engine_counts(fixture->engine, &counts);
    return counts.workers;
}

static void its_trial_and_its_name_are_free_at_once(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    say_report(f, 1, 1, 1, 1, 1, 0.5);
    send_gone(f, "w1");
    assert_int_equal(live_workers(f), 0);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    say_hello(f, 2, "w1", '2', NULL);
    assert_int_equal(sent_count(f, MESSAGE_WELCOME), 1);
    say_ready(f, 2, 0);
    expect_assign(f, 1, 2, 0, 3);
    /* What the old one said last comes late. */
    say_report(f, 1, 1, 1, 2, 2, 0.6);
    assert_int_equal(sent_count(f, MESSAGE_ERROR), 1);
    run_trial(f, 2, 1, 2, 3, 0.7);
    expect_trial(f, 1, TRIAL_COMPLETED, REASON_FINISHED);
}

static void of_strangers_and_those_who_left_nothing_follows(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    send_gone(f, "nobody");
    assert_int_equal(live_workers(f), 1);
    say_bye(f, 1);
    send_gone(f, "w1");
    assert_int_equal(live_workers(f), 0);
    expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
}

/* It ended with the coordinator: however often that happens, its trials are not to blame. */
static void with_the_coordinator_is_no_loss(void **state)
{
    struct engine_fixture *f = *state;
    char name[24];
    for (int64_t attempt = 1; attempt <= 10; attempt++) {
        attach(f, (peer_number)attempt);
        expect_assign(f, 1, attempt, 0, 3);
        say_report(f, (peer_number)attempt, 1, attempt, 1, 1, 0.5);
        engine_fixture_restart(f);
        snprintf(name, sizeof name, "w%d", (int)attempt);
        send_gone(f, name);
        expect_trial(f, 1, TRIAL_WAITING, REASON_NONE);
    }
}

static void an_interrupt_waits_only_for_who_is_there(void **state)
{
    struct engine_fixture *f = *state;
    attach(f, 1);
    assert_false(engine_was_handed_back(f->engine));
    engine_fixture_restart(f);
    send_event(f, EVENT_INTERRUPT);
    assert_false(engine_is_quiet(f->engine));
    assert_true(engine_was_handed_back(f->engine));
    const int64_t running[] = {1, 1, 0};
    say_hello(f, 2, "w1", '1', running);
    assert_false(engine_was_handed_back(f->engine));
    say_ended(f, 2, 1, 1, 1, OUTCOME_INTERRUPTED, 1, 'a');
    assert_true(engine_was_handed_back(f->engine));
}

static void names_that_a_terminal_would_act_on_are_refused(void **state)
{
    struct engine_fixture *f = *state;
    static const char *const wrong[] = {"a\nb", "\x1b[31mred", "a\x7f", "a\xc2\x9bm"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        say_hello(f, 10 + i, wrong[i], '1', NULL);
        assert_string_equal(sent(f, MESSAGE_ERROR)->code, "malformed");
        assert_int_equal(live_workers(f), 0);
    }
    say_hello(f, 20, "Rechner-\xc3\xa4", '1', NULL);
    assert_int_equal(live_workers(f), 1);
}

static void a_worker_has_no_more_devices_than_slots(void **state)
{
    struct engine_fixture *f = *state;
    struct device_description *devices = calloc(99999, sizeof *devices);
    for (size_t i = 0; i < 99999; i++) {
        devices[i] = (struct device_description){.id = "cpu:0", .kind = "cpu", .name = "x"};
    }
    for (size_t count = 99999; count > 0; count = count > 4096 ? 4096 : 0) {
        struct message hello;
        message_init(&hello, MESSAGE_HELLO);
        hello.protocol = PROTOCOL_VERSION;
        hello.worker = "many";
        hello.session = "0123456789abcdef";
        hello.devices = devices;
        hello.device_count = count;
        struct event event = {.type = EVENT_MESSAGE, .peer = 1, .message = &hello};
        effects_clear(&f->effects);
        assert_int_equal(engine_handle(f->engine, &event, f->now, &f->effects, &f->err), 0);
        assert_int_equal(live_workers(f), count <= 4096);
    }
    free(devices);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(its_trial_and_its_name_are_free_at_once), TEST(of_strangers_and_those_who_left_nothing_follows),
        TEST(with_the_coordinator_is_no_loss),         TEST(an_interrupt_waits_only_for_who_is_there),
        TEST(a_worker_has_no_more_devices_than_slots), TEST(names_that_a_terminal_would_act_on_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
