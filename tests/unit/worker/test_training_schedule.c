/* Learning rates: the gradual warm-up with and without lr_scaling, the cosine, the edges. (Whole schedules
 * are compared with PyTorch's in test_training_golden.) */
#include "worker/training/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct derived derive(const struct training_settings *settings, int64_t rows)
{
    struct derived derived;
    training_derive(settings, rows, &derived);
    return derived;
}

static void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * (1 + fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* kappa = 4: peak 0.4, and the first warm-up step is just above the unscaled 0.1. 100 rows: 7 steps an epoch.
 */
static void test_warmup_climbs_from_the_unscaled_rate(void **state)
{
    const struct training_settings settings = {.learning_rate = 0.1,
                                               .batch_size = 16,
                                               .epochs = 5,
                                               .schedule = SCHEDULE_CONSTANT,
                                               .warmup_epochs = 2,
                                               .rule = SCALING_LINEAR,
                                               .base_batch_size = 4};
    struct derived derived = derive(&settings, 100);

    (void)state;
    assert_int_equal(derived.warmup_steps, 14);
    for (int64_t t = 0; t < 14; t++)
        assert_close(schedule_learning_rate(&settings, &derived, t), 0.1 + 0.3 * (double)(t + 1) / 14);
    assert_close(schedule_learning_rate(&settings, &derived, 14), 0.4);
    assert_close(schedule_learning_rate(&settings, &derived, 34), 0.4);
}

/* A smaller batch than the base: f < 1, and f0 = min(1, 1/f) = 1 starts at the peak. */
static void test_warmup_below_the_base_is_flat(void **state)
{
    const struct training_settings settings = {.learning_rate = 0.1,
                                               .batch_size = 16,
                                               .epochs = 5,
                                               .warmup_epochs = 1,
                                               .rule = SCALING_SQRT,
                                               .base_batch_size = 64};
    struct derived derived = derive(&settings, 160);

    (void)state;
    for (int64_t t = 0; t < 12; t++)
        assert_close(schedule_learning_rate(&settings, &derived, t), 0.05);
}

static void test_warmup_without_scaling_starts_at_nothing(void **state)
{
    const struct training_settings settings = {.learning_rate = 0.2,
                                               .batch_size = 10,
                                               .epochs = 4,
                                               .warmup_epochs = 0.5,
                                               .schedule = SCHEDULE_COSINE};
    struct derived derived = derive(&settings, 80); /* 8 steps an epoch, W = 4, T = 32 */

    (void)state;
    assert_close(schedule_learning_rate(&settings, &derived, 0), 0.05);
    assert_close(schedule_learning_rate(&settings, &derived, 3), 0.2);
    assert_close(schedule_learning_rate(&settings, &derived, 4), 0.2);
    assert_close(schedule_learning_rate(&settings, &derived, 18), 0.1); /* half way: (18 - 4) / 28 */
    assert_close(schedule_learning_rate(&settings, &derived, 32), 0);
    assert_close(schedule_learning_rate(&settings, &derived, 99), 0); /* trained on beyond the plan */
}

/* Accumulation must not stretch the schedule: it counts optimizer steps. */
static void test_micro_batches_leave_the_schedule(void **state)
{
    struct training_settings settings = {
        .learning_rate = 0.2, .batch_size = 10, .epochs = 3, .warmup_epochs = 1, .schedule = SCHEDULE_COSINE};
    struct derived whole = derive(&settings, 95), cut;

    (void)state;
    settings.micro_batch = 3;
    cut = derive(&settings, 95);
    assert_int_equal(cut.accumulation, 4);
    for (int64_t t = 0; t < 30; t++)
        assert_close(schedule_learning_rate(&settings, &cut, t),
                     schedule_learning_rate(&settings, &whole, t));
}

static void test_warmup_may_take_all_steps(void **state)
{
    const struct training_settings settings = {
        .learning_rate = 1, .batch_size = 10, .epochs = 2, .warmup_epochs = 2, .schedule = SCHEDULE_COSINE};
    struct derived derived = derive(&settings, 20);

    (void)state;
    assert_close(schedule_learning_rate(&settings, &derived, 3), 1);
    assert_true(isfinite(schedule_learning_rate(&settings, &derived, 4)));
}

static struct training_settings schedule_settings(enum schedule_kind schedule)
{
    return (struct training_settings){.learning_rate = 0.2,
                                      .batch_size = 10,
                                      .epochs = 5,
                                      .schedule = schedule,
                                      .step_epochs = 1.5,
                                      .step_factor = 0.5};
}

/* 4 steps an epoch, so T = 20, and a fall each round(1.5 * 4) = 6 steps. */
static void test_steps_fall(void **state)
{
    struct training_settings settings = schedule_settings(SCHEDULE_STEP);
    struct derived derived = derive(&settings, 40);

    (void)state;
    for (int64_t t = 0; t < 20; t++)
        assert_close(schedule_learning_rate(&settings, &derived, t), t < 6    ? 0.2
                                                                     : t < 12 ? 0.1
                                                                     : t < 18 ? 0.05
                                                                              : 0.025);
    assert_close(schedule_learning_rate(&settings, &derived, 500), 0.025); /* trained on beyond the plan */
    settings.warmup_epochs = 0.5; /* W = 2: the falls come 2 steps later */
    derived = derive(&settings, 40);
    assert_close(schedule_learning_rate(&settings, &derived, 7), 0.2);
    assert_close(schedule_learning_rate(&settings, &derived, 8), 0.1);
    settings.step_epochs = 0.01; /* less than a step is one step */
    assert_close(schedule_learning_rate(&settings, &derived, 4), 0.05);
}

static void test_linear_reaches_nothing(void **state)
{
    struct training_settings settings = schedule_settings(SCHEDULE_LINEAR);
    struct derived derived = derive(&settings, 40);

    (void)state;
    assert_close(schedule_learning_rate(&settings, &derived, 0), 0.2);
    assert_close(schedule_learning_rate(&settings, &derived, 5), 0.15);
    assert_close(schedule_learning_rate(&settings, &derived, 19), 0.01);
    assert_close(schedule_learning_rate(&settings, &derived, 20), 0);
}

static void test_wsd_decays_in_the_last_fifth(void **state)
{
    struct training_settings settings = schedule_settings(SCHEDULE_WSD);
    struct derived derived = derive(&settings, 40);

    (void)state;
    for (int64_t t = 0; t <= 16; t++)
        assert_close(schedule_learning_rate(&settings, &derived, t), 0.2);
    assert_close(schedule_learning_rate(&settings, &derived, 17), 0.15);
    assert_close(schedule_learning_rate(&settings, &derived, 19), 0.05);
    assert_close(schedule_learning_rate(&settings, &derived, 20), 0);
}

/* PyTorch's OneCycleLR(0.2, total_steps=20): from 0.008 to 0.2 at step 5, to 0.008 / 10^4 at step 19. A
 * warm-up of its own makes another one meaningless. */
static void test_one_cycle(void **state)
{
    struct training_settings settings = schedule_settings(SCHEDULE_ONE_CYCLE);
    settings.warmup_epochs = 2;
    struct derived derived = derive(&settings, 40);

    (void)state;
    assert_int_equal(derived.warmup_steps, 0);
    assert_close(schedule_learning_rate(&settings, &derived, 0), 0.008);
    assert_close(schedule_learning_rate(&settings, &derived, 5), 0.2);
    assert_close(schedule_learning_rate(&settings, &derived, 12), (0.2 + 0.008e-4) / 2);
    assert_close(schedule_learning_rate(&settings, &derived, 19), 0.008e-4);
    assert_close(schedule_learning_rate(&settings, &derived, 50), 0.008e-4);
    settings.epochs = 1; /* one step */
    derived = derive(&settings, 10);
    assert_true(isfinite(schedule_learning_rate(&settings, &derived, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warmup_climbs_from_the_unscaled_rate),
        cmocka_unit_test(test_warmup_below_the_base_is_flat),
        cmocka_unit_test(test_warmup_without_scaling_starts_at_nothing),
        cmocka_unit_test(test_micro_batches_leave_the_schedule),
        cmocka_unit_test(test_warmup_may_take_all_steps),
        cmocka_unit_test(test_steps_fall),
        cmocka_unit_test(test_linear_reaches_nothing),
        cmocka_unit_test(test_wsd_decays_in_the_last_fifth),
        cmocka_unit_test(test_one_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
