/* The live line: what it says at which width, and what addresses it names. */
#include "cli/addresses.h"
#include "cli/listing.h"
#include "cli/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The table of commands is main.c's. */
int command_usage_error(const char *command, const char *format, ...)
{
    (void)command;
    (void)format;
    return 2;
}

static const struct stopping_settings all_whole = {
    .kind = STOPPING_NONE, .min_iter = 10, .max_iter = 10, .eta = 3, .trials = 60};
static const struct stopping_settings asha = {
    .kind = STOPPING_ASHA_PROMOTION, .min_iter = 1, .max_iter = 9, .eta = 3, .trials = 60};

static const struct engine_counts midway = {.proposed = 43,
                                            .running = 4,
                                            .paused = 30,
                                            .completed = 3,
                                            .failed = 1,
                                            .total = 60,
                                            .workers = 2,
                                            .best_trial = 36,
                                            .best_objective = 0.98329,
                                            .resource_done = 71,
                                            .state = SWEEP_RUNNING};

/* The line without its last part, the time. */
static char *line_at(const struct stopping_settings *stopping, int width)
{
    struct progress progress;
    struct text text;
    text_init(&text);
    progress_init(&progress, "validation_accuracy", stopping, false);
    progress_describe(&progress, &midway, width, &text);
    progress_release(&progress);
    assert_false(text.failed);
    if (width > 0) {
        assert_true(text_width(text.data, text.size) <= width);
    }
    return text_steal(&text);
}

static void expect(const struct stopping_settings *stopping, int width, const char *expected)
{
    char *line = line_at(stopping, width);
    if (strncmp(line, expected, strlen(expected)) != 0) {
        fail_msg("%d columns: %s", width, line);
    }
    free(line);
}

static void test_line(void **state)
{
    (void)state;
    expect(&all_whole, 0,
           "[==>                     ] 4/60 trials, 1 failed, 4 running, 30 paused, 2 workers, best "
           "validation_accuracy 0.98329 (trial 36), 0.0 s");
    expect(&asha, 0,
           "[============>           ] 43/60 trials begun, 1 failed, 71 epochs, 4 running, 30 paused, 2 "
           "workers, ");
    expect(&asha, 100,
           "[=======>       ] 43/60 trials begun, 1 failed, 71 epochs, 4 running, best 0.98329 (trial 36), "
           "0.0 s");
    expect(&asha, 79, "43/60 trials begun, 1 failed, 71 epochs, best 0.98329 (trial 36), 0.0 s");
    expect(&all_whole, 79, "[=>          ] 4/60 trials, 1 failed, 4 running, best 0.98329 (trial 36), 0.0 s");
    expect(&asha, 50, "43/60 trials begun, best 0.98329 (trial 36)");
    expect(&asha, 30, "[====>    ] 43/60 trials begun");
    expect(&asha, 18, "43/60 trials begun");
}

static void test_never_wider_than_the_terminal(void **state)
{
    (void)state;
    for (int width = 18; width < 200; width++) {
        free(line_at(&asha, width));
        free(line_at(&all_whole, width));
    }
}

static void test_addresses(void **state)
{
    (void)state;
    char addresses[4][ADDRESS_SIZE];
    assert_int_equal(addresses_usable("tcp://10.1.2.3:7155", addresses, 4), 1);
    assert_string_equal(addresses[0], "tcp://10.1.2.3:7155");
    static const char *const wild[] = {"tcp://0.0.0.0:7155", "tcp://*:7155", "tcp://[::]:7155"};
    for (size_t i = 0; i < 3; i++) {
        size_t count = addresses_usable(wild[i], addresses, 4);
        assert_true(count >= 1 && count <= 4);
        for (size_t k = 0; k < count; k++) {
            const char *host = addresses[k] + strlen("tcp://");
            assert_memory_equal(addresses[k], "tcp://", 6);
            assert_false(strncmp(host, "0.0.0.0", 7) == 0 || host[0] == '*' || host[0] == '[');
            assert_false(strncmp(host, "127.", 4) == 0);
            assert_string_equal(strrchr(addresses[k], ':'), ":7155");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_never_wider_than_the_terminal),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
