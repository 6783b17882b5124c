/* Whole trials: they learn, they repeat bit for bit, they say when they diverge. */
#include "trainer_fixture.h"

#include "base/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double metric_after(struct trainer *trainer, int epochs, const char *name)
{
    double value = NAN;
    for (int i = 0; i < epochs; i++)
        value = world_metric(trainer, name);
    return value;
}

static void test_classifier_learns(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    settings.epochs = 60;
    settings.dropout = 0;
    world_init(&world, 3);
    struct trainer *trainer = world_trainer(&world, &settings, 1);
    double first = world_metric(trainer, "train_loss");
    assert_true(first > 0.8 && first < 1.6); /* near log 3 */
    assert_true(metric_after(trainer, 49, "train_loss") < 0.25 * first);
    assert_true(metric_after(trainer, 10, "validation_accuracy") > 0.8);
    assert_int_equal(trainer_resource(trainer), 60);
    trainer_destroy(trainer);
    world_release(&world);
}

static void test_regression_learns_with_each_optimizer(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    settings.epochs = 60;
    settings.dropout = 0;
    world_init(&world, 0);
    for (int optimizer = OPTIMIZER_SGD; optimizer <= OPTIMIZER_ADAMW; optimizer++) {
        settings.optimizer = (enum optimizer_kind)optimizer;
        settings.momentum = 0.9;
        struct trainer *trainer = world_trainer(&world, &settings, 1);
        assert_true(metric_after(trainer, 60, "validation_r2") > 0.85);
        trainer_destroy(trainer);
    }
    world_release(&world);
}

static void test_linear_model_has_no_hidden_layer(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    settings.model = MODEL_LINEAR;
    world_init(&world, 3);
    struct trainer *trainer = world_trainer(&world, &settings, 1);
    assert_true(metric_after(trainer, 6, "validation_accuracy") > 0.4);
    trainer_destroy(trainer);
    world_release(&world);
}

/* The loss that the training rows give in evaluation mode equals the running loss of an epoch that learns
 * nothing. */
static void test_train_loss_is_the_mean_over_samples(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct error err;
    json_t *metrics;

    (void)state;
    settings.dropout = 0;
    settings.learning_rate = 0;
    for (int64_t classes = 0; classes <= 3; classes += 3) {
        world_init(&world, classes);
        struct trainer *trainer = world_trainer(&world, &settings, 4);
        assert_int_equal(trainer_evaluate(trainer, SPLIT_TRAIN, "x_", &metrics, &err), 0);
        assert_true(fabs(json_get_number(metrics, "x_loss", NAN) - world_metric(trainer, "train_loss")) <
                    1e-6);
        json_decref(metrics);
        trainer_destroy(trainer);
        world_release(&world);
    }
}

static void test_two_trials_of_one_seed_are_equal(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    world_init(&world, 3);
    struct trainer *one = world_trainer(&world, &settings, 9), *two = world_trainer(&world, &settings, 9);
    struct trainer *other = world_trainer(&world, &settings, 10);
    for (int epoch = 0; epoch < 4; epoch++) {
        char *a = world_epoch(one), *b = world_epoch(two), *c = world_epoch(other);
        assert_string_equal(a, b);
        assert_string_not_equal(a, c);
        free(a);
        free(b);
        free(c);
    }
    trainer_destroy(one);
    trainer_destroy(two);
    trainer_destroy(other);
    world_release(&world);
}

static void test_divergence_is_told(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct error err;
    bool diverged = false;

    (void)state;
    settings.optimizer = OPTIMIZER_SGD;
    settings.learning_rate = 1e12;
    settings.warmup_epochs = 0;
    world_init(&world, 0);
    struct trainer *trainer = world_trainer(&world, &settings, 9);
    for (int epoch = 0; epoch < 6 && !diverged; epoch++) {
        json_t *metrics;
        assert_int_equal(trainer_epoch(trainer, &metrics, &diverged, &err), 0);
        json_decref(metrics);
    }
    assert_true(diverged);
    trainer_destroy(trainer);
    world_release(&world);
}

static void test_empty_splits(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct error err = {0};
    json_t *metrics;

    (void)state;
    world_init(&world, 3);
    world.dataset.rows[SPLIT_VALIDATION] = 0;
    struct trainer *trainer = world_trainer(&world, &settings, 9);
    char *text = world_epoch(trainer);
    assert_non_null(strstr(text, "train_loss"));
    assert_null(strstr(text, "validation"));
    free(text);
    assert_int_equal(trainer_evaluate(trainer, SPLIT_VALIDATION, "validation_", &metrics, &err), 0);
    assert_int_equal(json_object_size(metrics), 0);
    json_decref(metrics);
    trainer_destroy(trainer);
    world.dataset.rows[SPLIT_TRAIN] = 0;
    assert_null(trainer_create(&settings, &world.dataset, world.device, 1, &err));
    assert_int_equal(err.code, ERROR_USAGE);
    world_release(&world);
}

/* Rows one at a time, batches larger than the data, one row: all sizes meet the same code. */
static void test_odd_sizes(void **state)
{
    struct training_settings settings = world_settings();
    const int64_t sizes[][2] = {{1, 0}, {1000, 0}, {1000, 7}, {149, 0}, {150, 149}, {33, 32}};
    struct trainer_world world;

    (void)state;
    world_init(&world, 3);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        settings.batch_size = sizes[i][0];
        settings.micro_batch = sizes[i][1];
        struct trainer *trainer = world_trainer(&world, &settings, 2);
        assert_true(world_metric(trainer, "train_loss") < 2);
        trainer_destroy(trainer);
    }
    world_release(&world);
}

static void test_best_weights_come_back(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;
    struct error err;
    json_t *then, *now;
    double objective;
    int64_t resource;

    (void)state;
    settings.objective_best = true;
    world_init(&world, 3);
    struct trainer *trainer = world_trainer(&world, &settings, 2);
    assert_false(trainer_best(trainer, &objective, &resource));
    metric_after(trainer, 2, "train_loss");
    trainer_keep_best(trainer, 0.25);
    assert_int_equal(trainer_evaluate(trainer, SPLIT_TEST, "test_", &then, &err), 0);
    metric_after(trainer, 2, "train_loss");
    assert_int_equal(trainer_save(trainer, world.path, &err), 0);
    trainer_destroy(trainer);

    trainer = world_trainer(&world, &settings, 2);
    assert_int_equal(trainer_load(trainer, world.path, &err), 0);
    assert_true(trainer_best(trainer, &objective, &resource));
    assert_true(objective == 0.25 && resource == 2 && trainer_resource(trainer) == 4);
    trainer_restore_best(trainer);
    assert_int_equal(trainer_evaluate(trainer, SPLIT_TEST, "test_", &now, &err), 0);
    assert_true(json_equal(then, now));
    json_decref(then);
    json_decref(now);
    trainer_destroy(trainer);
    world_release(&world);
}

/* ---- a device that fails ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classifier_learns),
        cmocka_unit_test(test_regression_learns_with_each_optimizer),
        cmocka_unit_test(test_linear_model_has_no_hidden_layer),
        cmocka_unit_test(test_train_loss_is_the_mean_over_samples),
        cmocka_unit_test(test_two_trials_of_one_seed_are_equal),
        cmocka_unit_test(test_divergence_is_told),
        cmocka_unit_test(test_empty_splits),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_best_weights_come_back),
        cmocka_unit_test(test_each_failure_of_the_device_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
