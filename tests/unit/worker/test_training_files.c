/* Files of checkpoints: damaged and foreign ones are refused and change nothing; the public package reads
 * them. */
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

/* A trained trial's file as bytes. */
static char *make_file(size_t *size)
{
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 5);
    struct error err;

    free(world_epoch(trainer));
    world_save(trainer, world.path);
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

    assert_same_state(&world, trainer, fresh);
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
    world_load(trainer, world.path);
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
    world_save(deeper, world.path);
    trainer_destroy(deeper);
    settings.hidden_count = 1;
    assert_other_refused(&settings, 5, "'layers.2.");
}

static void test_files_of_the_first_format_are_refused(void **state)
{
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 5);
    const float zeros[3] = {0};
    const struct tensor tensor = {.name = "layers.2.bias", .dimensions = 1, .shape = {3}, .data = zeros};
    json_t *metadata = json_pack("{s:s, s:s}", "format", "rung-1", "task", "classification");
    struct error err = {0};

    (void)state;
    assert_int_equal(safetensors_write(world.path, &tensor, 1, metadata, &err), 0);
    assert_refused(trainer, "it was made by an earlier version of rung");
    assert_untouched(trainer, &settings);
    json_decref(metadata);
    trainer_destroy(trainer);
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
        cmocka_unit_test(test_truncated_and_corrupt_files_are_refused),
        cmocka_unit_test(test_files_of_other_trials_are_refused),
        cmocka_unit_test(test_files_of_deeper_models_are_refused),
        cmocka_unit_test(test_files_of_the_first_format_are_refused),
        cmocka_unit_test(test_missing_file_is_told),
        cmocka_unit_test(test_hostile_headers_are_refused),
        cmocka_unit_test(test_empty_tensors_are_no_gap),
        cmocka_unit_test(test_public_package_reads_it),
    };
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
