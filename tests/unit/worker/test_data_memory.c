/* Columns of every kind when memory ends at the 1st, 2nd, ... allocation: an error, or the whole dataset. */
#include "data_fixture.h"
#include "failing_memory.h"

#include "base/text.h"

typedef void (*fail_f)(long n);
static const fail_f fail_modes[] = {memory_fail_at, memory_fail_once_at};

/* Everything but the notes, which may be short of one. */
static char *describe(const struct dataset *dataset)
{
    struct text text;
    text_init(&text);
    json_append(&text, dataset->preprocessing);
    for (int split = 0; split < SPLIT_COUNT; split++) {
        for (int64_t i = 0; i < dataset->rows[split] * dataset->features; i++)
            text_printf(&text, " %a", dataset->x[split][i]);
        for (int64_t i = 0; i < dataset->rows[split] * dataset->categories; i++)
            text_printf(&text, " %d", (int)dataset->category[split][i]);
        for (int64_t i = 0; i < dataset->rows[split]; i++)
            text_printf(&text, " %d", (int)dataset->label[split][i]);
    }
    return text_steal(&text);
}

static void check(const char *bytes, size_t size, const char *more)
{
    write_bytes(bytes, size);
    json_t *options = options_of("\"y\"", more);
    for (size_t mode = 0; mode < sizeof fail_modes / sizeof *fail_modes; mode++) {
        char *whole = NULL;
        int failures = 0;
        for (long n = 0, failed = 1; failed || n == 1; n++) { /* n 0: nothing fails */
            struct dataset dataset;
            struct error err = {0};
            fail_modes[mode](n);
            int result = dataset_load(&dataset, options, NULL, FIXTURE_SEED, &err);
            failed = memory_has_failed();
            memory_fail_at(0);
            if (result != 0) {
                assert_true(failed);
                if (err.code != ERROR_MEMORY)
                    fail_msg("allocation %ld: %s", n, err.message);
                failures++;
                continue;
            }
            char *found = describe(&dataset);
            if (whole)
                assert_string_equal(found, whole);
            else
                whole = strdup(found);
            free(found);
            dataset_release(&dataset);
        }
        assert_true(failures > 50);
        free(whole);
    }
    json_decref(options);
    unlink(fixture_path);
}

static void all_kinds_of_columns(void **state)
{
    (void)state;
    char text[8000];
    int size = snprintf(text, sizeof text, "# a comment\nn,gaps,few,many,price,empty,one,y\n");
    for (int i = 0; i < 60; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,t%d,\"m, %d\",\"$1,%03d\",,1,%s\n",
                         i, i % 7 ? "2.5" : "x", i % 3, i % 20, i, i % 2 ? "yes" : "no\xe9");
    size += snprintf(text + size, sizeof text - (size_t)size, "Total\n");
    check(text, (size_t)size, "\"missing\": [\"x\", -1], \"max_categories\": 10");
    check(text, (size_t)size, "\"missing\": \"x\", \"preprocess\": \"quantile\", \"max_categories\": 2");
}

static void decimal_commas(void **state)
{
    (void)state;
    char text[3000];
    int size = snprintf(text, sizeof text, "'a';'b';'y'\n");
    for (int i = 0; i < 40; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "'%d,5';1.%03d;'%s'\n", i, i,
                         i % 2 ? "p" : "q");
    check(text, (size_t)size, "\"preprocess\": \"robust\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_of_columns),
        cmocka_unit_test(decimal_commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
