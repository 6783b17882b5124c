/* The trainer's random numbers and initial weights. */
#include "worker/training/random.h"

#include "base/random.h"
#include "worker/training/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 1078

static uint32_t shuffle_word(uint64_t seed, int64_t epoch, int32_t row)
{
    return philox4x32(seed, (uint32_t)row / 4, 0, (uint32_t)epoch, random_stream(RANDOM_SHUFFLE, 0))
        .word[row % 4];
}

static void test_order_is_the_rows_sorted_by_word(void **state)
{
    const uint64_t seed = 0x123456789abcdef;
    int32_t order[ROWS];
    uint64_t scratch[2 * ROWS];
    bool seen[ROWS] = {false};

    (void)state;
    random_order(seed, 3, order, ROWS, scratch);
    for (int i = 0; i < ROWS; i++) {
        assert_in_range(order[i], 0, ROWS - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
        if (i > 0)
            assert_true(shuffle_word(seed, 3, order[i - 1]) < shuffle_word(seed, 3, order[i]) ||
                        (shuffle_word(seed, 3, order[i - 1]) == shuffle_word(seed, 3, order[i]) &&
                         order[i - 1] < order[i]));
    }
}

static void test_order_differs_by_epoch_and_seed(void **state)
{
    int32_t first[ROWS], second[ROWS];
    uint64_t scratch[2 * ROWS];

    (void)state;
    random_order(1, 0, first, ROWS, scratch);
    random_order(1, 1, second, ROWS, scratch);
    assert_memory_not_equal(first, second, sizeof(first));
    random_order(2, 0, second, ROWS, scratch);
    assert_memory_not_equal(first, second, sizeof(first));
    random_order(1, 0, second, ROWS, scratch);
    assert_memory_equal(first, second, sizeof(first));
    random_order(1, 0, second, 1, scratch);
    assert_int_equal(second[0], 0);
}

static void test_trials_have_seeds_of_their_own(void **state)
{
    (void)state;
    struct philox block =
        philox4x32(7, 3, (uint32_t)fnv1a64("trial", 5), (uint32_t)(fnv1a64("trial", 5) >> 32), 0);
    assert_true(trial_seed(7, 3) == ((uint64_t)block.word[1] << 32 | block.word[0]));
    assert_true(trial_seed(7, 3) != trial_seed(7, 4));
    assert_true(trial_seed(7, 3) != trial_seed(8, 3));
}

struct moments {
    double largest, mean, square;
};

static struct moments moments_of(const real *values, int64_t count)
{
    struct moments moments = {0};
    for (int64_t i = 0; i < count; i++) {
        moments.largest = fmax(moments.largest, fabs(values[i]));
        moments.mean += values[i] / (double)count;
        moments.square += (double)values[i] * values[i] / (double)count;
    }
    return moments;
}

/* Uniform in +-bound: largest near bound, mean near 0 (4 standard errors), second moment near bound^2/3. */
static void assert_uniform(const real *values, int64_t count, double bound)
{
    struct moments moments = moments_of(values, count);

    assert_true(moments.largest <= bound * (1 + 1e-6) && moments.largest > 0.98 * bound);
    assert_true(fabs(moments.mean) < 4 * bound / sqrt(3.0 * (double)count));
    assert_true(fabs(moments.square / (bound * bound / 3) - 1) < 0.1);
}

static void test_initial_weights_have_their_bounds(void **state)
{
    const struct training_settings settings = {.model = MODEL_MLP, .hidden = {100}, .hidden_count = 1};
    struct model model;
    struct error err;

    (void)state;
    model_init(&model, &settings, 49, 900);
    real *parameters = malloc((size_t)model.parameters * sizeof(*parameters));
    assert_non_null(parameters);
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, parameters, &err), 0);
    assert_uniform(parameters + model.layers[0].weight, 4900, 1 / 7.0);
    assert_uniform(parameters + model.layers[1].weight, 90000, 0.1);
    assert_uniform(parameters + model.layers[1].bias, 900, 0.1);
    assert_int_equal(model_draw(&model, INIT_HE, 5, parameters, &err), 0);
    assert_uniform(parameters + model.layers[0].weight, 4900, sqrt(6 / 49.0));
    assert_true(moments_of(parameters + model.layers[0].bias, 1000).largest == 0);
    assert_int_equal(model_draw(&model, INIT_XAVIER, 5, parameters, &err), 0);
    assert_uniform(parameters + model.layers[1].weight, 90000, sqrt(6 / 1000.0));
    free(parameters);
}

static void test_layers_have_weights_of_their_own(void **state)
{
    const struct training_settings settings = {.model = MODEL_MLP, .hidden = {8, 8}, .hidden_count = 2};
    struct model model;
    struct error err;
    real parameters[300], again[300];

    (void)state;
    model_init(&model, &settings, 8, 8);
    assert_true(model.parameters == 3 * 72);
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, parameters, &err), 0);
    assert_memory_not_equal(parameters, parameters + 64, 64 * sizeof(real));
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, again, &err), 0);
    assert_memory_equal(parameters, again, 216 * sizeof(real));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_the_rows_sorted_by_word),
        cmocka_unit_test(test_order_differs_by_epoch_and_seed),
        cmocka_unit_test(test_trials_have_seeds_of_their_own),
        cmocka_unit_test(test_initial_weights_have_their_bounds),
        cmocka_unit_test(test_layers_have_weights_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
