/* Planned memory: what a plan says is what is allocated, to the byte; where memory is bounded, the largest
 * micro batch that fits trains to the same result; a device that refuses gets less, down to one row or one
 * group. */
#include "trainer_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A device in front of the real one, of `limit` bytes, which says so, or lies. */
static const struct device_operations *real_operations;
static size_t limit, taken, said; /* said: what it tells to be available; 0: unbounded */
static struct {
    void *memory;
    size_t bytes;
} blocks[8];

static int limited_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    if (limit > 0 && taken + bytes > limit)
        return error_set(err, ERROR_MEMORY, "refused %zu bytes", bytes);
    if (real_operations->allocate(device, memory, bytes, err) != 0)
        return -1;
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        if (!blocks[i].memory) {
            blocks[i].memory = *memory;
            blocks[i].bytes = bytes;
            break;
        }
    taken += bytes;
    return 0;
}

static void limited_release(struct device *device, void *memory)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        if (blocks[i].memory == memory) {
            taken -= blocks[i].bytes;
            blocks[i].memory = NULL;
        }
    real_operations->release(device, memory);
}

static int counted_share(struct device *device, const void **memory, const void *host, size_t bytes,
                         struct error *err)
{
    taken += bytes;
    return real_operations->share(device, memory, host, bytes, err);
}

static void limited_memory(struct device *device, size_t *available, size_t *total)
{
    (void)device;
    *total = said;
    *available = said > taken ? said - taken : 0;
}

static int waits_left = -1; /* until one fails; below 0: none does */

static int failing_synchronize(struct device *device, struct error *err)
{
    int result = real_operations->synchronize(device, err);

    if (result == 0 && waits_left >= 0 && waits_left-- == 0)
        return error_set(err, ERROR_MEMORY, "no memory for a recording");
    return result;
}

static struct trainer_world world;
static struct device_operations limited;

static int setup(void **state)
{
    (void)state;
    world_init(&world, 3);
    real_operations = world.device->operations;
    limited = *real_operations;
    limited.allocate = limited_allocate;
    limited.release = limited_release;
    limited.share = counted_share;
    limited.memory = limited_memory;
    limited.synchronize = failing_synchronize;
    world.device->operations = &limited;
    world.device->evaluation_rows = 64;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world.device->operations = real_operations;
    world_release(&world);
    return 0;
}

static void bound(size_t bytes)
{
    limit = said = bytes;
    taken = 0;
}

/* NAME of the details' memory. */
static int64_t memory_number(const struct trainer *trainer, const char *name)
{
    json_t *details = trainer_details(trainer);
    const json_t *value = json_object_get(json_object_get(details, "memory"), name);

    assert_true(json_is_integer(value));
    int64_t number = json_integer_value(value);
    json_decref(details);
    return number;
}

static int64_t plan_number(const struct training_settings *settings, size_t available, const char *name)
{
    struct error err = {0};
    json_t *plan = trainer_plan(settings, &world.dataset, world.device->evaluation_rows, available, &err);

    if (!plan)
        fail_msg("%s", err.message);
    const json_t *value = json_object_get(plan, name);
    int64_t number = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
    json_decref(plan);
    return number;
}

/* All models, norms, optimizers and precisions. */
static void test_plans_are_right_to_the_byte(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    world.device->evaluation_rows = 4096;
    for (int form = 0; form < 3 * 3 * 4 * 5 * 2; form += world_on_cpu(&world) ? 1 : 7) {
        settings.model = (enum model_kind)(form % 3);
        settings.norm = (enum norm_kind)(form / 3 % 3);
        settings.precision = (enum precision)(PRECISION_FP32 + form / 9 % 4);
        settings.optimizer = (enum optimizer_kind)(form / 36 % 5);
        settings.momentum = form % 2 ? 0.9 : 0;
        settings.objective_best = form / 180 % 2;
        settings.activation = (enum activation)(form % 4);
        world.dataset.categories = form % 5 ? 2 : 0;
        settings.micro_batch = form % 7 * 5;
        bound(0);
        struct trainer *trainer = world_trainer(&world, &settings, 1);
        assert_int_equal(memory_number(trainer, "bytes"), taken);
        assert_int_equal(plan_number(&settings, 0, "bytes"), taken);
        trainer_destroy(trainer);
    }
    world.dataset.categories = 0;
    world.device->evaluation_rows = 64;
}

/* By hand: 6 numbers to 3 outputs in bf16. A row takes 6 inputs of 2 bytes, 3 outputs of 4, 3 gradients of 2,
 * a label of 4; the data 220 rows of 7 * 4 bytes. */
static void test_parts_of_a_plan(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    settings.model = MODEL_LINEAR;
    settings.precision = PRECISION_BF16;
    assert_int_equal(plan_number(&settings, 0, "bytes_per_row"), 6 * 2 + 3 * 4 + 3 * 2 + 4);
    assert_int_equal(plan_number(&settings, 0, "data_bytes"), 220 * 7 * 4);
    assert_int_equal(plan_number(&settings, 0, "parameters"), 18 + 3); /* not the gaps between them */
    assert_int_equal(plan_number(&settings, 0, "available"), 0);
    assert_int_equal(plan_number(&settings, 0, "fits"), 1);
    assert_int_equal(plan_number(&settings, 1000, "fits"), 0);
}

static void test_the_largest_micro_batch_that_fits(void **state)
{
    struct training_settings settings = world_settings();
    int64_t before = 0;

    (void)state;
    settings.batch_size = 100;
    settings.norm_batch = 6;
    world.device->evaluation_rows = 1;
    for (int norm = NORM_NONE; norm <= NORM_BATCH; norm++) {
        int64_t group = norm == NORM_BATCH ? 6 : 1;
        settings.norm = (enum norm_kind)norm;
        settings.micro_batch = 0;
        int64_t least = plan_number(&settings, 1, "bytes"), most = plan_number(&settings, 0, "bytes");
        for (int64_t bytes = least; bytes < most; bytes += 2999) {
            bound((size_t)bytes);
            struct trainer *trainer = world_trainer(&world, &settings, 1);
            int64_t micro = memory_number(trainer, "micro_batch");
            assert_true(taken <= (size_t)bytes);
            assert_int_equal(trainer_derived(trainer)->micro_batch, micro);
            assert_int_equal(micro % group, 0);
            assert_true(micro >= before && micro < 100);
            trainer_destroy(trainer);
            settings.micro_batch = micro + group;
            bound(0);
            trainer = world_trainer(&world, &settings, 1);
            assert_true(taken > (size_t)bytes); /* one more would not have fitted */
            trainer_destroy(trainer);
            settings.micro_batch = 0;
            before = micro;
        }
        before = 0;
    }
    world.device->evaluation_rows = 64;
}

/* The number the metrics of 3 epochs end with. */
static double train(const struct training_settings *settings, int64_t *micro_batch)
{
    struct trainer *trainer = world_trainer(&world, settings, 1);
    double loss = 0;

    for (int epoch = 0; epoch < 3; epoch++)
        loss = world_metric(trainer, "validation_loss");
    *micro_batch = memory_number(trainer, "micro_batch");
    trainer_destroy(trainer);
    return loss;
}

/* Of any size, with every norm; a short last batch of 150 % 37 = 2 rows. Dropout too: it goes by the position
 * in the batch. */
static void test_any_micro_batch_trains_to_the_same(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    settings.batch_size = 37;
    settings.norm_batch = 4;
    settings.optimizer = OPTIMIZER_SGD;
    for (int model = MODEL_MLP; model <= MODEL_RESNET; model++)
        for (int norm = NORM_NONE; norm <= NORM_BATCH; norm++) {
            int64_t whole, micro;
            settings.model = (enum model_kind)model;
            settings.norm = (enum norm_kind)norm;
            settings.learning_rate = 0.05;
            bound(0);
            settings.micro_batch = 0;
            double expected = train(&settings, &whole);
            for (int64_t rows = 1; rows < 37; rows += world_on_cpu(&world) ? 5 : 11) {
                settings.micro_batch = rows;
                double found = train(&settings, &micro);
                assert_true(micro < whole);
                if (!(fabs(found - expected) < 1e-4))
                    fail_msg("norm %d, micro batch %d: %g, expected %g", norm, (int)micro, found, expected);
            }
        }
}

static void test_bounded_memory_trains_to_the_same(void **state)
{
    struct training_settings settings = world_settings();
    int64_t whole, micro;

    (void)state;
    settings.norm = NORM_BATCH;
    settings.norm_batch = 8;
    settings.optimizer = OPTIMIZER_SGD;
    bound(0);
    double expected = train(&settings, &whole);
    assert_int_equal(whole, 32);
    bound((size_t)plan_number(&settings, 1, "bytes")); /* the least there is: one group */
    assert_true(fabs(train(&settings, &micro) - expected) < 1e-4);
    assert_int_equal(micro, 8);
}

/* It says it has room, and refuses. */
static void test_a_device_that_refuses_gets_less(void **state)
{
    struct training_settings settings = world_settings();
    int64_t whole, micro, before = 33, least;

    (void)state;
    bound(0);
    double expected = train(&settings, &whole);
    least = plan_number(&settings, 1, "bytes");
    for (int64_t bytes = plan_number(&settings, 0, "bytes"); bytes > least - 1000; bytes -= 1000) {
        bound((size_t)(bytes > least ? bytes : least));
        said = 100 << 20;
        assert_true(fabs(train(&settings, &micro) - expected) < 1e-3);
        assert_true(micro <= before && (micro & (micro - 1)) == 0); /* halved */
        before = micro;
    }
    assert_true(before <= 4); /* rows whose tensors round up to the alignment as one row's do */
    struct error err = {0};
    bound((size_t)least - 1);
    assert_null(trainer_create(&settings, &world.dataset, world.device, 1, &err));
    assert_int_equal(err.code, ERROR_MEMORY);
    said = 100 << 20;
    taken = 0;
    assert_null(trainer_create(&settings, &world.dataset, world.device, 1, NULL));
}

/* Memory ends while the first epoch of a trial, or the first one after a checkpoint, is trained (the third
 * wait: weights, what is kept, the epoch; where steps are recorded, also before that) or evaluated (the
 * last). It is trained again from where it began. */
static void test_memory_that_ends_in_an_epoch(void **state)
{
    struct training_settings settings = world_settings();
    struct error err = {0};

    (void)state;
    settings.optimizer = OPTIMIZER_SGD;
    settings.momentum = 0.9;
    settings.norm = NORM_BATCH;
    settings.norm_batch = 8;
    int waits = real_operations->record_begin ? 3 : 2;
    for (int loaded = 0; loaded < 2; loaded++)
        for (int failing = 1; failing <= waits; failing++) {
            bound(100 << 20);
            struct trainer *calm = world_trainer(&world, &settings, 1);
            struct trainer *trainer = world_trainer(&world, &settings, 1);
            if (loaded) {
                world_metric(calm, "train_loss");
                assert_int_equal(trainer_save(calm, world.path, &err), 0);
                assert_int_equal(trainer_load(trainer, world.path, &err), 0);
            }
            waits_left = failing;
            double found = world_metric(trainer, "train_loss"), expected = world_metric(calm, "train_loss");
            assert_int_equal(waits_left, -1);
            assert_true(fabs(found - expected) < 1e-4);
            assert_int_equal(memory_number(trainer, "micro_batch"), 16);
            assert_int_equal(memory_number(calm, "micro_batch"), 32);
            found = world_metric(trainer, "validation_loss");
            assert_true(fabs(found - world_metric(calm, "validation_loss")) < 1e-4);
            assert_int_equal(trainer_resource(trainer), loaded + 2);
            trainer_destroy(calm);
            trainer_destroy(trainer);
        }
    /* Of one group there is nothing less. */
    settings.micro_batch = 8;
    world.device->evaluation_rows = 1;
    bool diverged;
    json_t *metrics;
    struct trainer *trainer = world_trainer(&world, &settings, 1);
    waits_left = 1;
    assert_int_equal(trainer_epoch(trainer, &metrics, &diverged, &err), -1);
    assert_int_equal(err.code, ERROR_MEMORY);
    trainer_destroy(trainer);
    world.device->evaluation_rows = 64;
}

/* Where nothing bounds memory but the host, the micro batch never depends on what is free. */
static void test_unbounded_memory_is_all_or_nothing(void **state)
{
    struct training_settings settings = world_settings();
    struct error err = {0};

    (void)state;
    bound((size_t)plan_number(&settings, 0, "bytes") - 20000);
    said = 0;
    assert_null(trainer_create(&settings, &world.dataset, world.device, 1, &err));
    assert_int_equal(err.code, ERROR_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_right_to_the_byte),
        cmocka_unit_test(test_parts_of_a_plan),
        cmocka_unit_test(test_the_largest_micro_batch_that_fits),
        cmocka_unit_test(test_any_micro_batch_trains_to_the_same),
        cmocka_unit_test(test_bounded_memory_trains_to_the_same),
        cmocka_unit_test(test_a_device_that_refuses_gets_less),
        cmocka_unit_test(test_memory_that_ends_in_an_epoch),
        cmocka_unit_test(test_unbounded_memory_is_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
