/* Checkpoints: a paused trial equals one never paused, bit for bit, at every epoch. */
#include "trainer_fixture.h"

#include "base/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EPOCHS 6

static struct trainer_world world;

static int world_setup(void **state)
{
    (void)state;
    world_init(&world, 3);
    return 0;
}

static int world_teardown(void **state)
{
    (void)state;
    world_release(&world);
    return 0;
}

static void check_pause(const struct training_settings *settings)
{
    for (int pause = 0; pause <= EPOCHS; pause += world_on_cpu(&world) ? 1 : 4) {
        struct trainer *calm = world_trainer(&world, settings, 5),
                       *paused = world_trainer(&world, settings, 5);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            if (epoch == pause) {
                world_save(paused, world.path);
                trainer_destroy(paused);
                paused = world_trainer(&world, settings, 5);
                world_load(paused, world.path);
                assert_int_equal(trainer_resource(paused), epoch);
            }
            char *expected = world_epoch(calm), *found = world_epoch(paused);
            assert_string_equal(expected, found);
            free(expected);
            free(found);
        }
        assert_same_state(&world, calm, paused);
        trainer_destroy(calm);
        trainer_destroy(paused);
    }
}

static void test_pause_changes_nothing(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    check_pause(&settings);
    settings.optimizer = OPTIMIZER_SGD;
    settings.momentum = 0.9;
    settings.nesterov = true;
    settings.activation = ACTIVATION_RELU;
    settings.micro_batch = 10;
    check_pause(&settings);
    settings.momentum = 0;
    settings.nesterov = false;
    settings.model = MODEL_LINEAR;
    check_pause(&settings);
}

/* Running statistics, embeddings, both moments, what 16 bits round. */
static void test_pause_changes_nothing_of_a_resnet(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    world.dataset.categories = 2;
    settings.model = MODEL_RESNET;
    settings.norm = NORM_BATCH;
    settings.norm_batch = 7;
    settings.micro_batch = 14;
    settings.optimizer = OPTIMIZER_LAMB;
    settings.schedule = SCHEDULE_ONE_CYCLE;
    settings.clip_norm = 0.5;
    settings.objective_best = true;
    for (int precision = PRECISION_FP32; precision <= PRECISION_FP16; precision++) {
        settings.precision = (enum precision)precision;
        check_pause(&settings);
    }
    world.dataset.categories = 0;
}

/* Best weights come with the running statistics of their epoch. */
static void test_best_statistics_are_kept(void **state)
{
    struct training_settings settings = world_settings();
    struct error err = {0};
    json_t *then, *now;

    (void)state;
    settings.norm = NORM_BATCH;
    settings.objective_best = true;
    settings.precision = PRECISION_BF16;
    struct trainer *trainer = world_trainer(&world, &settings, 5);
    free(world_epoch(trainer));
    trainer_keep_best(trainer, 0.5);
    assert_int_equal(trainer_evaluate(trainer, SPLIT_TEST, "test_", &then, &err), 0);
    for (int epoch = 0; epoch < 3; epoch++)
        free(world_epoch(trainer));
    world_save(trainer, world.path);
    trainer_destroy(trainer);
    trainer = world_trainer(&world, &settings, 5);
    world_load(trainer, world.path);
    trainer_restore_best(trainer);
    assert_int_equal(trainer_evaluate(trainer, SPLIT_TEST, "test_", &now, &err), 0);
    assert_true(json_equal(then, now));
    json_decref(then);
    json_decref(now);
    trainer_destroy(trainer);
}

/* From another device or precision a trial goes on, and says so. */
static void test_other_numerics_are_told(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    for (int form = 0; form < 3; form++) {
        settings.precision = form == 2 ? PRECISION_FP16 : PRECISION_FP32;
        struct trainer *trainer = world_trainer(&world, &settings, 5);
        free(world_epoch(trainer));
        world_save(trainer, world.path);
        trainer_destroy(trainer);
        settings.precision = form == 1 ? PRECISION_BF16 : PRECISION_FP32;
        trainer = world_trainer(&world, &settings, 5);
        world_load(trainer, world.path);
        json_t *details = trainer_details(trainer);
        char *text = json_canonical(details);
        const char *made_in = form == 2 ? " fp16 micro_batch=32" : " fp32 micro_batch=32";
        assert_int_equal(strstr(text, "went on from a checkpoint of ") != NULL, form > 0);
        assert_int_equal(strstr(text, made_in) != NULL, form > 0);
        free(text);
        json_decref(details);
        assert_true(world_metric(trainer, "train_loss") < 1.5);
        trainer_destroy(trainer);
    }
}

/* Of a sweep whose metric has overflown so far. */
static void test_best_objective_may_be_infinite(void **state)
{
    struct training_settings settings = world_settings();
    const double objectives[] = {INFINITY, -INFINITY, -1e300, 0.1};

    (void)state;
    settings.objective_best = true;
    for (size_t i = 0; i < sizeof(objectives) / sizeof(*objectives); i++) {
        struct trainer *trainer = world_trainer(&world, &settings, 5);
        double objective = 0;
        int64_t resource = 0;
        free(world_epoch(trainer));
        trainer_keep_best(trainer, objectives[i]);
        world_save(trainer, world.path);
        trainer_destroy(trainer);
        trainer = world_trainer(&world, &settings, 5);
        world_load(trainer, world.path);
        assert_true(trainer_best(trainer, &objective, &resource));
        assert_true(objective == objectives[i] && resource == 1);
        trainer_destroy(trainer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause_changes_nothing),
        cmocka_unit_test(test_pause_changes_nothing_of_a_resnet),
        cmocka_unit_test(test_best_statistics_are_kept),
        cmocka_unit_test(test_other_numerics_are_told),
        cmocka_unit_test(test_best_objective_may_be_infinite),
    };
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
