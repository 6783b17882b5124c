/* Memory runs out at the i-th allocation, for i = 1, 2, ... until a clean pass: reading a spec, refusing one,
 * and restoring one each fail with ERROR_MEMORY, leak nothing (under the sanitizer) and never give half a
 * spec. The linker puts these wrappers before the allocator (see CMakeLists.txt); Jansson is told of them. */
#include "tests/unit/coordinator/spec_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);

/* Allocations that still succeed; -1: all. */
static long left = -1;
static bool has_failed;

static bool fails(void)
{
    if (left > 0) {
        left--;
        return false;
    }
    has_failed = has_failed || left == 0;
    return left == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return fails() ? NULL : __real_strndup(text, size);
}

static const char good[] =
    "name: digits\nmethod: random\nmetric: {name: validation_accuracy, goal: maximize}\nrun_cap: 64\nseed: "
    "7\n"
    "parameters:\n  learning_rate: &r {distribution: log_uniform_values, min: 1e-4, max: '1e-1'}\n"
    "  batch_size: {values: [32, 64, 128, 32]}\n  hidden: {values: [[64], [128]]}\n  weight_decay: {<<: *r}\n"
    "early_terminate: {type: successive_halving, min_iter: 1, max_iter: 27, eta: 3}\n"
    "train: {data: {path: LICENSE, target: label}, epochs: 27}\ndescription: x\n";
static const char bad[] = "name: a b\nmethod: rndom\nparameters:\n  lr: {value: 1}\n  dropout: {min: 1}\n"
                          "train: {epoch: 3, data: {pth: 3}, hidden: x}\nmetrc: 3\n";
static const char *const overrides[] = {"train.epochs=9", "parameters.dropout={value: 0.1}",
                                        "early_terminate.max_iter=5", NULL};

static const struct spec_options options = {
    .train_settings = fixture_settings, .metric_names = fixture_metrics, .overrides = overrides};

static void assert_out_of_memory(int status, const struct error *err)
{
    assert_int_equal(status, -1);
    assert_int_equal(err->code, ERROR_MEMORY);
}

/* One more allocation succeeds each time; returns how many there are. */
static long run_out(const char *text, int wanted, const struct spec *reference)
{
    for (long i = 0;; i++) {
        struct spec spec;
        struct error err = {0};
        char *problems = NULL;
        left = i;
        has_failed = false;
        int status = spec_parse(&spec, text, strlen(text), FIXTURE_FILE, &options, &problems, &err);
        left = -1;
        if (status == 0) {
            /* a few allocations only improve a message */
            assert_true(json_equal(spec.normalised, reference->normalised));
            assert_true(json_equal(spec.notes, reference->notes));
            spec_release(&spec);
        } else if (has_failed) {
            assert_out_of_memory(status, &err);
        }
        free(problems);
        if (!has_failed) {
            assert_int_equal(status, wanted);
            return i;
        }
    }
}

static void test_reading(void **state)
{
    struct spec spec;
    (void)state;
    assert_int_equal(fixture_parse(&spec, good, overrides, NULL), 0);
    assert_true(run_out(good, 0, &spec) > 100);
    assert_true(run_out(bad, -1, &spec) > 100);
    spec_release(&spec);
}

static void test_restoring(void **state)
{
    struct spec spec;
    (void)state;
    assert_int_equal(fixture_parse(&spec, good, NULL, NULL), 0);
    do {
        static long i = 0;
        struct spec again;
        struct error err = {0};
        struct spec_options own = {.train_settings = fixture_settings};
        left = i++;
        has_failed = false;
        int status = spec_restore(&again, spec.normalised, &own, &err);
        left = -1;
        if (status == 0) {
            assert_true(json_equal(spec.normalised, again.normalised));
            spec_release(&again);
        } else {
            assert_out_of_memory(status, &err);
        }
    } while (has_failed);
    spec_release(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reading), cmocka_unit_test(test_restoring)};
    json_set_alloc_funcs(__wrap_malloc, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
