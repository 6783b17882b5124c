/* YAML text to nodes: scalars as PyYAML resolves them, structure, places, and what is refused. */
#include "coordinator/yaml.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was reported first. */
struct seen {
    int count, line, column;
    char message[300];
};

static void see(void *user, const char *origin, int line, int column, const char *message)
{
    struct seen *seen = user;
    (void)origin;
    if (seen->count++ == 0) {
        seen->line = line;
        seen->column = column;
        snprintf(seen->message, sizeof seen->message, "%s", message);
    }
}

static char *parse_to_json(const char *text, size_t size, struct seen *seen)
{
    struct yaml_tree tree = {0};
    struct error err = {0};
    char *canonical = NULL;
    memset(seen, 0, sizeof(*seen));
    if (yaml_parse(&tree, text, size, NULL, see, seen, &err) == 0 && tree.root) {
        json_t *value = node_to_json(tree.root);
        canonical = json_canonical(value);
        json_decref(value);
    }
    yaml_release(&tree);
    return canonical;
}

/* Expected values were printed by PyYAML 6.0.3's safe_load, but for those marked ours. */
static const struct {
    const char *text, *json;
} scalars[] = {
    {"0", "0"},
    {"-0", "0"},
    {"12", "12"},
    {"+12", "12"},
    {"-12", "-12"},
    {"1_000", "1000"},
    {"010", "8"},
    {"0o7", "\"0o7\""},
    {"09", "\"09\""},
    {"0x1F", "31"},
    {"-0x1f", "-31"},
    {"0b101", "5"},
    {"0b102", "\"0b102\""},
    {"0x", "\"0x\""},
    {"1:30", "90"},
    {"-1:30", "-90"},
    {"1:30.5", "90.5"},
    {"1:60", "\"1:60\""},
    {"0:30", "\"0:30\""},
    {"190:20:30", "685230"},
    {"1:2:", "{\"1:2\":null}"},
    {"9223372036854775807", "9223372036854775807"},
    {"1.0", "1.0"},
    {"1.", "1.0"},
    {".5", "0.5"},
    {"+1.5", "1.5"},
    {"-1.5e+3", "-1500.0"},
    {"1.0e-3", "0.001"},
    {"685.230_15", "685.23015"},
    {"1e-3", "0.001"},   /* ours: a string for PyYAML */
    {"1e5", "100000.0"}, /* ours */
    {"1.0e3", "1000.0"}, /* ours */
    {"-.5", "-0.5"},     /* ours */
    {"1E-3", "0.001"},   /* ours */
    {"e5", "\"e5\""},
    {"1e", "\"1e\""},
    {"1e5x", "\"1e5x\""},
    {".", "\".\""},
    {"-", "[null]"},
    {"+", "\"+\""},
    {"._5", "\"._5\""},
    {"1_0.5_0", "10.5"},
    {"6_e1", "\"6_e1\""},
    {"1e_5", "\"1e_5\""},
    {"9:_0", "\"9:_0\""},
    {".inf_", "\".inf_\""},
    {"_1", "\"_1\""},
    {".inf", "\"Infinity\""},
    {"-.INF", "\"-Infinity\""},
    {".nan", "\"NaN\""},
    {"nan", "\"nan\""},
    {"inf", "\"inf\""},
    {"1.2.3", "\"1.2.3\""},
    {"true", "true"},
    {"True", "true"},
    {"tRUE", "\"tRUE\""},
    {"yes", "true"},
    {"No", "false"},
    {"on", "true"},
    {"OFF", "false"},
    {"y", "\"y\""},
    {"~", "null"},
    {"null", "null"},
    {"Null", "null"},
    {"nULL", "\"nULL\""},
    {"none", "\"none\""},
    {"'1'", "\"1\""},
    {"\"true\"", "\"true\""},
    {"!!str 5", "\"5\""},
    {"!!float 1e-5", "1e-05"},
    {"!!float '2'", "2.0"},
    {"!!int '7'", "7"},
    {"! 5", "5"},
    {"|\n  a\n  b\n", "\"a\\nb\\n\""},
    {"\"\\u00e9\"", "\"\xc3\xa9\""},
    {"[1, [2, 3], {a: b}]", "[1,[2,3],{\"a\":\"b\"}]"},
    {"{a: 1, b: {c: [x]}}", "{\"a\":1,\"b\":{\"c\":[\"x\"]}}"},
    {"a: 1\r\nb: 2\r\n", "{\"a\":1,\"b\":2}"},
    {"\xef\xbb\xbf"
     "a: 1",
     "{\"a\":1}"},
    {"---\na: 1\n...\n", "{\"a\":1}"},
    {"1: a\ntrue: b", "{\"1\":\"a\",\"true\":\"b\"}"},
    {"# only this\na: # nothing\n", "{\"a\":null}"},
    {"a: &x [1]\nb: *x", "{\"a\":[1],\"b\":[1]}"},
    {"a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n", "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":1,\"q\":3}}"},
    {"b: {q: 3, <<: {q: 1, r: 2}}", "{\"b\":{\"q\":3,\"r\":2}}"},
    {"b: {<<: [{q: 1}, {q: 2, r: 3}]}", "{\"b\":{\"q\":1,\"r\":3}}"},
    {"'<<': 1", "{\"<<\":1}"},
};

static void test_scalars(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        struct seen seen;
        char *json = parse_to_json(scalars[i].text, strlen(scalars[i].text), &seen);
        if (!json || strcmp(json, scalars[i].json) != 0) {
            fail_msg("'%s': got %s, wanted %s (%s)", scalars[i].text, json ? json : "nothing",
                     scalars[i].json, seen.message);
        }
        free(json);
    }
}

static const struct {
    const char *text;
    int line, column;
    const char *message; /* a part of it */
} refused[] = {
    {"a: 1\n\tb: 2\n", 2, 1, "tab"},
    {"a:\n\t- b\n", 2, 1, "tab"},
    {"a: [1, 2\nb: 3", 2, 2, "not valid YAML"},
    {"a: 1\n---\nb: 2\n", 2, 1, "second document"},
    {"a: 1\nb: 2\na: 3\n", 3, 1, "\"a\" is repeated (first in line 1)"},
    {"a: *x\n", 1, 4, "alias *x has no anchor"},
    {"a: &x [*x]\n", 1, 8, "stands inside"},
    {"a: !!python/object:x {}\n", 1, 4, "tag"},
    {"a: !!int x\n", 1, 4, "!!int"},
    {"a: !thing 1\n", 1, 4, "tag"},
    {"a: !!set {b}\n", 1, 4, "tag"},
    {"? [1, 2]\n: b\n", 1, 3, "as a key"},
    {"? {a: b}\n: b\n", 1, 3, "as a key"},
    {"<<: 3\n", 1, 1, "accepted a map"},
    {"<<: [1]\n", 1, 1, "accepted a map"},
    {"a: \"x\\0y\"\n", 1, 4, "NUL"},
    {"a: 1\nb: \x01\n", 2, 4, "UTF-8"},
    {"a: 1\nb: \xff\xff\n", 2, 4, "UTF-8"},
    {"a: b: c\n", 1, 5, "not valid YAML"},
    {"a: 'b\n", 2, 1, "not valid YAML"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct seen seen;
        free(parse_to_json(refused[i].text, strlen(refused[i].text), &seen));
        if (seen.count == 0 || !strstr(seen.message, refused[i].message) || seen.line != refused[i].line ||
            seen.column != refused[i].column) {
            fail_msg("'%s': got %d:%d '%s', wanted %d:%d '%s'", refused[i].text, seen.line, seen.column,
                     seen.count ? seen.message : "nothing", refused[i].line, refused[i].column,
                     refused[i].message);
        }
    }
}

static void test_empty_files_have_no_root(void **state)
{
    static const char *const empty[] = {"", "\n\n", "# a comment\n", "   "};
    (void)state;
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        struct yaml_tree tree = {0};
        struct seen seen = {0};
        assert_int_equal(yaml_parse(&tree, empty[i], strlen(empty[i]), NULL, see, &seen, NULL), 0);
        assert_null(tree.root);
        assert_int_equal(seen.count, 0);
        yaml_release(&tree);
    }
}

/* Nine levels of nine aliases each stand for 9^9 values. */
static void test_billion_laughs(void **state)
{
    char text[2000] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    struct seen seen;
    (void)state;
    for (int i = 1; i < 10; i++) {
        char line[200];
        snprintf(line, sizeof line, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
                 i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(text, line);
    }
    assert_null(parse_to_json(text, strlen(text), &seen));
    assert_non_null(strstr(seen.message, "alias"));
}

/* Recursion is bounded. */
static void test_deep_nesting(void **state)
{
    char text[4096];
    struct seen seen;
    (void)state;
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    assert_null(parse_to_json(text, 200, &seen));
    assert_non_null(strstr(seen.message, "inside each other"));
    memset(text, '[', 60);
    memset(text + 60, ']', 60);
    char *json = parse_to_json(text, 120, &seen);
    assert_non_null(json);
    free(json);
}

static void test_limits_of_size(void **state)
{
    struct seen seen;
    (void)state;
    size_t size = YAML_SIZE_LIMIT + 1;
    char *text = malloc(size);
    memset(text, ' ', size);
    assert_null(parse_to_json(text, size, &seen));
    assert_non_null(strstr(seen.message, "1 MiB"));
    size_t used = 0;
    for (int i = 0; i <= YAML_KEY_LIMIT; i++) {
        used += (size_t)sprintf(text + used, "k%d: 1\n", i);
    }
    assert_null(parse_to_json(text, used, &seen));
    assert_int_equal(seen.line, YAML_KEY_LIMIT + 1);
    free(text);
}

static void test_places_and_forms(void **state)
{
    const char *text = "a: yes\nb:\n  - 1e-3\n  - \xc3\xa9: 010\n";
    struct yaml_tree tree = {0};
    struct seen seen = {0};
    (void)state;
    assert_int_equal(yaml_parse(&tree, text, strlen(text), NULL, see, &seen, NULL), 0);
    const struct node *a = node_find(tree.root, "a");
    const struct node *exponent = node_find(tree.root, "b")->items[0];
    const struct node *octal = node_find(node_find(tree.root, "b")->items[1], "\xc3\xa9");
    assert_int_equal(a->form, FORM_BOOLEAN_WORD);
    assert_int_equal(exponent->form, FORM_BARE_EXPONENT);
    assert_int_equal(exponent->line, 3);
    assert_int_equal(exponent->column, 5);
    assert_int_equal(octal->form, FORM_OCTAL);
    assert_int_equal(octal->column, 8); /* characters, not bytes */
    yaml_release(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_billion_laughs),   cmocka_unit_test(test_empty_files_have_no_root),
        cmocka_unit_test(test_deep_nesting),     cmocka_unit_test(test_limits_of_size),
        cmocka_unit_test(test_places_and_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
