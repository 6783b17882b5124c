/* JSON: canonical and pretty text, Python's bare non-finite tokens, lookups. */
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static json_t *parse(const char *text)
{
    struct error err;
    json_t *value = json_parse(text, strlen(text), &err);
    if (!value)
        fail_msg("%s: %s", text, err.message);
    return value;
}

static void check_canonical(const char *text, const char *expected)
{
    json_t *value = parse(text);
    char *canonical = json_canonical(value);
    assert_string_equal(canonical, expected);
    free(canonical);
    json_decref(value);
}

static void test_canonical(void **state)
{
    (void)state;
    check_canonical("{\"b\": 1, \"a\": 1.0}", "{\"a\":1.0,\"b\":1}");
    check_canonical("{\"b\": {\"d\": null, \"c\": [true, false, \"x\"]}, \"B\": 0}",
                    "{\"B\":0,\"b\":{\"c\":[true,false,\"x\"],\"d\":null}}");
    check_canonical("[1e-3, 1E5, 0.1, -0.0, 1e16, 123456789]", "[0.001,100000.0,0.1,-0.0,1e+16,123456789]");
    check_canonical("[-9223372036854775808, 9223372036854775807, 0]",
                    "[-9223372036854775808,9223372036854775807,0]");
    check_canonical("\"\\u00e9\\n\\t\\r\\\"\\\\\\u0001\\u001f/\"",
                    "\"\xC3\xA9\\n\\t\\r\\\"\\\\\\u0001\\u001f/\"");
    check_canonical("{}", "{}");
    check_canonical("[]", "[]");
    check_canonical("{\"a\": 1, \"a\": 2}", "{\"a\":2}"); /* the last wins */
    /* Sorted by bytes, not by letters. */
    check_canonical("{\"\\u00e9\": 1, \"z\": 2, \"Z\": 3, \"a.b\": 4, \"a\": 5}",
                    "{\"Z\":3,\"a\":5,\"a.b\":4,\"z\":2,\"\xC3\xA9\":1}");
}

static void test_canonical_large_object(void **state)
{
    (void)state;
    json_t *object = json_object();
    for (int i = 199; i >= 0; i--) {
        char key[8];
        snprintf(key, sizeof key, "k%03d", i);
        json_object_set_new(object, key, json_integer(i));
    }
    char *canonical = json_canonical(object);
    assert_int_equal(strncmp(canonical, "{\"k000\":0,\"k001\":1,", 19), 0);
    assert_non_null(strstr(canonical, "\"k198\":198,\"k199\":199}"));
    free(canonical);
    json_decref(object);
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,1.0,\"1\",true,null],\"b\":{\"x\":1e-05}}";
    json_t *value = parse(text);
    char *canonical = json_canonical(value);
    assert_string_equal(canonical, text);
    json_t *again = parse(canonical);
    assert_true(json_equal(value, again));
    free(canonical);
    json_decref(value);
    json_decref(again);
}

static void test_pretty(void **state)
{
    (void)state;
    json_t *value = parse("{\"b\": [1, {}], \"a\": {\"c\": 0.5}, \"e\": []}");
    char *pretty = json_pretty(value);
    assert_null(json_pretty(NULL)); /* what could not be made for lack of memory, as in json_canonical */
    assert_string_equal(
        pretty, "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": {\n    \"c\": 0.5\n  },\n  \"e\": []\n}");
    free(pretty);
    json_decref(value);
}

static void test_bare_nonfinite(void **state)
{
    (void)state;
    check_canonical("{\"loss\": NaN, \"x\": -Infinity, \"y\": [Infinity]}",
                    "{\"loss\":\"NaN\",\"x\":\"-Infinity\",\"y\":[\"Infinity\"]}");
    check_canonical("NaN", "\"NaN\"");
    /* Inside strings, also behind escaped quotes, nothing is touched. */
    check_canonical("{\"NaN\": \"a \\\"NaN\\\" Infinity\", \"b\": NaN}",
                    "{\"NaN\":\"a \\\"NaN\\\" Infinity\",\"b\":\"NaN\"}");
    check_canonical("[\"\\\\\", NaN]", "[\"\\\\\",\"NaN\"]");
}

static void test_parse_errors(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "{",        "[1,]",   "{\"a\":}", "nan",  "1 2",
                                      "'x'", "\"\xFF\"", "NaNNaN", "\"NaN",    "[NaN", "01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        assert_null(json_parse(bad[i], strlen(bad[i]), &err));
        assert_int_equal(err.code, ERROR_PROTOCOL);
        assert_non_null(strstr(err.message, "not JSON"));
    }
    assert_null(json_parse("x", 1, NULL));
    /* Only `size` bytes are read. */
    json_t *value = json_parse("12345", 2, NULL);
    assert_int_equal(json_integer_value(value), 12);
    json_decref(value);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {1.5, "1.5"}, {2, "2.0"}, {(double)INFINITY, "\"Infinity\""}, {-(double)INFINITY, "\"-Infinity\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *number = json_number(cases[i].value);
        char *text = json_canonical(number);
        double back;
        assert_string_equal(text, cases[i].text);
        assert_true(json_number_get(number, &back) && back == cases[i].value);
        free(text);
        json_decref(number);
    }
    json_t *nan = json_number((double)NAN);
    double back = 0;
    assert_true(json_number_get(nan, &back) && isnan(back));
    json_decref(nan);
    static const char *const others[] = {"null", "true", "\"1\"", "[]", "\"nan\""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        json_t *other = parse(others[i]);
        assert_false(json_number_get(other, &back));
        json_decref(other);
    }
    assert_false(json_number_get(NULL, &back));
}

static void test_lookups(void **state)
{
    (void)state;
    json_t *object = parse("{\"i\": 3, \"r\": 2.5, \"s\": \"text\", \"b\": true, \"n\": NaN}");
    assert_int_equal(json_get_integer(object, "i", 7), 3);
    assert_int_equal(json_get_integer(object, "r", 7), 7);
    assert_int_equal(json_get_integer(object, "absent", 7), 7);
    assert_int_equal(json_get_integer(NULL, "i", 7), 7);
    assert_true(json_get_number(object, "i", 0) == 3);
    assert_true(json_get_number(object, "r", 0) == 2.5);
    assert_true(isnan(json_get_number(object, "n", 0)));
    assert_true(json_get_number(object, "s", 0.5) == 0.5);
    assert_string_equal(json_get_string(object, "s", "x"), "text");
    assert_string_equal(json_get_string(object, "i", "x"), "x");
    assert_true(json_get_boolean(object, "b", false));
    assert_false(json_get_boolean(object, "i", false));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),      cmocka_unit_test(test_canonical_large_object),
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_bare_nonfinite), cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_lookups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
