/* A coordinator that was interrupted and comes back; and what runners print, which comes with the end of
 * their attempts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_coordinator.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SLOW "{\"epochs\": 9, \"delay_ms\": 300}"
#define QUICK "{\"epochs\": 2}"

static void drain_and_wait(struct fake_coordinator *coordinator)
{
    struct message message;
    message_init(&message, MESSAGE_DRAIN);
    message.now = message.wait = true;
    coordinator_send(coordinator, &message);
}

/* What runs goes back; the worker stays, and is there when the coordinator returns. */
static void test_a_worker_outlasts_an_interrupted_coordinator(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    char session[SESSION_SIZE];
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_expect(coordinator, MESSAGE_HELLO, &message);
    memcpy(session, message.session, sizeof session);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 1, 1, SLOW, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    drain_and_wait(coordinator);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_INTERRUPTED, NULL);
    coordinator_expect_silence(coordinator, 200); /* no ready, no bye */

    coordinator_vanish(coordinator);
    coordinator_return(coordinator);
    coordinator_await_hello(coordinator, &message);
    assert_string_equal(message.session, session);
    assert_int_equal(message.running_count, 0);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 1, 2, QUICK, 0, 2, NULL);
    coordinator_expect_reports(coordinator, 1, 2, 1, 2);
    coordinator_expect_ended(coordinator, 1, 2, 3, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_drain(coordinator, false); /* the end, this time */
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 0);
}

/* The last words of the coordinator were never heard: they are asked for again when it is back. */
static void test_what_was_not_acknowledged_waits_too(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, SLOW, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    drain_and_wait(coordinator);
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    message_release(&message);
    coordinator_vanish(coordinator);
    coordinator_return(coordinator);
    coordinator_await_hello(coordinator, &message);
    assert_int_equal(message.running_count, 1);
    assert_int_equal(message.running[0].sequence, 2);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_INTERRUPTED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
}

/* It said that it goes, and then did not go (or somebody else had said so). */
static void test_a_coordinator_that_stays_is_asked_again(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    drain_and_wait(coordinator);
    coordinator_expect(coordinator, MESSAGE_HELLO, &message);
    message_release(&message);
    coordinator_welcome(coordinator);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 1, 1, QUICK, 0, 2, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 2);
    coordinator_expect_ended(coordinator, 1, 1, 3, OUTCOME_FINISHED, NULL);
}

static void test_a_waiting_worker_leaves_on_a_signal(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    drain_and_wait(coordinator);
    coordinator_expect_silence(coordinator, 100);
    kill(coordinator->worker, SIGTERM);
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 130);
}

static void test_a_waiting_worker_leaves_when_nobody_returns(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char text[1000];
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"reconnect=0.5", NULL});
    coordinator_join(coordinator, 1);
    drain_and_wait(coordinator);
    coordinator_expect_silence(coordinator, 100);
    coordinator_vanish(coordinator);
    assert_int_equal(coordinator_await_worker(coordinator, text), 3);
    assert_non_null(strstr(text, "did not come back"));
    coordinator_return(coordinator);
}

static void test_what_a_runner_printed_comes_with_the_end(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 1, \"say\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    assert_non_null(message.log_stderr);
    assert_string_equal(message.log_stderr, "epoch 1 of trial 1\n");
    assert_null(message.log_stdout);
    message_release(&message);
    coordinator_acknowledge(coordinator, 1, 1, 2, ACTION_STOP, 0);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 9, NULL); /* the next says nothing */
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    assert_null(message.log_stderr);
    message_release(&message);
    coordinator_acknowledge(coordinator, 2, 1, 2, ACTION_STOP, 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, coordinator_setup, coordinator_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_a_worker_outlasts_an_interrupted_coordinator),
        STORY(test_what_was_not_acknowledged_waits_too),
        STORY(test_a_coordinator_that_stays_is_asked_again),
        STORY(test_a_waiting_worker_leaves_on_a_signal),
        STORY(test_a_waiting_worker_leaves_when_nobody_returns),
        STORY(test_what_a_runner_printed_comes_with_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
