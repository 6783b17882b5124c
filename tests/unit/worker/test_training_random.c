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

static void make_model(struct model *model, const struct training_settings *settings,
                       const struct model_input *input, int64_t outputs)
{
    struct error err;
    assert_int_equal(model_init(model, settings, input, outputs, &err), 0);
}

/* The values of the parameter of that name. */
static const real *find(const struct model *model, const real *values, const char *name)
{
    for (int i = 0; i < model->parameter_count; i++)
        if (strcmp(model->list[i].name, name) == 0)
            return values + model->list[i].at;
    fail_msg("no parameter %s", name);
    return NULL;
}

static void test_initial_weights_have_their_bounds(void **state)
{
    const struct training_settings settings = {.model = MODEL_MLP, .hidden = {100}, .hidden_count = 1};
    struct model model;
    struct error err;

    (void)state;
    make_model(&model, &settings, &(struct model_input){.features = 49}, 900);
    real *values = malloc((size_t)model.values * sizeof(*values));
    assert_non_null(values);
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, values, &err), 0);
    assert_uniform(find(&model, values, "layers.0.weight"), 4900, 1 / 7.0);
    assert_uniform(find(&model, values, "layers.1.weight"), 90000, 0.1);
    assert_uniform(find(&model, values, "layers.1.bias"), 900, 0.1);
    assert_int_equal(model_draw(&model, INIT_HE, 5, values, &err), 0);
    assert_uniform(find(&model, values, "layers.0.weight"), 4900, sqrt(6 / 49.0));
    assert_true(moments_of(find(&model, values, "layers.0.bias"), 100).largest == 0);
    assert_true(moments_of(find(&model, values, "layers.1.bias"), 900).largest == 0);
    assert_int_equal(model_draw(&model, INIT_XAVIER, 5, values, &err), 0);
    assert_uniform(find(&model, values, "layers.1.weight"), 90000, sqrt(6 / 1000.0));
    free(values);
    model_release(&model);
}

/* Mean 0 and variance 1 within four standard errors of 40,000 draws, and the share beyond 2 sd, 4.55 %. */
static void test_embeddings_are_standard_normal(void **state)
{
    const struct training_settings settings = {.model = MODEL_LINEAR};
    const int64_t cardinality[] = {800, 800};
    struct model model;
    struct error err;

    (void)state;
    make_model(&model, &settings, &(struct model_input){1, 2, cardinality}, 2);
    assert_int_equal(model.list[1].columns, 50);
    real *values = malloc((size_t)model.values * sizeof(*values));
    assert_non_null(values);
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, values, &err), 0);
    const real *table = find(&model, values, "embeddings.1.weight");
    struct moments moments = moments_of(table, 40000);
    int beyond = 0;
    for (int i = 0; i < 40000; i++)
        beyond += fabs(table[i]) > 2;
    assert_true(fabs(moments.mean) < 4 / sqrt(40000.0));
    assert_true(fabs(moments.square - 1) < 4 * sqrt(2 / 40000.0));
    assert_true(fabs(beyond / 40000.0 - 0.0455) < 4 * sqrt(0.0455 / 40000));
    assert_memory_not_equal(table, find(&model, values, "embeddings.0.weight"), 100 * sizeof(real));
    free(values);
    model_release(&model);
}

/* By hand: 1.6 n^0.56 of 2, 10, 100 and 468 entries is 2.36, 5.81, 21.1 and 50.04. */
static void test_embeddings_have_the_widths_of_the_rule(void **state)
{
    (void)state;
    assert_int_equal(embedding_width(2), 2);
    assert_int_equal(embedding_width(10), 6);
    assert_int_equal(embedding_width(100), 21);
    assert_int_equal(embedding_width(468), 50);
    assert_int_equal(embedding_width(1000000), 50);
}

static void test_norms_begin_as_identity(void **state)
{
    struct training_settings settings = {
        .model = MODEL_RESNET, .norm = NORM_BATCH, .width = 5, .expansion = 3, .blocks = 2};
    struct model model;
    struct error err;

    (void)state;
    make_model(&model, &settings, &(struct model_input){.features = 3}, 2);
    real *values = malloc((size_t)model.values * sizeof(*values));
    assert_non_null(values);
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, values, &err), 0);
    for (int i = 0; i < 5; i++) {
        assert_true(find(&model, values, "blocks.1.norm.weight")[i] == 1);
        assert_true(find(&model, values, "blocks.1.norm.bias")[i] == 0);
        assert_true(find(&model, values, "norm.running_mean")[i] == 0);
        assert_true(find(&model, values, "norm.running_mean")[5 + i] == 1);
        assert_true(find(&model, values, "norm.running_var")[i] == 1);
    }
    free(values);
    model_release(&model);
}

static void test_layers_have_weights_of_their_own(void **state)
{
    const struct training_settings settings = {.model = MODEL_MLP, .hidden = {8, 8}, .hidden_count = 2};
    struct model model;
    struct error err;
    real values[500], again[500];

    (void)state;
    make_model(&model, &settings, &(struct model_input){.features = 8}, 8);
    /* Three weights of 64, three biases of 8 that each take PARAMETER_ALIGNMENT. */
    assert_true(model.weights == 3 * 64 && model.parameters == 3 * 64 + 3 * PARAMETER_ALIGNMENT);
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, values, &err), 0);
    assert_memory_not_equal(values, values + 64, 64 * sizeof(real));
    assert_int_equal(model_draw(&model, INIT_DEFAULT, 5, again, &err), 0);
    assert_memory_equal(values, again, (size_t)model.values * sizeof(real));
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_the_rows_sorted_by_word),
        cmocka_unit_test(test_order_differs_by_epoch_and_seed),
        cmocka_unit_test(test_trials_have_seeds_of_their_own),
        cmocka_unit_test(test_initial_weights_have_their_bounds),
        cmocka_unit_test(test_embeddings_are_standard_normal),
        cmocka_unit_test(test_embeddings_have_the_widths_of_the_rule),
        cmocka_unit_test(test_norms_begin_as_identity),
        cmocka_unit_test(test_layers_have_weights_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
