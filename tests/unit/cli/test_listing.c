/* Listings: layout for people at any width, and exact text for programs. */
#include "base/json.h"
#include "cli/listing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static json_t *parse(const char *text)
{
    json_t *value = json_parse(text, strlen(text), NULL);
    assert_non_null(value);
    return value;
}

static void assert_table(const struct listing *listing, const char *rows, int width, const char *expected,
                         size_t expected_left_out)
{
    struct text text;
    size_t left_out;
    json_t *array = parse(rows);
    text_init(&text);
    assert_int_equal(listing_text(listing, array, width, &text, &left_out, NULL), 0);
    assert_string_equal(text.data, expected);
    assert_int_equal(left_out, expected_left_out);
    for (char *line = strtok(text.data, "\n"); width > 0 && line != NULL; line = strtok(NULL, "\n")) {
        assert_true(text_width(line, strlen(line)) <= width);
    }
    text_release(&text);
    json_decref(array);
}

static void test_alignment(void **state)
{
    (void)state;
    struct listing listing;
    listing_init(&listing);
    listing_add(&listing, "rank", NULL, LISTING_VALUE);
    listing_add(&listing, "p.lr", "lr", LISTING_VALUE);
    listing_add(&listing, "name", NULL, LISTING_VALUE);
    listing_add(&listing, "seconds", NULL, LISTING_SECONDS);
    assert_table(&listing,
                 "[{\"rank\": 1, \"p\": {\"lr\": 0.123456789}, \"name\": \"caf\xc3\xa9\", \"seconds\": 1.26},"
                 " {\"rank\": 10, \"p\": {\"lr\": 1e-7}, \"name\": \"\xe6\x9c\xac\xe6\x9c\xac\xe6\x9c\xac\", "
                 "\"seconds\": 100},"
                 " {\"rank\": null, \"p\": {}, \"name\": \"x\\u001b[2J\\ny\", \"seconds\": \"Infinity\"}]",
                 0,
                 "rank        lr  name      seconds\n"
                 "   1  0.123457  caf\xc3\xa9         1.26\n"
                 "  10     1e-07  \xe6\x9c\xac\xe6\x9c\xac\xe6\x9c\xac        100\n"
                 "   -         -  x?[2J y  Infinity\n",
                 0);
    listing_release(&listing);
}

static void test_width(void **state)
{
    (void)state;
    static const char rows[] =
        "[{\"a\": \"0123456789abcdefgh\", \"b\": 12345, \"c\": \"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4"
        "\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\", \"d\": 7}]";
    struct listing listing;
    listing_init(&listing);
    for (const char *name = "abcd"; *name != '\0'; name++) {
        char path[2] = {*name, '\0'};
        listing_add(&listing, path, NULL, LISTING_VALUE);
    }
    assert_table(&listing, rows, 40,
                 "a                       b  c           d\n"
                 "0123456789abcdefgh  12345  "
                 "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc"
                 "\xe2\x80\xa6  7\n",
                 0);
    listing_release(&listing);
    /* A long heading over short numbers gives way, its start first. */
    listing_init(&listing);
    listing_add(&listing, "d", NULL, LISTING_VALUE);
    listing_add(&listing, "b", "validation_accuracy", LISTING_VALUE);
    assert_table(&listing, rows, 13, "d  \xe2\x80\xa6_accuracy\n7       12345\n", 0);
    listing_release(&listing);
}

static void test_wrap(void **state)
{
    (void)state;
    static const struct {
        const char *paragraph;
        int width, indent;
        const char *expected;
    } cases[] = {
        {"one two three", 0, 2, "one two three\n"},
        {"one two three", 13, 2, "one two three\n"},
        {"one two three", 12, 2, "one two\n  three\n"},
        {"  one two three", 6, 4, "  one\n    two\n    three\n"},
        {"longerthanthat b", 5, 1, "longerthanthat\n b\n"},
        {"\xc3\xa4\xc3\xb6 \xc3\xbc\xc3\xa4 b", 5, 0, "\xc3\xa4\xc3\xb6 \xc3\xbc\xc3\xa4\nb\n"},
        {"", 10, 3, "\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text;
        text_init(&text);
        text_wrap(&text, cases[i].paragraph, cases[i].width, cases[i].indent);
        assert_string_equal(text.data, cases[i].expected);
        text_release(&text);
    }
}

static void test_columns_left_out(void **state)
{
    (void)state;
    struct listing listing;
    listing_init(&listing);
    listing_add(&listing, "first", NULL, LISTING_VALUE);
    listing_add(&listing, "second", NULL, LISTING_VALUE);
    listing_add(&listing, "third", NULL, LISTING_VALUE);
    assert_table(&listing, "[{\"first\": 1, \"second\": 2, \"third\": 3}]", 15,
                 "first  second\n    1       2\n", 1);
    listing_release(&listing);
}

static void test_csv(void **state)
{
    (void)state;
    struct listing listing;
    struct text text;
    json_t *rows = parse("[{\"a\": \"x,\\\"y\\\"\", \"p\": {\"b.c\": [1, 2.0], \"d\": 0.1, \"e,\": true}},"
                         " {\"a\": \"two\\nlines\", \"p\": {\"d\": null}}]");
    listing_init(&listing);
    listing_add(&listing, "a", NULL, LISTING_VALUE);
    listing_add_keys(&listing, rows, "p", true);
    text_init(&text);
    assert_int_equal(listing_csv(&listing, rows, &text, NULL), 0);
    assert_string_equal(text.data,
                        "a,p.b.c,p.d,\"p.e,\"\n\"x,\"\"y\"\"\",\"[1,2.0]\",0.1,true\n\"two\nlines\",,,\n");
    json_t *reduced = listing_rows(&listing, rows);
    char *canonical = json_canonical(json_array_get(reduced, 0));
    assert_string_equal(canonical, "{\"a\":\"x,\\\"y\\\"\",\"p.b.c\":[1,2.0],\"p.d\":0.1,\"p.e,\":true}");
    free(canonical);
    json_decref(reduced);
    text_release(&text);
    listing_release(&listing);
    json_decref(rows);
}

static void test_no_rows(void **state)
{
    (void)state;
    struct listing listing;
    listing_init(&listing);
    assert_table(&listing, "[]", 80, "\n", 0);
    listing_add(&listing, "a", NULL, LISTING_VALUE);
    assert_table(&listing, "[]", 80, "a\n", 0);
    listing_release(&listing);
}

static void test_text_width(void **state)
{
    static const struct {
        const char *text;
        int width;
    } cases[] = {
        {"", 0},
        {"abc", 3},
        {"\xc3\xa4", 1},
        {"a\xcc\x88", 1}, /* a + combining diaeresis */
        {"\xe6\x9c\xac", 2},
        {"\xf0\x9f\x98\x80", 2},
        {"\xef\xbb\xbfx", 1},
        {"\xff\xfe", 2},
        {"\xe6\x9c", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(text_width(cases[i].text, strlen(cases[i].text)), cases[i].width);
    }
}

static void test_scores(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"mean\": 0.97222222, \"sd\": 0.0031234}", "0.972222 \xc2\xb1 0.0031"},
        {"{\"mean\": 2, \"sd\": 0.0}", "2"},
        {"{\"mean\": \"NaN\", \"sd\": \"NaN\"}", "NaN \xc2\xb1 NaN"},
        {"{\"mean\": \"-Infinity\"}", "-Infinity"},
        {"{\"mean\": 1.5, \"sd\": \"Infinity\"}", "1.5 \xc2\xb1 Infinity"},
        {"{\"means\": 2}", "{\"means\":2}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text;
        json_t *value = parse(cases[i][0]);
        text_init(&text);
        listing_append(&text, value, LISTING_VALUE);
        assert_string_equal(text.data, cases[i][1]);
        text_release(&text);
        json_decref(value);
    }
}

static void test_formats(void **state)
{
    (void)state;
    enum listing_format format;
    assert_true(listing_format_parse("csv", &format) && format == LISTING_CSV);
    assert_true(listing_format_parse("table", &format) && format == LISTING_TABLE);
    assert_false(listing_format_parse("xml", &format));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment),  cmocka_unit_test(test_width),
        cmocka_unit_test(test_wrap),       cmocka_unit_test(test_columns_left_out),
        cmocka_unit_test(test_csv),        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_text_width), cmocka_unit_test(test_scores),
        cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
