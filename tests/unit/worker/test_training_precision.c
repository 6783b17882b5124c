/* Precisions: each trains to what float32 does, within its own rounding, from fewer bytes; fp16's loss scale
 * skips, halves, grows, gives up, and comes back from a checkpoint in the middle of all that. */
#include "trainer_fixture.h"
#include "training_fixture.h"

#include "base/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 7

static const char *const names[] = {"auto", "fp32", "tf32", "bf16", "fp16"};

static json_t *details_of(const struct trainer *trainer)
{
    json_t *details = trainer_details(trainer);
    assert_non_null(details);
    return details;
}

static double detail(const struct trainer *trainer, const char *name)
{
    json_t *details = details_of(trainer);
    double value = json_get_number(details, name, NAN);
    json_decref(details);
    return value;
}

static void test_each_precision_learns_what_float32_learns(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    world_init(&world, 3);
    settings.epochs = world_on_cpu(&world) ? 30 : 12;
    settings.dropout = 0.1;
    for (int norm = NORM_NONE; norm <= NORM_BATCH; norm++) {
        double expected = 0;
        settings.model = norm == NORM_LAYER ? MODEL_RESNET : MODEL_MLP;
        settings.norm = (enum norm_kind)norm;
        for (int precision = PRECISION_FP32; precision <= PRECISION_FP16; precision++) {
            double first = 0, loss = 0;
            settings.precision = (enum precision)precision;
            struct trainer *trainer = world_trainer(&world, &settings, 1);
            for (int epoch = 0; epoch < settings.epochs; epoch++) {
                loss = world_metric(trainer, "train_loss");
                first = epoch == 0 ? loss : first;
            }
            expected = precision == PRECISION_FP32 ? loss : expected;
            if (!(loss < 0.8 * first && fabs(loss - expected) < 0.05))
                fail_msg("%s: loss %g from %g, float32's is %g", names[precision], loss, first, expected);
            trainer_destroy(trainer);
        }
    }
    world_release(&world);
}

static void test_records_say_the_precision(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    int64_t bytes[5];

    (void)state;
    world_init(&world, 3);
    for (int precision = PRECISION_FP32; precision <= PRECISION_FP16; precision++) {
        settings.precision = (enum precision)precision;
        struct trainer *trainer = world_trainer(&world, &settings, 1);
        json_t *details = details_of(trainer);
        char *text = json_canonical(details);
        assert_string_equal(json_get_string(details, "precision", ""), names[precision]);
        bytes[precision] = json_get_integer(json_object_get(details, "memory"), "bytes_per_row", 0);
        bool native = world.device->precisions[precision - PRECISION_FP32];
        assert_int_equal(strstr(text, "is emulated on") != NULL, !native);
        free(text);
        json_decref(details);
        trainer_destroy(trainer);
    }
    assert_true(bytes[PRECISION_TF32] == bytes[PRECISION_FP32]);
    assert_true(bytes[PRECISION_BF16] == bytes[PRECISION_FP16]);
    assert_true(bytes[PRECISION_BF16] < 0.7 * (double)bytes[PRECISION_FP32]);
    world_release(&world);
}

/* fp32 on a CPU; elsewhere bf16 where products in it are native. */
static void test_auto_is_decided_by_the_device(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct device as;

    (void)state;
    world_init(&world, 3);
    as = *world.device;
    settings.precision = PRECISION_AUTO;
    for (int form = 0; form < 4; form++) {
        snprintf(world.device->name, sizeof(world.device->name), form & 1 ? "cpu/any" : "cuda/any");
        world.device->precisions[DEVICE_BF16] = form & 2;
        struct trainer *trainer = world_trainer(&world, &settings, 1);
        json_t *details = details_of(trainer);
        assert_string_equal(json_get_string(details, "precision", ""), form == 2 ? "bf16" : "fp32");
        json_decref(details);
        trainer_destroy(trainer);
    }
    memcpy(world.device->name, as.name, sizeof(as.name));
    memcpy(world.device->precisions, as.precisions, sizeof(as.precisions));
    world_release(&world);
}

/* ---- one step of fp16, on the CPU, where a test can look into its memory ---- */

#define ROWS 12
#define FEATURES 4

static float x[ROWS * FEATURES], y[ROWS];

static void bed_scaled(struct training_bed *bed, const struct training_settings *settings,
                       enum device_precision precision)
{
    for (uint32_t i = 0; i < ROWS * FEATURES; i++)
        x[i] = random_value(SEED, i);
    for (uint32_t i = 0; i < ROWS; i++)
        y[i] = random_value(SEED + 1, i);
    bed_init(bed, settings,
             &(struct bed_rows){.rows = ROWS, .features = FEATURES, .precision = precision, .x = x, .y = y},
             SEED);
    bed->memory.rates[0] = 0.1;
}

static struct training_settings scaled_settings(void)
{
    struct training_settings settings = plain_settings(ROWS);

    settings.hidden_count = 1;
    settings.hidden[0] = 8;
    settings.optimizer = OPTIMIZER_ADAMW;
    settings.weight_decay = 0.1;
    return settings;
}

/* The overflow is in the second of three micro batches: its gradient times the scale, 2 * 100 / 12 * 65536,
 * is no number of 16 bits. The step, all three of them, changes no weight, no moment, and not t. */
static void test_an_overflow_skips_the_step_and_halves_the_scale(void **state)
{
    struct training_settings settings = scaled_settings();
    struct training_bed bed;

    (void)state;
    settings.micro_batch = 4;
    bed_scaled(&bed, &settings, DEVICE_FP16);
    struct lane_state *lane = bed.memory.state;
    size_t bytes = (size_t)bed.model.parameters * sizeof(real);
    real *before = malloc(bytes), *mean = malloc(bytes);
    step_run(&bed.plan, ROWS);
    assert_true(lane->step == 1 && lane->updates == 1 && lane->skipped == 0 && lane->clean_steps == 1);
    assert_true(lane->loss_scale == 65536);
    memcpy(before, bed.memory.blocks.parameters, bytes);
    memcpy(mean, bed.memory.moments[0], bytes);
    y[5] = 100;
    lane->epoch_first = 1;
    step_run(&bed.plan, ROWS);
    assert_memory_equal(before, bed.memory.blocks.parameters, bytes);
    assert_memory_equal(mean, bed.memory.moments[0], bytes);
    assert_true(lane->step == 2 && lane->updates == 1 && lane->skipped == 1 && lane->clean_steps == 0);
    assert_true(lane->loss_scale == 32768);
    for (int i = 2; i < 8; i++) { /* until the scale fits it, and no longer */
        lane->epoch_first = i;
        step_run(&bed.plan, ROWS);
    }
    assert_memory_not_equal(before, bed.memory.blocks.parameters, bytes);
    assert_true(lane->step == 8 && lane->updates + lane->skipped == 8);
    assert_true(lane->loss_scale * 200 / 12 < 65504 && lane->loss_scale * 2 * 200 / 12 > 60000);
    for (int64_t i = 0; i < bed.model.parameters; i++)
        assert_true(isfinite(bed.memory.blocks.parameters[i]));
    free(before);
    free(mean);
    bed_release(&bed);
}

/* What is clipped is the gradient, not the gradient times the scale. */
static void test_clipping_comes_after_unscaling(void **state)
{
    struct training_settings settings = scaled_settings();
    struct training_bed scaled, plain;
    double norm = 0, difference = 0;

    (void)state;
    settings.optimizer = OPTIMIZER_SGD;
    settings.weight_decay = 0;
    settings.clip_norm = 0.05;
    bed_scaled(&scaled, &settings, DEVICE_FP16);
    bed_scaled(&plain, &settings, DEVICE_FP32);
    real *start = malloc((size_t)plain.model.parameters * sizeof(*start));
    memcpy(start, plain.memory.blocks.parameters, (size_t)plain.model.parameters * sizeof(*start));
    step_run(&scaled.plan, ROWS);
    step_run(&plain.plan, ROWS);
    assert_true(plain.memory.state->gradient_norm > 0.1); /* it is clipped */
    assert_true(fabs(scaled.memory.state->gradient_norm / plain.memory.state->gradient_norm - 1) < 0.01);
    for (int64_t i = 0; i < plain.model.parameters; i++) {
        double a = scaled.memory.blocks.parameters[i], b = plain.memory.blocks.parameters[i];
        norm += (b - start[i]) * (b - start[i]);
        difference += (a - b) * (a - b);
    }
    assert_true(fabs(sqrt(norm) - 0.1 * 0.05) < 1e-6); /* the step has the rate's length times the limit */
    assert_true(sqrt(difference) < 0.01 * sqrt(norm));
    free(start);
    bed_release(&scaled);
    bed_release(&plain);
}

/* ---- whole trials ---- */

/* One training row's target is far off: its batch overflows until the scale has halved as often as it must.
 */
static void test_a_trial_with_overflows_goes_on(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    settings.precision = PRECISION_FP16;
    settings.dropout = 0;
    world_init(&world, 0);
    world.dataset.y[SPLIT_TRAIN][77] = 60; /* 2 * 60 / 32 * 65536 overflows; at 16384 it no longer does */
    struct trainer *trainer = world_trainer(&world, &settings, 1);
    double first = world_metric(trainer, "validation_rmse"), last = 0;
    assert_true(detail(trainer, "skipped_steps") == 1 && detail(trainer, "loss_scale") == 32768);
    for (int epoch = 1; epoch < 6; epoch++)
        last = world_metric(trainer, "validation_rmse");
    assert_true(detail(trainer, "skipped_steps") == 2 && detail(trainer, "loss_scale") == 16384);
    assert_true(isfinite(first) && isfinite(last));
    trainer_destroy(trainer);
    world_release(&world);
}

static char *checkpoint_of(struct trainer *trainer, const struct trainer_world *world, size_t *size)
{
    struct error err = {0};

    assert_int_equal(trainer_save(trainer, world->path, &err), 0);
    return file_read(world->path, 0, size, &err);
}

/* 150 steps an epoch: the scale halves in the first epochs and doubles 2000 clean steps later. Paused at any
 * epoch, it does so in the same step, and all else is equal bit for bit. */
static void test_a_pause_keeps_the_growth_interval(void **state)
{
    static const int pauses[] = {2, 1, 9, 14};
    struct training_settings settings = world_settings();
    struct trainer_world world;
    size_t size, paused_size;

    (void)state;
    settings.precision = PRECISION_FP16;
    settings.hidden_count = 1;
    settings.batch_size = 1;
    settings.epochs = 16;
    settings.optimizer = OPTIMIZER_LAMB;
    settings.learning_rate = 1e-3;
    settings.clip_norm = 1;
    settings.norm = NORM_LAYER;
    world_init(&world, 0);
    /* Elsewhere than on a CPU 2000 steps take too long to see the growth too. */
    bool grows = world_on_cpu(&world);
    int epochs = grows ? 15 : 4;
    world.dataset.categories = 2;
    struct trainer *calm = world_trainer(&world, &settings, 5);
    for (int epoch = 0; epoch < epochs; epoch++)
        free(world_epoch(calm));
    char *expected = checkpoint_of(calm, &world, &size);
    double skipped = detail(calm, "skipped_steps"), scale = detail(calm, "loss_scale");
    assert_true(skipped > 0 && scale == 65536 * exp2((grows ? 1 : 0) - skipped)); /* it has grown once */
    for (size_t i = 0; i < (grows ? sizeof(pauses) / sizeof(*pauses) : 1); i++) {
        struct trainer *paused = world_trainer(&world, &settings, 5);
        struct error err = {0};
        for (int epoch = 0; epoch < epochs; epoch++) {
            if (epoch == pauses[i]) {
                free(checkpoint_of(paused, &world, &paused_size));
                trainer_destroy(paused);
                paused = world_trainer(&world, &settings, 5);
                if (trainer_load(paused, world.path, &err) != 0)
                    fail_msg("%s", err.message);
            }
            free(world_epoch(paused));
        }
        char *found = checkpoint_of(paused, &world, &paused_size);
        assert_int_equal(paused_size, size);
        assert_memory_equal(found, expected, size);
        free(found);
        trainer_destroy(paused);
    }
    free(expected);
    trainer_destroy(calm);
    world_release(&world);
}

/* Targets no scale is small enough for until it is far below 1: 17 halvings, then 100 steps. */
static void test_a_scale_that_stays_small_has_diverged(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct error err = {0};
    bool diverged = false;
    json_t *metrics;

    (void)state;
    settings.precision = PRECISION_FP16;
    settings.loss = LOSS_HUBER;
    settings.huber_delta = 1e9;
    settings.learning_rate = 1e-6;
    settings.clip_norm = 1;
    world_init(&world, 0);
    for (int i = 0; i < 150; i++)
        world.dataset.y[SPLIT_TRAIN][i] = 1e8f;
    struct trainer *trainer = world_trainer(&world, &settings, 1);
    int epochs = 0;
    for (; epochs < 40 && !diverged; epochs++) {
        assert_int_equal(trainer_epoch(trainer, &metrics, &diverged, &err), 0);
        json_decref(metrics);
    }
    assert_true(diverged && epochs * 5 >= 117 && epochs * 5 < 117 + 10);
    trainer_destroy(trainer);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_precision_learns_what_float32_learns),
        cmocka_unit_test(test_records_say_the_precision),
        cmocka_unit_test(test_auto_is_decided_by_the_device),
        cmocka_unit_test(test_an_overflow_skips_the_step_and_halves_the_scale),
        cmocka_unit_test(test_clipping_comes_after_unscaling),
        cmocka_unit_test(test_a_trial_with_overflows_goes_on),
        cmocka_unit_test(test_a_pause_keeps_the_growth_interval),
        cmocka_unit_test(test_a_scale_that_stays_small_has_diverged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
