/* Trials on devices: every one trains to what the CPU does, and each failure of one is an error. */
#include "trainer_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Weights, order and dropout are the same on every device, so only rounding tells them apart. (On a CPU this
 * compares it with itself.) */
static void test_every_device_trains_to_the_same(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct error err = {0};
    struct device *cpu = device_create("cpu:0", &err);

    (void)state;
    assert_non_null(cpu);
    for (int form = 0; form < 12; form++) {
        const int64_t classes[] = {3, 2, 0, 0};
        const enum loss_kind losses[] = {LOSS_CROSS_ENTROPY, LOSS_BINARY, LOSS_MSE, LOSS_HUBER};
        world_init(&world, classes[form % 4]);
        world.dataset.categories = form % 2 ? 2 : 0;
        settings.loss = losses[form % 4];
        settings.model = form % 5 ? form % 5 < 3 ? MODEL_RESNET : MODEL_MLP : MODEL_LINEAR;
        settings.norm = (enum norm_kind)(form % 3);
        settings.norm_batch = 10;
        settings.micro_batch = form % 2 ? 20 : 0;
        settings.activation = (enum activation)(form % 4);
        settings.optimizer = (enum optimizer_kind)(form % 5);
        settings.learning_rate = settings.optimizer == OPTIMIZER_LARS ? 1 : 0.003;
        settings.momentum = 0.5;
        settings.clip_norm = form % 3 ? 0.5 : 0;
        settings.label_smoothing = form % 2 ? 0.1 : 0;
        settings.class_weight = form % 3 ? CLASS_WEIGHT_BALANCED : CLASS_WEIGHT_NONE;
        settings.schedule = (enum schedule_kind)(form % 6);
        settings.step_epochs = 1;
        settings.step_factor = 0.5;
        struct trainer *here = world_trainer(&world, &settings, 3);
        struct trainer *there = trainer_create(&settings, &world.dataset, cpu, 3, &err);
        assert_non_null(there);
        for (int epoch = 0; epoch < 3; epoch++) {
            const char *name = epoch == 2 ? "validation_loss" : "train_loss";
            double found = world_metric(here, name), expected = world_metric(there, name);
            if (!(fabs(found - expected) < 2e-4 * (1 + expected)))
                fail_msg("form %d, epoch %d: %s %.9g, on the CPU %.9g", form, epoch, name, found, expected);
        }
        trainer_destroy(here);
        trainer_destroy(there);
        world_release(&world);
    }
    device_destroy(cpu);
}

static const struct device_operations *working;
static int calls_left; /* until a call fails */

static int count_call(struct error *err)
{
    return calls_left-- > 0 ? 0 : error_set(err, ERROR_MEMORY, "planted failure");
}

static int failing_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    return count_call(err) == 0 ? working->allocate(device, memory, bytes, err) : -1;
}

static int failing_share(struct device *device, const void **memory, const void *host, size_t bytes,
                         struct error *err)
{
    return count_call(err) == 0 ? working->share(device, memory, host, bytes, err) : -1;
}

static int failing_synchronize(struct device *device, struct error *err)
{
    return count_call(err) == 0 ? working->synchronize(device, err) : -1;
}

/* A trial's whole life; 0 only if nothing failed. What it took is given back in any case (the leak checker
 * sees). */
static int live(const struct trainer_world *world, const struct training_settings *settings,
                struct error *err)
{
    struct trainer *trainer = trainer_create(settings, &world->dataset, world->device, 1, err);
    json_t *metrics = NULL;
    bool diverged;
    int result = trainer ? trainer_epoch(trainer, &metrics, &diverged, err) : -1;

    if (result == 0)
        result = trainer_save(trainer, world->path, err);
    if (result == 0)
        result = trainer_load(trainer, world->path, err);
    json_decref(metrics);
    trainer_destroy(trainer);
    return result;
}

static void test_each_failure_of_the_device_is_an_error(void **state)
{
    struct training_settings settings = world_settings();
    struct device_operations operations;
    struct trainer_world world;
    int failures = 0;

    (void)state;
    world_init(&world, 3);
    working = world.device->operations;
    operations = *working;
    operations.allocate = failing_allocate;
    operations.share = failing_share;
    operations.synchronize = failing_synchronize;
    world.device->operations = &operations;
    for (;; failures++) {
        struct error err = {0};
        calls_left = failures;
        if (live(&world, &settings, &err) == 0)
            break;
        assert_int_equal(err.code, ERROR_MEMORY);
        assert_non_null(strstr(err.message, "planted failure"));
        assert_true(failures < 100);
    }
    assert_true(failures >= 10);
    world.device->operations = working;
    world_release(&world);
}

/* ---- recordings that fail ---- */

static bool lost; /* from the failure on nothing works */

static int planted_begin(struct device *device, struct error *err)
{
    (void)device;
    return error_set(err, ERROR_MEMORY, "planted: no room");
}

static int planted_end(struct device *device, struct device_recording **recording, struct error *err)
{
    struct device_recording *made = NULL;

    if (working->record_end(device, &made, err) == 0)
        working->forget(device, made);
    *recording = NULL;
    return planted_begin(device, err);
}

static int lost_begin(struct device *device, struct error *err)
{
    lost = true;
    return planted_begin(device, err);
}

static int lost_synchronize(struct device *device, struct error *err)
{
    int result = working->synchronize(device, err);
    return lost ? error_set(err, ERROR_RESOURCE, "planted: the device is lost") : result;
}

/* Metrics of two epochs, one line each; the notes of the record behind them. free() it. */
static char *live_twice(const struct trainer_world *world, const struct training_settings *settings)
{
    struct trainer *trainer = world_trainer(world, settings, 1);
    char *first = world_epoch(trainer), *second = world_epoch(trainer);
    json_t *details = trainer_details(trainer);
    char *notes = json_canonical(json_object_get(details, "notes"));
    size_t size = strlen(first) + strlen(second) + (notes ? strlen(notes) : 0) + 3;
    char *all = malloc(size);

    assert_non_null(all);
    snprintf(all, size, "%s\n%s\n%s", first, second, notes ? notes : "");
    free(first);
    free(second);
    free(notes);
    json_decref(details);
    trainer_destroy(trainer);
    return all;
}

static void test_steps_that_cannot_be_recorded_are_run(void **state)
{
    struct training_settings settings = world_settings();
    struct device_operations operations;
    struct trainer_world world;

    (void)state;
    world_init(&world, 3);
    working = world.device->operations;
    char *expected = live_twice(&world, &settings);
    for (int end = 0; end <= (working->record_end != NULL); end++) {
        operations = *working;
        if (end)
            operations.record_end = planted_end;
        else
            operations.record_begin = planted_begin;
        world.device->operations = &operations;
        char *found = live_twice(&world, &settings);
        assert_int_equal(strncmp(found, expected, strlen(expected)), 0);
        assert_non_null(strstr(found, "planted: no room"));
        free(found);
    }
    world.device->operations = working;
    assert_null(strstr(expected, "planted"));
    free(expected);
    world_release(&world);
}

static void test_a_device_lost_while_it_records_fails_the_trial(void **state)
{
    struct training_settings settings = world_settings();
    struct device_operations operations;
    struct trainer_world world;
    struct error err = {0};
    json_t *metrics = NULL;
    bool diverged;

    (void)state;
    world_init(&world, 3);
    working = world.device->operations;
    operations = *working;
    operations.record_begin = lost_begin;
    operations.synchronize = lost_synchronize;
    world.device->operations = &operations;
    struct trainer *trainer = world_trainer(&world, &settings, 1);
    assert_int_equal(trainer_epoch(trainer, &metrics, &diverged, &err), -1);
    assert_string_equal(err.message, "planted: the device is lost");
    trainer_destroy(trainer);
    lost = false;
    world.device->operations = working;
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_device_trains_to_the_same),
        cmocka_unit_test(test_each_failure_of_the_device_is_an_error),
        cmocka_unit_test(test_steps_that_cannot_be_recorded_are_run),
        cmocka_unit_test(test_a_device_lost_while_it_records_fails_the_trial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
