/* Data and trials when memory ends at the 1st, 2nd, ... allocation: an error or the whole result, never a
 * part of it, nothing overrun, nothing leaked. */
#include "data_fixture.h"
#include "failing_memory.h"
#include "trainer_fixture.h"

#include "base/files.h"

typedef void (*fail_f)(long n);
static const fail_f fail_modes[] = {memory_fail_at, memory_fail_once_at};

/* The data set as text: what was decided, and the sizes. */
static char *describe(const struct dataset *dataset)
{
    struct text text;
    text_init(&text);
    text_printf(&text, "%lld %lld %lld %lld ", (long long)dataset->rows[0], (long long)dataset->rows[1],
                (long long)dataset->rows[2], (long long)dataset->features);
    json_append(&text, dataset->preprocessing);
    return text_steal(&text);
}

static void check_data(const char *bytes, const char *target, bool refit, fail_f arrange)
{
    int (*load_f)(struct dataset *, const json_t *, const struct data_files *, uint64_t, struct error *) =
        refit ? dataset_load_refit : dataset_load;
    char *whole = NULL;
    int failures = 0;
    write_bytes(bytes, strlen(bytes));
    json_t *options = options_of(target, "");
    for (long n = 0, failed = 1; failed || n == 1; n++) { /* n 0: nothing fails */
        struct dataset dataset;
        struct error err = {0};
        arrange(n);
        int result = load_f(&dataset, options, NULL, FIXTURE_SEED, &err);
        failed = memory_has_failed();
        memory_fail_at(0);
        if (result != 0) {
            assert_true(failed);
            assert_int_equal(err.code, ERROR_MEMORY);
            failures++;
        } else {
            char *found = describe(&dataset);
            if (whole)
                assert_string_equal(found, whole);
            else
                whole = strdup(found);
            free(found);
            dataset_release(&dataset);
        }
    }
    assert_true(failures > 20);
    json_decref(options);
    unlink(fixture_path);
    free(whole);
}

static void test_data_of_many_rows(void **state)
{
    struct text text;
    (void)state;
    text_init(&text);
    text_append(&text, "a column with a name much longer than any of the rows below it,b,b,d\n");
    for (int row = 0; row < 200; row++)
        text_printf(&text, "%d,%d,%s,%d.5\n", row % 17, row % 2, row % 3 ? "x" : "\"y\"", row);
    for (int mode = 0; mode < 2; mode++) {
        check_data(text.data, "\"d\"", false, fail_modes[mode]);
        check_data(text.data, "1", true, fail_modes[mode]);
        check_data(text.data, "2", false, fail_modes[mode]);
    }
    text_release(&text);
}

/* A trial's life up to a checkpoint of its first epoch; *metrics is that epoch's. */
static int live(const struct trainer_world *world, const struct training_settings *settings, json_t **metrics,
                struct error *err)
{
    bool diverged;
    struct trainer *trainer = trainer_create(settings, &world->dataset, world->device, 5, err);
    *metrics = NULL;
    int result = trainer ? trainer_epoch(trainer, metrics, &diverged, err) : -1;
    if (result == 0)
        trainer_keep_best(trainer, 0.5);
    if (result == 0)
        result = trainer_save(trainer, world->path, err);
    trainer_destroy(trainer);
    return result;
}

static void check_trial(const struct trainer_world *world, const struct training_settings *settings,
                        fail_f arrange)
{
    char *whole = NULL;
    size_t size = 0;
    json_t *expected = NULL;
    int failures = 0;
    for (long n = 0, failed = 1; failed || n == 1; n++) {
        json_t *metrics;
        struct error err = {0};
        arrange(n);
        int result = live(world, settings, &metrics, &err);
        failed = memory_has_failed();
        memory_fail_at(0);
        size_t found_size;
        char *found = file_read(world->path, 0, &found_size, &(struct error){0});
        if (n == 0) {
            assert_int_equal(result, 0);
            expected = json_incref(metrics);
            whole = found;
            size = found_size;
        } else { /* also a checkpoint that could not be written leaves the one before */
            assert_int_equal(found_size, size);
            assert_memory_equal(found, whole, size);
            free(found);
        }
        if (result != 0) {
            assert_true(failed);
            assert_int_equal(err.code, ERROR_MEMORY);
            failures++;
        }
        if (metrics)
            assert_true(json_equal(metrics, expected));
        json_decref(metrics);
    }
    assert_true(failures > 20);
    json_decref(expected);
    free(whole);
}

/* From the n-th allocation on only: Jansson (2.14) itself frees wrongly when one of its reader's fails alone.
 */
static void check_load(const struct trainer_world *world, const struct training_settings *settings)
{
    struct trainer *trainer = world_trainer(world, settings, 5);
    int failures = 0;
    for (long n = 1, result = -1; result != 0; n++) {
        struct error err = {0};
        memory_fail_at(n);
        result = trainer_load(trainer, world->path, &err);
        memory_fail_at(0);
        assert_int_equal(trainer_resource(trainer), result == 0 ? 1 : 0);
        /* Nor does it tell a text that is no JSON from one that there is no memory for. */
        if (result != 0 && err.code != ERROR_MEMORY)
            assert_non_null(strstr(err.message, "its header is no JSON"));
        failures += result != 0;
    }
    assert_true(failures > 20);
    trainer_destroy(trainer);
}

static void test_trial(void **state)
{
    (void)state;
    struct training_settings settings = world_settings();
    settings.objective_best = true;
    for (int64_t classes = 0; classes <= 3; classes += 3) {
        struct trainer_world world;
        world_init(&world, classes);
        for (int mode = 0; mode < 2; mode++)
            check_trial(&world, &settings, fail_modes[mode]);
        check_load(&world, &settings);
        world.dataset.categories = 2;
        settings.model = MODEL_RESNET;
        settings.norm = NORM_BATCH;
        settings.class_weight = CLASS_WEIGHT_BALANCED;
        settings.precision = PRECISION_FP16;
        settings.blocks = 1;
        if (classes > 0)
            check_trial(&world, &settings, memory_fail_at);
        settings = world_settings();
        settings.objective_best = true;
        world_release(&world);
    }
}

int main(void)
{
    memory_setup();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_of_many_rows),
        cmocka_unit_test(test_trial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
