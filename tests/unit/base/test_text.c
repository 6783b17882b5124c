/* Growable text, nearest words, UTF-8 repair. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_append(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    assert_null(text.data);
    text_append(&text, "ab");
    text_append_bytes(&text, "c\0d", 3);
    text_printf(&text, "%d-%s", 42, "x");
    assert_int_equal(text.size, 9);
    assert_memory_equal(text.data, "abc\0d42-x", 10);
    char *stolen = text_steal(&text);
    assert_null(text.data);
    assert_int_equal(text.size, 0);
    free(stolen);
}

static void test_growth(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    for (int i = 0; i < 10000; i++)
        text_append(&text, "0123456789");
    text_printf(&text, "%0500d", 7); /* longer than the buffer on the stack */
    assert_int_equal(text.size, 100500);
    assert_int_equal(strlen(text.data), 100500);
    assert_string_equal(text.data + 100490, "0000000007");
    text_release(&text);
    assert_null(text.data);
}

static void test_empty_and_failed(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    char *empty = text_steal(&text);
    assert_string_equal(empty, "");
    free(empty);
    text_append(&text, "x");
    text_append_bytes(&text, "y", SIZE_MAX / 2); /* more than there can be */
    assert_true(text.failed);
    text_append(&text, "z");
    assert_string_equal(text.data, "x");
    assert_null(text_steal(&text));
    assert_false(text.failed);
}

static void test_nearest_word(void **state)
{
    (void)state;
    static const char *const words[] = {"minimize", "maximize", "method", "metric", "name", "run_cap", NULL};
    static const char *const methods[] = {"random", "grid", NULL};
    static const char *const letters[] = {"q", NULL};
    assert_string_equal(nearest_word("minimise", words), "minimize");
    assert_string_equal(nearest_word("METRIC", words), "metric");
    assert_string_equal(nearest_word("metirc", words), "metric"); /* swapped letters */
    assert_string_equal(nearest_word("runcap", words), "run_cap");
    assert_string_equal(nearest_word("nam", words), "name");
    assert_string_equal(nearest_word("radnom", methods), "random");
    assert_null(nearest_word("bayes", methods));
    assert_null(nearest_word("gd", methods)); /* two edits, only one allowed */
    assert_null(nearest_word("x", letters));
    assert_null(nearest_word("", words));
    /* parts: the start goes before the edits, what stands inside after them, and only one may be meant */
    const char *const metrics[] = {"validation_auc",
                                   "validation_accuracy",
                                   "validation_balanced_accuracy",
                                   "train_loss",
                                   "validation_loss",
                                   "log_uniform_values",
                                   NULL};
    assert_string_equal(nearest_word("validation_acc", metrics), "validation_accuracy");
    assert_string_equal(nearest_word("loguniform", metrics), "log_uniform_values");
    assert_string_equal(nearest_word("balanced", metrics), "validation_balanced_accuracy");
    assert_null(nearest_word("loss", metrics));
    assert_null(nearest_word("va", metrics));
    char huge[300];
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_null(nearest_word(huge, words));
}

static void check_repair(const char *bytes, size_t size, const char *expected)
{
    char *repaired = utf8_repair(bytes, size);
    assert_string_equal(repaired, expected);
    free(repaired);
}

#define BAD "\xEF\xBF\xBD"

static void test_utf8_repair(void **state)
{
    (void)state;
    static const char good[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF\xED\x9F\xBF";
    check_repair(good, sizeof good - 1, good);
    check_repair("", 0, "");
    check_repair("a\0b", 3, "a" BAD "b");
    check_repair("\xFFx\xFE", 3, BAD "x" BAD);
    check_repair("\xC0\xAF", 2, BAD BAD);                 /* overlong */
    check_repair("\xE0\x80\xAF", 3, BAD BAD BAD);         /* overlong */
    check_repair("\xED\xA0\x80", 3, BAD BAD BAD);         /* surrogate */
    check_repair("\xF4\x90\x80\x80", 4, BAD BAD BAD BAD); /* beyond U+10FFFF */
    check_repair("x\xE2\x82", 3, "x" BAD BAD);            /* cut short */
    check_repair("\xE2\x28\xA1", 3, BAD "(" BAD);
}

/* Any two bytes: the result is well-formed, and good input is not touched. */
static void test_utf8_repair_is_stable(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            const char bytes[2] = {(char)first, (char)second};
            char *once = utf8_repair(bytes, 2);
            char *twice = utf8_repair(once, strlen(once));
            assert_string_equal(once, twice);
            free(once);
            free(twice);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),           cmocka_unit_test(test_growth),
        cmocka_unit_test(test_empty_and_failed), cmocka_unit_test(test_nearest_word),
        cmocka_unit_test(test_utf8_repair),      cmocka_unit_test(test_utf8_repair_is_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
