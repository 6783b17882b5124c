/* Checkpoints: a paused trial equals one never paused, bit for bit, at every epoch; damaged or foreign files
 * are refused and change nothing; the public package reads them. */
#include "trainer_fixture.h"

#include "base/files.h"
#include "worker/training/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void save(struct trainer *trainer, const char *path)
{
    struct error err = {0};
    if (trainer_save(trainer, path, &err) != 0)
        fail_msg("%s", err.message);
}

static void load(struct trainer *trainer, const char *path)
{
    struct error err = {0};
    if (trainer_load(trainer, path, &err) != 0)
        fail_msg("%s", err.message);
}

static char *bytes_of(struct trainer *trainer, size_t *size)
{
    struct error err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/compare", world.folder);
    save(trainer, path);
    return file_read(path, 0, size, &err);
}

/* Checkpoints hold all state, so equal files are equal trials. */
static void assert_same_state(struct trainer *one, struct trainer *two)
{
    size_t size, other_size;
    char *bytes = bytes_of(one, &size), *other = bytes_of(two, &other_size);

    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, other, size);
    free(bytes);
    free(other);
}

static void check_pause(const struct training_settings *settings)
{
    for (int pause = 0; pause <= EPOCHS; pause += world_on_cpu(&world) ? 1 : 4) {
        struct trainer *calm = world_trainer(&world, settings, 5),
                       *paused = world_trainer(&world, settings, 5);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            if (epoch == pause) {
                save(paused, world.path);
                trainer_destroy(paused);
                paused = world_trainer(&world, settings, 5);
                load(paused, world.path);
                assert_int_equal(trainer_resource(paused), epoch);
            }
            char *expected = world_epoch(calm), *found = world_epoch(paused);
            assert_string_equal(expected, found);
            free(expected);
            free(found);
        }
        assert_same_state(calm, paused);
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
    save(trainer, world.path);
    trainer_destroy(trainer);
    trainer = world_trainer(&world, &settings, 5);
    load(trainer, world.path);
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
        save(trainer, world.path);
        trainer_destroy(trainer);
        settings.precision = form == 1 ? PRECISION_BF16 : PRECISION_FP32;
        trainer = world_trainer(&world, &settings, 5);
        load(trainer, world.path);
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

/* A trained trial's file as bytes. */
static char *make_file(size_t *size)
{
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 5);
    struct error err;

    free(world_epoch(trainer));
    save(trainer, world.path);
    trainer_destroy(trainer);
    return file_read(world.path, 0, size, &err);
}

static void write_file(const char *bytes, size_t size)
{
    FILE *file = fopen(world.path, "wb"); /* many files: without waiting for the disk */

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The file must be refused with a message that names it. */
static void assert_refused(struct trainer *trainer, const char *message)
{
    struct error err = {0};

    assert_int_equal(trainer_load(trainer, world.path, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, world.path));
    if (!strstr(err.message, message))
        fail_msg("'%s' does not say '%s'", err.message, message);
}

/* What was refused, however far it was read, has left a trainer as it was created. */
static void assert_untouched(struct trainer *trainer, const struct training_settings *settings)
{
    struct trainer *fresh = world_trainer(&world, settings, 5);

    assert_same_state(trainer, fresh);
    trainer_destroy(fresh);
}

static void test_truncated_and_corrupt_files_are_refused(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 5);
    size_t size, step;
    char *bytes = make_file(&size);

    (void)state;
    step = size / 40 + 1;
    for (size_t cut = 0; cut < size; cut += cut < 16 ? 1 : step) {
        write_file(bytes, cut);
        assert_refused(trainer, "");
    }
    for (size_t at = 0; at < size; at += at < 16 ? 1 : step) {
        bytes[at] ^= 0x10;
        write_file(bytes, size);
        assert_refused(trainer, "");
        bytes[at] ^= 0x10;
    }
    bytes[size - 1] ^= 1;
    write_file(bytes, size);
    assert_refused(trainer, "is corrupt");
    assert_untouched(trainer, &settings);
    bytes[size - 1] ^= 1;
    write_file(bytes, size);
    load(trainer, world.path);
    free(bytes);
    trainer_destroy(trainer);
}

static void assert_other_refused(const struct training_settings *settings, uint64_t seed, const char *message)
{
    struct trainer *trainer = world_trainer(&world, settings, seed);
    assert_refused(trainer, message);
    trainer_destroy(trainer);
}

static void test_files_of_other_trials_are_refused(void **state)
{
    struct training_settings settings = world_settings();
    size_t size;

    (void)state;
    free(make_file(&size));
    assert_other_refused(&settings, 6, "seed");
    settings.hidden[1] = 13;
    assert_other_refused(&settings, 5, "tensor 'layers.1.weight' has shape [12,16], expected [13,16]");
    settings.hidden[1] = 12;
    settings.hidden_count = 1;
    assert_other_refused(&settings, 5, "tensor 'layers.1.weight' has shape [12,16], expected [3,16]");
    settings.hidden_count = 3;
    settings.hidden[2] = 3;
    assert_other_refused(&settings, 5, "no tensor 'layers.3.weight'");
    settings.hidden_count = 2;
    settings.optimizer = OPTIMIZER_SGD;
    assert_other_refused(&settings, 5, "its optimizer is adamw, this trial's sgd");
    settings.optimizer = OPTIMIZER_ADAMW;
    settings.activation = ACTIVATION_RELU;
    assert_other_refused(&settings, 5, "its activation is gelu, this trial's relu");
    settings.activation = ACTIVATION_GELU;
    settings.norm = NORM_LAYER;
    assert_other_refused(&settings, 5, "its norm is none, this trial's layer");
    settings.norm = NORM_NONE;
    settings.batch_size = 16;
    assert_other_refused(&settings, 5, "its 5 steps are not 1 epochs of this trial's 10");
}

/* Whose last layer is as wide as the next hidden one: every tensor asked for is there, and one more. */
static void test_files_of_deeper_models_are_refused(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    settings.hidden[1] = 3;
    struct trainer *deeper = world_trainer(&world, &settings, 5);
    save(deeper, world.path);
    trainer_destroy(deeper);
    settings.hidden_count = 1;
    assert_other_refused(&settings, 5, "'layers.2.");
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
        save(trainer, world.path);
        trainer_destroy(trainer);
        trainer = world_trainer(&world, &settings, 5);
        load(trainer, world.path);
        assert_true(trainer_best(trainer, &objective, &resource));
        assert_true(objective == objectives[i] && resource == 1);
        trainer_destroy(trainer);
    }
}

static void test_missing_file_is_told(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 5);
    struct error err = {0};

    (void)state;
    assert_int_equal(trainer_load(trainer, "/nowhere/at-all", &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_int_equal(trainer_save(trainer, "/nowhere/at-all", &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    trainer_destroy(trainer);
}

/* Headers made to hurt: each must be an error, not a crash. */
static void test_hostile_headers_are_refused(void **state)
{
    static const char *const headers[] = {
        "[]",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
        "{\"a\":7}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":["
        "1],"
        "\"data_offsets\":[0,4]}}",
        "{}",
    };
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 5);

    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
        char bytes[400] = {0};
        size_t length = strlen(headers[i]);
        bytes[0] = (char)length;
        memcpy(bytes + 8, headers[i], length);
        write_file(bytes, 8 + length + 8); /* 8 bytes of tensors */
        assert_refused(trainer, "");
    }
    assert_untouched(trainer, &settings);
    trainer_destroy(trainer);
}

/* Nothing of ours, but the format has them. */
static void test_empty_tensors_are_no_gap(void **state)
{
    static const char header[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
                                 "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}";
    char bytes[300] = {sizeof(header) - 1};
    struct safetensors file;
    struct error err = {0};

    (void)state;
    memcpy(bytes + 8, header, sizeof(header) - 1);
    write_file(bytes, 8 + sizeof(header) - 1 + 8);
    if (safetensors_open(&file, world.path, &err) != 0)
        fail_msg("%s", err.message);
    const struct tensor known[] = {{.name = "a"}, {.name = "b"}};
    assert_string_equal(safetensors_other(&file, known, 2, NULL), "c");
    assert_null(safetensors_other(&file, known, 2, "c"));
    safetensors_close(&file);
}

/* RUNG_TEST_PYTHON names a Python with the safetensors and torch packages; python3 is tried without it. */
static void test_public_package_reads_it(void **state)
{
    static const char script[] =
        "import sys\n"
        "try:\n"
        "    from safetensors import safe_open\n"
        "    import numpy\n"
        "except ImportError:\n"
        "    sys.exit(77)\n"
        "with safe_open(sys.argv[1], framework='np') as f:\n"
        "    assert f.metadata()['format'] == 'rung-2' and f.metadata()['epochs'] == '1', f.metadata()\n"
        "    shapes = {k: f.get_tensor(k).shape for k in f.keys()}\n"
        "    assert shapes['layers.0.weight'] == (16, 6) and shapes['layers.2.bias'] == (3,), shapes\n"
        "    assert len(shapes) == 18, shapes\n"
        "    assert abs(f.get_tensor('layers.0.weight')).max() < 1\n";
    const char *chosen = getenv("RUNG_TEST_PYTHON"), *python = chosen ? chosen : "python3";
    size_t size;
    int status = 0;

    (void)state;
    free(make_file(&size));
    pid_t child = fork();
    if (child == 0) {
        execlp(python, python, "-c", script, world.path, (char *)NULL);
        _exit(77);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: no Python with the safetensors package (RUNG_TEST_PYTHON)\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause_changes_nothing),
        cmocka_unit_test(test_pause_changes_nothing_of_a_resnet),
        cmocka_unit_test(test_best_statistics_are_kept),
        cmocka_unit_test(test_other_numerics_are_told),
        cmocka_unit_test(test_truncated_and_corrupt_files_are_refused),
        cmocka_unit_test(test_files_of_other_trials_are_refused),
        cmocka_unit_test(test_files_of_deeper_models_are_refused),
        cmocka_unit_test(test_best_objective_may_be_infinite),
        cmocka_unit_test(test_missing_file_is_told),
        cmocka_unit_test(test_hostile_headers_are_refused),
        cmocka_unit_test(test_empty_tensors_are_no_gap),
        cmocka_unit_test(test_public_package_reads_it),
    };
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
