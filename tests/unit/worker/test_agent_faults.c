/* The agent when something dies or it is asked to leave: runners that crash, hang or talk nonsense, drain,
 * signals, kill -9, coordinators that cannot be reached or refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_coordinator.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PARAMETERS_SLOW "{\"epochs\": 9, \"delay_ms\": 300}"

/* Live processes whose environment or command line names this test's folder: the worker and its runners. */
static int count_processes(const struct fake_coordinator *coordinator)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    int count = 0;
    while ((entry = readdir(processes))) {
        char path[300], bytes[16384];
        snprintf(path, sizeof path, "/proc/%.200s/environ", entry->d_name);
        int fd = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
        ssize_t size = fd >= 0 ? read(fd, bytes, sizeof bytes) : 0; /* empty for a zombie */
        count +=
            size > 0 && memmem(bytes, (size_t)size, coordinator->folder, strlen(coordinator->folder)) != NULL;
        if (fd >= 0) {
            close(fd);
        }
    }
    closedir(processes);
    return count;
}

/* Marks the worker and all its descendants, by their environment. */
static void start_marked_worker(struct fake_coordinator *coordinator, const char *devices)
{
    setenv("RUNG_TEST_MARK", coordinator->folder, 1);
    coordinator_start_worker(coordinator, devices, NULL);
    unsetenv("RUNG_TEST_MARK");
}

static void expect_none_left(const struct fake_coordinator *coordinator, int within_ms)
{
    int64_t deadline = clock_now().monotonic_ns + within_ms * NS_PER_MS;
    while (count_processes(coordinator) > 0 && clock_now().monotonic_ns < deadline) {
        usleep(10000);
    }
    assert_int_equal(count_processes(coordinator), 0);
}

/* A full disk is this machine's fault: everything goes back as interrupted, and the worker fails. */
static void test_a_full_disk_hands_everything_back(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char text[1000];
    coordinator_start_worker(coordinator, "cpu:2", NULL);
    coordinator_join(coordinator, 2);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 9, \"disk_full\": 1}", 0, 1, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_INTERRUPTED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, text), 4);
    assert_non_null(strstr(text, "No space left on device"));
}

static void expect_death(struct fake_coordinator *coordinator, const char *parameters, enum outcome outcome,
                         const char *const *texts)
{
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, parameters, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 2);
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    assert_int_equal(message.sequence, 3);
    assert_string_equal(outcome_name(message.outcome), outcome_name(outcome));
    assert_int_equal(message.resource, 2);
    for (int i = 0; texts[i]; i++) {
        if (!strstr(message.error, texts[i])) {
            fail_msg("'%s' is not in the error: %s", texts[i], message.error);
        }
    }
    message_release(&message);
    coordinator_acknowledge(coordinator, 1, 1, 3, ACTION_STOP, 0);
    coordinator_expect_only(coordinator, MESSAGE_READY); /* a new runner */
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
}

static void test_a_crash_costs_one_attempt(void **state)
{
    expect_death(*state, "{\"crash_at\": 3}", OUTCOME_CRASHED,
                 (const char *const[]){"signal 11", "Segmentation fault", "about to crash", NULL});
}

static void test_an_exit_is_a_crash(void **state)
{
    expect_death(*state, "{\"exit_at\": 3}", OUTCOME_CRASHED, (const char *const[]){"exit code 7", NULL});
}

static void test_a_stranger_kill_is_a_crash(void **state)
{
    expect_death(*state, "{\"die_at\": 3}", OUTCOME_CRASHED, (const char *const[]){"signal 9", NULL});
}

static void test_no_memory_is_not_a_crash(void **state)
{
    expect_death(*state, "{\"exit_at\": 3, \"exit_code\": 12}", OUTCOME_OUT_OF_MEMORY,
                 (const char *const[]){"12", NULL});
}

static void test_nonsense_on_the_link_ends_the_runner(void **state)
{
    expect_death(*state, "{\"junk_at\": 3}", OUTCOME_CRASHED, (const char *const[]){"link", NULL});
}

static void test_only_the_end_of_much_output_is_kept(void **state)
{
    expect_death(*state, "{\"chatter\": 300000, \"crash_at\": 3}", OUTCOME_CRASHED,
                 (const char *const[]){"signal 11", "xxxxxxxxxx", NULL});
}

static void test_nan_and_divergence_pass_through(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"nan\": 1, \"diverge_at\": 1}", 0, 9, NULL);
    coordinator_expect(coordinator, MESSAGE_REPORT, &message);
    assert_string_equal(json_string_value(json_object_get(message.reports[0].metrics, "loss")), "NaN");
    message_release(&message);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_DIVERGED, NULL);
}

static void test_a_crash_while_held_goes_on_from_the_file(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"held_ms\": 100}", 0, 2, NULL); /* ends once it has paused */
    coordinator_expect_reports(coordinator, 1, 1, 1, 2);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_acknowledge(coordinator, 1, 1, 2, ACTION_CONTINUE, 9);
    coordinator_expect_reports(coordinator, 1, 1, 3, 9);
    coordinator_expect_ended(coordinator, 1, 1, 10, OUTCOME_FINISHED, NULL);
}

static void test_a_runner_that_never_starts_is_told(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char text[1000];
    setenv("FAKE_RUNNER_FAILS", "1", 1);
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    unsetenv("FAKE_RUNNER_FAILS");
    coordinator_join(coordinator, 0);
    assert_int_equal(coordinator_await_worker(coordinator, text), 4);
    assert_non_null(strstr(text, "3 times before it was ready"));
    assert_non_null(strstr(text, "no device here"));
}

static void spoil_device(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt)
{
    struct message message;
    coordinator_assign(coordinator, 0, trial, attempt, "{\"spoil_at\": 1}", 0, 9, NULL);
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    assert_int_equal(message.outcome, OUTCOME_CRASHED);
    assert_true(message.device_failed);
    assert_string_equal(message.error, "cudaErrorIllegalAddress");
    message_release(&message);
    coordinator_acknowledge(coordinator, trial, attempt, 1, ACTION_STOP, 9);
}

/* One of two GPUs fails three times in a row: it is told as faulty, and gets no more; the other goes on. */
static void test_a_gpu_that_fails_again_and_again_is_given_up(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message message;
    coordinator_start_worker(coordinator, "emulated:2", NULL);
    coordinator_join(coordinator, 2);
    for (int trial = 11; trial <= 13; trial++) {
        spoil_device(coordinator, trial, 1);
        if (trial < 13) {
            coordinator_expect_only(coordinator, MESSAGE_READY); /* a fresh process */
        }
    }
    do {
        coordinator_expect_heartbeat(coordinator, &message);
        if (!message.devices[0].fault) {
            message_release(&message);
        }
    } while (message.device_count == 0 || !message.devices[0].fault);
    assert_string_equal(message.devices[0].fault, "cudaErrorIllegalAddress");
    assert_null(message.devices[1].fault);
    message_release(&message);
    /* One that was on its way to the lost slot is run in the other. */
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
    coordinator_expect(coordinator, MESSAGE_READY, &message);
    assert_int_equal(message.slot, 1);
    message_release(&message);
}

/* A trial that fails wherever it is tried is at fault itself: the GPU stays for the others. */
static void test_a_gpu_is_not_given_up_for_one_trial(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "emulated:1", NULL);
    coordinator_join(coordinator, 1);
    for (int attempt = 1; attempt <= 4; attempt++) {
        spoil_device(coordinator, 1, attempt);
        coordinator_expect_only(coordinator, MESSAGE_READY);
    }
    coordinator_assign(coordinator, 0, 2, 1, "{\"epochs\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 1);
    coordinator_expect_ended(coordinator, 2, 1, 2, OUTCOME_FINISHED, NULL);
}

static void test_drain_lets_trials_finish(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:2", NULL);
    coordinator_join(coordinator, 2);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 2, \"delay_ms\": 100}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_drain(coordinator, false);
    coordinator_assign(coordinator, 1, 2, 1, "{\"epochs\": 1}", 0, 9, NULL); /* crossed it */
    coordinator_expect_ended(coordinator, 2, 1, 1, OUTCOME_INTERRUPTED, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 2, 2);
    coordinator_expect_ended(coordinator, 1, 1, 3, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 0);
}

static void expect_handing_back(struct fake_coordinator *coordinator)
{
    char checkpoint[SHA256_TEXT];
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_INTERRUPTED, checkpoint);
    assert_string_equal(coordinator_blob(coordinator, checkpoint), "trial 1 resource 1");
    coordinator_expect_only(coordinator, MESSAGE_BYE);
}

static void test_drain_now_hands_back(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", NULL);
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, PARAMETERS_SLOW, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_drain(coordinator, true);
    expect_handing_back(coordinator);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 0);
}

static void test_a_signal_hands_back(void **state)
{
    struct fake_coordinator *coordinator = *state;
    start_marked_worker(coordinator, "cpu:1");
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, PARAMETERS_SLOW, 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    kill(coordinator->worker, SIGTERM);
    expect_handing_back(coordinator);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 130);
    expect_none_left(coordinator, 0);
}

static void test_a_signal_at_a_rung_waits_for_the_answer(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char checkpoint[SHA256_TEXT];
    coordinator_start_worker(coordinator, "cpu:2", NULL);
    coordinator_join(coordinator, 2);
    coordinator_assign(coordinator, 0, 1, 1, "{}", 0, 2, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 2);
    coordinator_assign(coordinator, 1, 2, 1, "{}", 0, 2, NULL);
    coordinator_expect_reports(coordinator, 2, 1, 1, 2);
    kill(coordinator->worker, SIGTERM);
    coordinator_expect_silence(coordinator, 200);
    coordinator_acknowledge(coordinator, 1, 1, 2, ACTION_CONTINUE, 2);
    coordinator_expect_ended(coordinator, 1, 1, 3, OUTCOME_PAUSED, checkpoint);
    coordinator_acknowledge(coordinator, 2, 1, 2, ACTION_CONTINUE, 6); /* promoted: but not by this worker */
    coordinator_expect_ended(coordinator, 2, 1, 3, OUTCOME_INTERRUPTED, checkpoint);
    assert_string_equal(coordinator_blob(coordinator, checkpoint), "trial 2 resource 2");
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 130);
}

static void test_a_second_signal_ends_at_once(void **state)
{
    struct fake_coordinator *coordinator = *state;
    start_marked_worker(coordinator, "cpu:2");
    coordinator_join(coordinator, 2);
    coordinator_assign(coordinator, 0, 1, 1, "{\"hang_at\": 2}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    kill(coordinator->worker, SIGTERM);
    usleep(100000);
    kill(coordinator->worker, SIGTERM);
    int64_t begin = clock_now().monotonic_ns;
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 130);
    assert_true(clock_now().monotonic_ns - begin < 2 * NS_PER_SECOND);
    expect_none_left(coordinator, 0);
}

static void test_an_endless_epoch_is_handed_back_as_it_came(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"stop=1", NULL});
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"hang_at\": 3}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 2);
    kill(coordinator->worker, SIGTERM);
    coordinator_expect_ended(coordinator, 1, 1, 3, OUTCOME_INTERRUPTED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 130);
}

static void test_nobody_takes_it_back(void **state)
{
    struct fake_coordinator *coordinator = *state;
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"stop=1", NULL});
    coordinator_join(coordinator, 1);
    coordinator_assign(coordinator, 0, 1, 1, "{\"hang_at\": 3}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 2);
    coordinator_vanish(coordinator);
    int64_t begin = clock_now().monotonic_ns;
    kill(coordinator->worker, SIGTERM);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 130);
    assert_true(clock_now().monotonic_ns - begin < 5 * NS_PER_SECOND);
    coordinator_return(coordinator);
}

static void test_kill_9_leaves_no_orphans(void **state)
{
    struct fake_coordinator *coordinator = *state;
    start_marked_worker(coordinator, "cpu:3");
    coordinator_join(coordinator, 3);
    coordinator_assign(coordinator, 0, 1, 1, "{\"hang_at\": 2}", 0, 9, NULL);
    coordinator_assign(coordinator, 1, 2, 1, PARAMETERS_SLOW, 0, 9, NULL);
    usleep(200000);
    assert_int_equal(count_processes(coordinator), 4);
    kill(coordinator->worker, SIGKILL);
    assert_int_equal(coordinator_await_worker(coordinator, NULL), 128 + SIGKILL);
    expect_none_left(coordinator, 2000);
}

static void test_nobody_answers(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char text[1000];
    coordinator_vanish(coordinator);
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"wait=0.5", NULL});
    assert_int_equal(coordinator_await_worker(coordinator, text), 3);
    assert_non_null(strstr(text, coordinator->address));
    coordinator_return(coordinator);
}

static void test_the_coordinator_never_comes_back(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char text[1000];
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"reconnect=0.5", NULL});
    coordinator_join(coordinator, 1);
    coordinator_vanish(coordinator);
    assert_int_equal(coordinator_await_worker(coordinator, text), 3);
    assert_non_null(strstr(text, "did not come back"));
    coordinator_return(coordinator);
}

static void test_a_taken_name_is_told(void **state)
{
    struct fake_coordinator *coordinator = *state;
    char text[1000];
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"wait=1", NULL});
    coordinator_expect_only(coordinator, MESSAGE_HELLO);
    coordinator_error(coordinator, "name_taken");
    assert_int_equal(coordinator_await_worker(coordinator, text), 3);
    assert_non_null(strstr(text, "--name"));
}

static void test_stay_waits_for_the_next_sweep(void **state)
{
    struct fake_coordinator *coordinator = *state;
    struct message first, second;
    coordinator_start_worker(coordinator, "cpu:1", (const char *const[]){"stay", NULL});
    coordinator_expect(coordinator, MESSAGE_HELLO, &first);
    coordinator_welcome(coordinator);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 1}", 0, 9, NULL);
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_FINISHED, NULL);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_drain(coordinator, false);
    coordinator_expect_only(coordinator, MESSAGE_BYE);
    coordinator_vanish(coordinator);
    coordinator_return(coordinator);
    coordinator_expect(coordinator, MESSAGE_HELLO, &second);
    assert_string_not_equal(first.session, second.session);
    coordinator_welcome(coordinator);
    coordinator_expect_only(coordinator, MESSAGE_READY);
    coordinator_assign(coordinator, 0, 1, 1, "{\"epochs\": 1}", 0, 9, NULL); /* another sweep's trial 1 */
    coordinator_expect_reports(coordinator, 1, 1, 1, 1);
    coordinator_expect_ended(coordinator, 1, 1, 2, OUTCOME_FINISHED, NULL);
    message_release(&first);
    message_release(&second);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, coordinator_setup, coordinator_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_a_crash_costs_one_attempt),
        STORY(test_an_exit_is_a_crash),
        STORY(test_a_stranger_kill_is_a_crash),
        STORY(test_no_memory_is_not_a_crash),
        STORY(test_nonsense_on_the_link_ends_the_runner),
        STORY(test_only_the_end_of_much_output_is_kept),
        STORY(test_nan_and_divergence_pass_through),
        STORY(test_a_crash_while_held_goes_on_from_the_file),
        STORY(test_a_runner_that_never_starts_is_told),
        STORY(test_a_gpu_that_fails_again_and_again_is_given_up),
        STORY(test_a_gpu_is_not_given_up_for_one_trial),
        STORY(test_a_full_disk_hands_everything_back),
        STORY(test_drain_lets_trials_finish),
        STORY(test_drain_now_hands_back),
        STORY(test_a_signal_hands_back),
        STORY(test_a_signal_at_a_rung_waits_for_the_answer),
        STORY(test_a_second_signal_ends_at_once),
        STORY(test_an_endless_epoch_is_handed_back_as_it_came),
        STORY(test_nobody_takes_it_back),
        STORY(test_kill_9_leaves_no_orphans),
        STORY(test_nobody_answers),
        STORY(test_the_coordinator_never_comes_back),
        STORY(test_a_taken_name_is_told),
        STORY(test_stay_waits_for_the_next_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
