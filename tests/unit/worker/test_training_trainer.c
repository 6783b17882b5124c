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

static void test_a_loss_of_another_task_is_refused(void **state)
{
    static const struct {
        int64_t classes;
        enum loss_kind loss;
        const char *message;
    } cases[] = {{3, LOSS_MSE, "loss: mse is for numbers, but the target is a class"},
                 {3, LOSS_BINARY, "loss: binary_cross_entropy is for two classes, but the target has 3"},
                 {0, LOSS_CROSS_ENTROPY, "loss: cross_entropy is for classes, but the target is a number"},
                 {2, LOSS_HUBER, "loss: huber is for numbers"}};
    struct training_settings settings = world_settings();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct trainer_world world;
        struct error err = {0};
        world_init(&world, cases[i].classes);
        settings.loss = cases[i].loss;
        assert_null(trainer_create(&settings, &world.dataset, world.device, 1, &err));
        assert_int_equal(err.code, ERROR_USAGE);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_null(trainer_plan(&settings, &world.dataset, 256, 0, &err));
        assert_int_equal(err.code, ERROR_USAGE);
        world_release(&world);
    }
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
    json_t *details = trainer_details(trainer);
    char *notes = json_canonical(json_object_get(details, "notes"));
    assert_non_null(strstr(notes, "diverged in epoch "));
    assert_non_null(strstr(notes, ": the training loss is no finite number"));
    free(notes);
    json_decref(details);
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

static void test_deepest_models(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    world_init(&world, 3);
    world.dataset.categories = 2;
    settings.norm = NORM_BATCH;
    settings.hidden_count = HIDDEN_LAYERS;
    settings.blocks = RESIDUAL_BLOCKS;
    for (int i = 0; i < HIDDEN_LAYERS; i++)
        settings.hidden[i] = 8 + i;
    for (int model = MODEL_MLP; model <= MODEL_RESNET; model++) {
        settings.model = (enum model_kind)model;
        struct trainer *trainer = world_trainer(&world, &settings, 2);
        assert_true(world_metric(trainer, "train_loss") < 3);
        trainer_destroy(trainer);
    }
    world_release(&world);
}

/* A table of texts only: its rows begin with the embeddings. */
static void test_categories_without_numbers(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer_world world;

    (void)state;
    world_init(&world, 2);
    world.dataset.features = 0;
    world.dataset.categories = 2;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < world.dataset.rows[split]; i++)
            world.dataset.label[split][i] = world.dataset.category[split][2 * i] % 2;
    settings.epochs = 20;
    struct trainer *trainer = world_trainer(&world, &settings, 2);
    assert_true(metric_after(trainer, 20, "validation_accuracy") == 1);
    trainer_destroy(trainer);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classifier_learns),
        cmocka_unit_test(test_regression_learns_with_each_optimizer),
        cmocka_unit_test(test_linear_model_has_no_hidden_layer),
        cmocka_unit_test(test_train_loss_is_the_mean_over_samples),
        cmocka_unit_test(test_two_trials_of_one_seed_are_equal),
        cmocka_unit_test(test_a_loss_of_another_task_is_refused),
        cmocka_unit_test(test_divergence_is_told),
        cmocka_unit_test(test_empty_splits),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_deepest_models),
        cmocka_unit_test(test_categories_without_numbers),
        cmocka_unit_test(test_best_weights_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
