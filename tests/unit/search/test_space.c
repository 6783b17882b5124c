/* Sizes of spaces, lattices without drift, and the grid: every point exactly once, in order. */
#include "space_fixture.h"
#include "search/distribution.h"
#include "search/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void check_lattice(double low, double high, double step, int64_t size, const char *last)
{
    struct space space = {0};
    struct parameter *lattice = space_add_range(&space, "x", DISTRIBUTION_LATTICE, low, high);
    lattice->step = step;
    char number[NUMBER_SIZE];
    assert_int_equal(lattice_size(lattice), size);
    assert_string_equal(number_format(lattice_value(lattice, size - 1), number), last);
    assert_true(lattice_value(lattice, size - 1) <= high);
    space_release(&space);
}

static void test_lattice(void **state)
{
    (void)state;
    check_lattice(0, 0.3, 0.1, 4, "0.3");
    check_lattice(0.1, 0.5, 0.1, 5, "0.5");
    check_lattice(0, 1, 0.3, 4, "0.9"); /* a step that does not divide the range */
    check_lattice(1, 1.3, 0.1, 4, "1.3");
    check_lattice(0, 1, 0.001, 1001, "1.0");
    check_lattice(-0.5, 0.5, 0.25, 5, "0.5");
    check_lattice(32, 256, 32, 8, "256.0");
    check_lattice(0, 0.5, 7, 1, "0.0"); /* larger than the range */
    check_lattice(1e-4, 1e-3, 1e-4, 10, "0.001");
    check_lattice(0, 1, 1.0 / 3, 4, "1.0"); /* no decimal: plain arithmetic */
    check_lattice(1e17, 1e17 + 100, 50, 3, "1.000000000000001e+17");
    check_lattice(5, 5, 1, 1, "5.0");
}

/* No point of a lattice shows drift: it is the decimal with as many places as the step. */
static void test_lattice_has_no_drift(void **state)
{
    (void)state;
    struct space space = {0};
    struct parameter *lattice = space_add_range(&space, "x", DISTRIBUTION_LATTICE, 0, 1);
    lattice->step = 0.001;
    for (int64_t k = 0; k <= 1000; k++) {
        char expected[16];
        snprintf(expected, sizeof expected, "%lld.%03lld", (long long)k / 1000, (long long)k % 1000);
        assert_true(lattice_value(lattice, k) == strtod(expected, NULL));
    }
    space_release(&space);
}

static void check_choices(const char *values, int64_t grid_size, const char *choices)
{
    struct space space = {0};
    struct parameter *parameter = space_add_values(&space, "x", values);
    assert_int_equal(parameter_grid_size(parameter), grid_size);
    assert_string_equal(text_of(parameter_choices(parameter)), choices);
    assert_int_equal(space_prepare(&space), 0);
    assert_int_equal(parameter_grid_size(parameter), grid_size);
    space_release(&space);
}

/* Copies collapse to the place of the first and the form of the last; only whole reals equal integers. */
static void test_choices(void **state)
{
    (void)state;
    check_choices("[3, 1, 3, 2, 1]", 3, "[3,1,2]");
    check_choices("[1, 2, 1.0]", 2, "[1.0,2]");
    check_choices("[1.0, 2, 1]", 2, "[1,2]");
    check_choices("[true, 1, \"1\", null, 0, false, \"\", [1], [1.0]]", 9,
                  "[true,1,\"1\",null,0,false,\"\",[1],[1.0]]");
    check_choices("[{\"a\": 1, \"b\": 2}, {\"b\": 2, \"a\": 1}]", 1, "[{\"a\":1,\"b\":2}]");
    check_choices("[0.0, -0.0, 0]", 1, "[0]");
    check_choices("[1e300, 1e300, 1.5, 1.5]", 2, "[1e+300,1.5]");
}

static void add_everything_finite(struct space *space)
{
    space_add_values(space, "activation", "[\"relu\", \"gelu\"]");
    space_add_range(space, "batch_size", DISTRIBUTION_INT_UNIFORM, 3, 5);
    space_add_values(space, "constant", "[[128, 64]]")->distribution = DISTRIBUTION_CONSTANT;
    space_add_range(space, "dropout", DISTRIBUTION_LATTICE, 0, 0.3)->step = 0.1;
    struct parameter *layers = space_add_range(space, "layers", DISTRIBUTION_LATTICE, 2, 7);
    layers->step = 2;
    layers->integer = true;
}

static void test_sizes(void **state)
{
    (void)state;
    struct space space = {0};
    assert_int_equal(space_grid_size(&space), 1);
    add_everything_finite(&space);
    assert_int_equal(space_grid_size(&space), 2 * 3 * 4 * 3);
    assert_int_equal(space_point_count(&space), 2 * 3 * 4 * 3);
    assert_null(space_grid_obstacle(&space));

    space_add_range(&space, "log_width", DISTRIBUTION_INT_LOG_UNIFORM, 1, 10);
    assert_int_equal(space_grid_size(&space), -1);
    assert_int_equal(space_point_count(&space), 720);
    assert_string_equal(space_grid_obstacle(&space), "log_width");
    space_add(&space, "noise", DISTRIBUTION_NORMAL)->mu = 3; /* sigma 0: a constant */
    assert_int_equal(space_point_count(&space), 720);
    space_add_values(&space, "typed", "[1, 1.0]"); /* two points for random, one for a grid */
    assert_int_equal(space_point_count(&space), 1440);
    space_add_range(&space, "width", DISTRIBUTION_UNIFORM, 0, 1);
    assert_int_equal(space_point_count(&space), -1);
    assert_string_equal(space_grid_obstacle(&space), "log_width");
    space_release(&space);
    assert_int_equal(space.count, 0);
}

static void test_sizes_saturate(void **state)
{
    (void)state;
    struct space space = {0};
    for (int i = 0; i < 5; i++)
        space_add_range(&space, (const char[]){(char)('a' + i), 0}, DISTRIBUTION_INT_UNIFORM, 1, 1e15);
    assert_true(space_grid_size(&space) == INT64_MAX);
    assert_true(space_point_count(&space) == INT64_MAX);
    json_t *point = grid_sampler.propose(&space, 0, INT64_C(1000000000000001));
    assert_string_equal(text_of(point), "{\"a\":1,\"b\":1,\"c\":1,\"d\":2,\"e\":1}");
    space_release(&space);
}

/* Sorted names, the last varies fastest; types are kept. */
static void test_grid_order(void **state)
{
    (void)state;
    struct space space = {0};
    space_add_values(&space, "a", "[\"x\", 2.0, 2, null]");
    space_add_values(&space, "b", "[[1]]")->distribution = DISTRIBUTION_CONSTANT;
    space_add_range(&space, "c", DISTRIBUTION_LATTICE, 0, 0.3)->step = 0.15;
    static const char *const expected[] = {
        "{\"a\":\"x\",\"b\":[1],\"c\":0.0}", "{\"a\":\"x\",\"b\":[1],\"c\":0.15}",
        "{\"a\":\"x\",\"b\":[1],\"c\":0.3}", "{\"a\":2,\"b\":[1],\"c\":0.0}",
        "{\"a\":2,\"b\":[1],\"c\":0.15}",    "{\"a\":2,\"b\":[1],\"c\":0.3}",
        "{\"a\":null,\"b\":[1],\"c\":0.0}",  "{\"a\":null,\"b\":[1],\"c\":0.15}",
        "{\"a\":null,\"b\":[1],\"c\":0.3}",
    };
    assert_int_equal(grid_sampler.size(&space), 9);
    for (int number = 1; number <= 9; number++)
        assert_string_equal(text_of(grid_sampler.propose(&space, 77, number)), expected[number - 1]);
    assert_null(grid_sampler.propose(&space, 77, 10));
    assert_null(grid_sampler.propose(&space, 77, 0));
    assert_null(grid_sampler.propose(&space, 77, -1));
    space_release(&space);
}

static void test_grid_of_constants(void **state)
{
    (void)state;
    struct space space = {0};
    space_add_values(&space, "a", "[1]")->distribution = DISTRIBUTION_CONSTANT;
    assert_int_equal(grid_sampler.size(&space), 1);
    assert_string_equal(text_of(grid_sampler.propose(&space, 0, 1)), "{\"a\":1}");
    assert_null(grid_sampler.propose(&space, 0, 2));
    space_release(&space);
}

/* 100,000 points, one parameter a list of 1,000 values: each exactly once. */
static void test_large_grid(void **state)
{
    (void)state;
    enum { POINTS = 100000 };
    struct space space = {0};
    json_t *many = json_array();
    for (int i = 0; i < 1000; i++)
        json_array_append_new(many, json_integer(999 - i));
    space_add_range(&space, "a", DISTRIBUTION_INT_UNIFORM, -4, 5);
    space_add(&space, "b", DISTRIBUTION_CATEGORICAL)->values = many;
    space_add_range(&space, "c", DISTRIBUTION_LATTICE, 0, 0.9)->step = 0.1;
    assert_int_equal(space_prepare(&space), 0);
    assert_int_equal(space_grid_size(&space), POINTS);
    char *seen = calloc(1, POINTS);
    for (int64_t number = 1; number <= POINTS; number++) {
        json_t *point = grid_sampler.propose(&space, 0, number);
        int64_t a = json_get_integer(point, "a", -100) + 4, b = json_get_integer(point, "b", -100);
        int64_t c = (int64_t)(json_get_number(point, "c", -100) * 10 + 0.5);
        assert_true(a >= 0 && a < 10 && b >= 0 && b < 1000 && c >= 0 && c < 10);
        assert_int_equal(seen[(a * 1000 + b) * 10 + c]++, 0);
        json_decref(point);
    }
    free(seen);
    assert_null(grid_sampler.propose(&space, 0, POINTS + 1));
    space_release(&space);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(random_sampler.name, "random");
    assert_string_equal(grid_sampler.name, "grid");
    assert_string_equal(distribution_name(DISTRIBUTION_LOG_UNIFORM_VALUES), "log_uniform_values");
    assert_string_equal(distribution_name(DISTRIBUTION_CONSTANT), "constant");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lattice),
        cmocka_unit_test(test_lattice_has_no_drift),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_saturate),
        cmocka_unit_test(test_grid_order),
        cmocka_unit_test(test_grid_of_constants),
        cmocka_unit_test(test_large_grid),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
