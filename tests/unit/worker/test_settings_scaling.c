/* Scaling with the batch, against values worked out by hand. */
#include "worker/training/settings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-15 + 1e-12 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static struct training_settings base_settings(void)
{
    struct training_settings settings;
    struct error err;
    assert_int_equal(training_settings_read(&settings, NULL, NULL, &err), 0);
    settings.epochs = 27;
    settings.batch_size = 128;
    settings.base_batch_size = 32;
    return settings;
}

static struct derived derive(const struct training_settings *settings, int64_t rows)
{
    struct derived derived;
    training_derive(settings, rows, &derived);
    return derived;
}

static void steps(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.warmup_epochs = 1.5;
    struct derived d = derive(&settings, 1079); /* 8 full batches and one of 55 */
    assert_int_equal(d.batch_size, 128);
    assert_int_equal(d.micro_batch, 128);
    assert_int_equal(d.accumulation, 1);
    assert_int_equal(d.steps_per_epoch, 9);
    assert_int_equal(d.total_steps, 243);
    assert_int_equal(d.warmup_steps, 14); /* round(13.5) */
}

static void batch_is_capped_by_the_rows(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.rule = SCALING_LINEAR;
    struct derived d = derive(&settings, 64);
    assert_int_equal(d.batch_size, 64);
    assert_int_equal(d.steps_per_epoch, 1);
    near(d.kappa, 2);
    near(d.peak_learning_rate, 0.002);
}

static void micro_batches_cover_the_batch(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.micro_batch = 50;
    struct derived d = derive(&settings, 1000);
    assert_int_equal(d.micro_batch, 50);
    assert_int_equal(d.accumulation, 3); /* 50 + 50 + 28 */
    settings.micro_batch = 500;
    d = derive(&settings, 1000);
    assert_int_equal(d.micro_batch, 128);
    assert_int_equal(d.accumulation, 1);
}

static void rules(void **state)
{
    (void)state;
    struct training_settings settings = base_settings(); /* kappa = 4 */
    const double scale[] = {1, 4, 2, 2.8284271247461903};
    settings.power = 0.75;
    for (int rule = SCALING_NONE; rule <= SCALING_POWER; rule++) {
        settings.rule = (enum scaling_rule)rule;
        struct derived d = derive(&settings, 1000);
        near(d.kappa, 4);
        near(d.scale, scale[rule]);
        near(d.peak_learning_rate, 0.001 * scale[rule]);
        near(d.beta1, 0.9);
        near(d.weight_decay, 0.01);
    }
}

static void betas_epsilon_and_decay(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.rule = SCALING_SQRT;
    settings.scale_betas = settings.scale_weight_decay = true;
    struct derived d = derive(&settings, 1000);
    near(d.beta1, 0.6561);              /* 0.9^4 */
    near(d.beta2, 0.996005996001);      /* 0.999^4 */
    near(d.epsilon, 5e-9);              /* 1e-8 / sqrt(4) */
    near(d.weight_decay, 0.02);         /* 0.01 * 4 / 2 */
    settings.optimizer = OPTIMIZER_SGD; /* neither means anything there */
    d = derive(&settings, 1000);
    near(d.beta1, 0.9);
    near(d.weight_decay, 0.01);
}

/* betas mean something to all that keep moving means, decay apart from the gradient to adamw and lamb. */
static void other_optimizers(void **state)
{
    (void)state;
    const struct {
        enum optimizer_kind optimizer;
        double beta1, weight_decay;
    } expected[] = {
        {OPTIMIZER_ADAM, 0.6561, 0.01}, {OPTIMIZER_LAMB, 0.6561, 0.02}, {OPTIMIZER_LARS, 0.9, 0.01}};
    struct training_settings settings = base_settings();
    settings.rule = SCALING_SQRT;
    settings.scale_betas = settings.scale_weight_decay = true;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        settings.optimizer = expected[i].optimizer;
        struct derived d = derive(&settings, 1000);
        near(d.beta1, expected[i].beta1);
        near(d.weight_decay, expected[i].weight_decay);
    }
}

/* Micro batches of whole groups, one at least; a row left over joins the micro batch before it. */
static void micro_batches_are_groups(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.norm = NORM_BATCH;
    struct derived d = derive(&settings, 1000);
    assert_int_equal(d.norm_batch, 128); /* of a batch of 128 */
    settings.norm_batch = 9;
    settings.micro_batch = 30;
    d = derive(&settings, 1000);
    assert_int_equal(d.norm_batch, 9);
    assert_int_equal(d.micro_batch, 27);
    assert_int_equal(d.accumulation, 5); /* 4 of 27, one of 20 */
    settings.micro_batch = 5;
    d = derive(&settings, 1000);
    assert_int_equal(d.micro_batch, 9);
    settings.batch_size = 28;
    settings.micro_batch = 9;
    d = derive(&settings, 1000);
    assert_int_equal(d.accumulation, 3);
    assert_int_equal(derived_micro_rows(&d, 0, 28), 9);
    assert_int_equal(derived_micro_rows(&d, 9, 28), 9);
    assert_int_equal(derived_micro_rows(&d, 18, 28), 10);
    assert_int_equal(derived_most_rows(&d, 1000), 10);
    d = derive(&settings, 28 * 3 + 19); /* a last batch of 19: 9 and 10 */
    assert_int_equal(derived_most_rows(&d, 28 * 3 + 19), 10);
    settings.batch_size = 30;
    d = derive(&settings, 90);
    assert_int_equal(d.accumulation, 4); /* 9, 9, 9, 3 */
    assert_int_equal(derived_most_rows(&d, 90), 9);
    settings.norm_batch = 500;
    d = derive(&settings, 1000);
    assert_int_equal(d.norm_batch, 30);
    assert_int_equal(d.micro_batch, 30);
    settings.norm = NORM_LAYER;
    d = derive(&settings, 1000);
    assert_int_equal(d.norm_batch, 0);
    assert_int_equal(d.micro_batch, 9);
}

static void without_a_base_nothing_scales(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.base_batch_size = 0;
    settings.scale_betas = settings.scale_weight_decay = true;
    struct derived d = derive(&settings, 1000);
    near(d.kappa, 1);
    near(d.scale, 1);
    near(d.beta1, 0.9);
    near(d.weight_decay, 0.01);
}

static void warmup_ends_with_the_training(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.warmup_epochs = 100;
    struct derived d = derive(&settings, 1000);
    assert_int_equal(d.warmup_steps, d.total_steps);
}

static void record(void **state)
{
    (void)state;
    struct training_settings settings = base_settings();
    settings.rule = SCALING_SQRT;
    struct derived d = derive(&settings, 1000);
    json_t *object = derived_to_json(&d);
    char *text = json_canonical(object);
    assert_string_equal(
        text, "{\"accumulation\":1,\"batch_size\":128,\"beta1\":0.9,\"beta2\":0.999,\"epsilon\":1e-08,"
              "\"kappa\":4.0,"
              "\"micro_batch\":128,\"peak_learning_rate\":0.002,\"scale\":2.0,\"steps_per_epoch\":8,"
              "\"total_steps\":216,\"warmup_steps\":0,\"weight_decay\":0.01}");
    free(text);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(batch_is_capped_by_the_rows),
        cmocka_unit_test(micro_batches_cover_the_batch),
        cmocka_unit_test(rules),
        cmocka_unit_test(betas_epsilon_and_decay),
        cmocka_unit_test(other_optimizers),
        cmocka_unit_test(micro_batches_are_groups),
        cmocka_unit_test(without_a_base_nothing_scales),
        cmocka_unit_test(warmup_ends_with_the_training),
        cmocka_unit_test(record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
