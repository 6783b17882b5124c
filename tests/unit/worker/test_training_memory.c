/* Data and trials when memory ends at the 1st, 2nd, ... allocation: an error or the whole result, never a
 * part of it, nothing overrun, nothing leaked. */
#include "data_fixture.h"
#include "failing_memory.h"
#include "trainer_fixture.h"

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

static void check_data(const char *bytes, const char *target, bool refit)
{
    int (*load_f)(struct dataset *, const json_t *, const char *, uint64_t, struct error *) =
        refit ? dataset_load_refit : dataset_load;
    char *whole = NULL;
    int failures = 0;
    write_bytes(bytes, strlen(bytes));
    json_t *options = options_of(target, "");
    for (long n = 0, failed = 1; failed || n == 1; n++) { /* n 0: nothing fails */
        struct dataset dataset;
        struct error err = {0};
        memory_fail_at(n);
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
    check_data(text.data, "\"d\"", false);
    check_data(text.data, "1", true);
    check_data(text.data, "2", false);
    text_release(&text);
}

int main(void)
{
    memory_setup();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_of_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
