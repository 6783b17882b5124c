/* Random search: golden draws, bounds, and the law of every distribution over 10^5 draws. Each of the tests
 * of a law rejects at p < 1e-4, so that all of them together stay below 1e-3. */
#include "space_fixture.h"
#include "base/normal.h"
#include "search/distribution.h"
#include "search/sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DRAWS = 100000 };
static const uint64_t law_seed = 20261201;

static void add_all(struct space *space)
{
    space_add_values(space, "activation", "[\"relu\", \"gelu\", \"tanh\"]");
    space_add_range(space, "batch_size", DISTRIBUTION_INT_UNIFORM, 16, 256);
    space_add_range(space, "dropout", DISTRIBUTION_UNIFORM, 0, 0.5);
    space_add_range(space, "hidden", DISTRIBUTION_INT_LOG_UNIFORM, 8, 512);
    space_add_range(space, "learning_rate", DISTRIBUTION_LOG_UNIFORM_VALUES, 1e-4, 1e-1);
    space_add_range(space, "momentum", DISTRIBUTION_LATTICE, 0.5, 0.9)->step = 0.1;
    struct parameter *noise = space_add(space, "noise", DISTRIBUTION_NORMAL);
    noise->mu = 0.5;
    noise->sigma = 2;
}

struct golden {
    int64_t trial;
    const char *activation;
    int64_t batch_size;
    double dropout;
    int64_t hidden;
    double learning_rate, momentum, noise;
};

/* Seed 7. Made by another implementation (Python; NormalDist.inv_cdf). A database's sweeps rest on these: a
 * change here is a new database version. exp and log may differ in the last place between machines. */
static const struct golden goldens[] = {
    {1, "gelu", 228, 0.3076323813583632, 76, 0.0018927670881944355, 0.5, -1.3034539691062146},
    {2, "relu", 148, 0.28789205629076103, 16, 0.02550014113051631, 0.7, 0.7688861820158175},
    {3, "relu", 33, 0.41867882179772614, 17, 0.002346678169639998, 0.6, 2.500407165608811},
    {1000000, "relu", 151, 0.13670376676375579, 88, 0.0013975597454237655, 0.8, -0.27249141035754154},
};

static void check_near(double value, double expected)
{
    assert_true(fabs(value - expected) <= 1e-14 * fabs(expected));
}

static void test_golden_draws(void **state)
{
    (void)state;
    struct space space = {0};
    add_all(&space);
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const struct golden *golden = &goldens[i];
        json_t *point = random_sampler.propose(&space, 7, golden->trial);
        assert_int_equal(json_object_size(point), space.count);
        assert_string_equal(json_get_string(point, "activation", ""), golden->activation);
        assert_int_equal(json_get_integer(point, "batch_size", 0), golden->batch_size);
        assert_true(json_get_number(point, "dropout", 0) == golden->dropout);
        assert_int_equal(json_get_integer(point, "hidden", 0), golden->hidden);
        check_near(json_get_number(point, "learning_rate", 0), golden->learning_rate);
        assert_true(json_get_number(point, "momentum", 0) == golden->momentum);
        check_near(json_get_number(point, "noise", 0), golden->noise);
        json_decref(point);
    }
    assert_int_equal(random_sampler.size(&space), -1);
    space_release(&space);
}

/* A parameter's draw depends on its own name alone: not on the others, nor on their order. */
static void test_other_parameters_do_not_matter(void **state)
{
    (void)state;
    struct space all = {0}, alone = {0};
    add_all(&all);
    space_add_range(&alone, "dropout", DISTRIBUTION_UNIFORM, 0, 0.5);
    for (int64_t trial = 1; trial <= 20; trial++) {
        json_t *point = random_sampler.propose(&all, 3, trial);
        json_t *value = json_incref(json_object_get(point, "dropout"));
        json_decref(point);
        assert_string_equal(text_of(value), text_of(parameter_sample(&alone.parameters[0], 3, trial, 0)));
        assert_string_not_equal(text_of(parameter_sample(&alone.parameters[0], 3, trial, 0)),
                                text_of(parameter_sample(&alone.parameters[0], 3, trial, 1)));
    }
    space_release(&all);
    space_release(&alone);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double *draw_all(const struct parameter *parameter)
{
    double *values = malloc(DRAWS * sizeof *values);
    for (int i = 0; i < DRAWS; i++) {
        json_t *value = parameter_sample(parameter, law_seed, i + 1, 0);
        assert_true(json_number_get(value, &values[i]));
        json_decref(value);
    }
    return values;
}

/* Kolmogorov-Smirnov against a distribution function. */
static void check_law(const struct parameter *parameter,
                      double (*law_f)(const struct parameter *parameter, double x))
{
    double *values = draw_all(parameter), distance = 0;
    qsort(values, DRAWS, sizeof *values, compare_doubles);
    for (int i = 0; i < DRAWS; i++) {
        double law = law_f(parameter, values[i]);
        distance = fmax(distance, fmax(law - (double)i / DRAWS, (double)(i + 1) / DRAWS - law));
    }
    print_message("%s: sqrt(n) D = %.3f\n", parameter->name, distance * sqrt(DRAWS));
    assert_true(distance * sqrt(DRAWS) < 2.2252); /* 2 exp(-2 x^2) = 1e-4 */
    if (parameter->distribution != DISTRIBUTION_NORMAL)
        assert_true(values[0] >= parameter->minimum && values[DRAWS - 1] <= parameter->maximum);
    free(values);
}

static double law_uniform(const struct parameter *p, double x)
{
    return (x - p->minimum) / (p->maximum - p->minimum);
}

static double law_log_uniform(const struct parameter *p, double x)
{
    return log(x / p->minimum) / log(p->maximum / p->minimum);
}

static double law_normal(const struct parameter *p, double x)
{
    return 0.5 * erfc((p->mu - x) / p->sigma / sqrt(2));
}

static void test_continuous_laws(void **state)
{
    (void)state;
    struct space space = {0};
    check_law(space_add_range(&space, "uniform", DISTRIBUTION_UNIFORM, -3, 5), law_uniform);
    check_law(space_add_range(&space, "log", DISTRIBUTION_LOG_UNIFORM_VALUES, 1e-6, 10), law_log_uniform);
    struct parameter *normal = space_add(&space, "normal", DISTRIBUTION_NORMAL);
    normal->mu = -1;
    normal->sigma = 0.25;
    check_law(normal, law_normal);
    space_release(&space);
}

/* Chi-square of counts against shares; the limit at p = 1e-4 by Wilson and Hilferty's approximation. */
static void check_counts(const char *name, const int *counts, const double *shares, int cells)
{
    double chi = 0, k = cells - 1;
    for (int i = 0; i < cells; i++)
        chi += pow(counts[i] - shares[i] * DRAWS, 2) / (shares[i] * DRAWS);
    double limit = k * pow(1 - 2 / (9 * k) + 3.719 * sqrt(2 / (9 * k)), 3);
    print_message("%s: chi-square %.1f, limit %.1f\n", name, chi, limit);
    assert_true(chi < limit);
}

static void check_integers(const struct parameter *parameter, const double *shares, int cells)
{
    double *values = draw_all(parameter);
    int *counts = calloc((size_t)cells, sizeof *counts);
    for (int i = 0; i < DRAWS; i++) {
        double cell = (values[i] - parameter->minimum) / (parameter->step ? parameter->step : 1);
        assert_true(cell > -0.01 && cell < cells - 0.99);
        counts[(int)(cell + 0.5)]++;
    }
    check_counts(parameter->name, counts, shares, cells);
    free(counts);
    free(values);
}

static void test_discrete_laws(void **state)
{
    (void)state;
    struct space space = {0};
    double even[41], log_shares[50];
    for (int i = 0; i < 41; i++)
        even[i] = 1.0 / 41;
    for (int k = 1; k <= 50; k++)
        log_shares[k - 1] = log((k + 0.5) / (k - 0.5)) / log(50.5 / 0.5);
    check_integers(space_add_range(&space, "int", DISTRIBUTION_INT_UNIFORM, -20, 20), even, 41);
    struct parameter *lattice = space_add_range(&space, "lattice", DISTRIBUTION_LATTICE, 0.1, 4.1);
    lattice->step = 0.1;
    check_integers(lattice, even, 41);
    check_integers(space_add_range(&space, "log_int", DISTRIBUTION_INT_LOG_UNIFORM, 1, 50), log_shares, 50);
    space_release(&space);
}

static void test_categorical_law(void **state)
{
    (void)state;
    struct space space = {0};
    /* Copies count as often as they are written. */
    const struct parameter *parameter = space_add_values(&space, "choice", "[0, 1, 2, 2]");
    double *values = draw_all(parameter);
    int counts[3] = {0};
    for (int i = 0; i < DRAWS; i++)
        counts[(int)values[i]]++;
    free(values);
    check_counts("categorical", counts, (const double[]){0.25, 0.25, 0.5}, 3);
    space_release(&space);
}

static double correlation(const double *x, const double *y, int count)
{
    double sx = 0, sy = 0, xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < count; i++) {
        sx += x[i];
        sy += y[i];
        xx += x[i] * x[i];
        yy += y[i] * y[i];
        xy += x[i] * y[i];
    }
    return (count * xy - sx * sy) / sqrt((count * xx - sx * sx) * (count * yy - sy * sy));
}

static void test_independence(void **state)
{
    (void)state;
    struct space space = {0};
    space_add_range(&space, "a", DISTRIBUTION_UNIFORM, 0, 1);
    space_add_range(&space, "b", DISTRIBUTION_UNIFORM, 0, 1);
    double *a = draw_all(&space.parameters[0]), *b = draw_all(&space.parameters[1]);
    const double limit = 3.891 / sqrt(DRAWS);                    /* p = 1e-4 */
    assert_true(fabs(correlation(a, b, DRAWS)) < limit);         /* parameters of a trial */
    assert_true(fabs(correlation(a, a + 1, DRAWS - 1)) < limit); /* neighbouring trials */
    free(a);
    free(b);
    space_release(&space);
}

/* Bounds that rounding would leave: neighbours, and the ends of what a double holds. */
static void test_bounds(void **state)
{
    (void)state;
    static const double ranges[][2] = {
        {1e-5, 1e-5 * (1 + 1e-15)}, {0.1, 0.3}, {3, 3.0000000000000004}, {1e-320, 1e300}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        struct space space = {0};
        space_add_range(&space, "log", DISTRIBUTION_LOG_UNIFORM_VALUES, ranges[i][0], ranges[i][1]);
        space_add_range(&space, "uniform", DISTRIBUTION_UNIFORM, ranges[i][0], ranges[i][1]);
        for (int64_t trial = 1; trial <= 3000; trial++) {
            for (size_t p = 0; p < space.count; p++) {
                json_t *value = parameter_sample(&space.parameters[p], 1, trial, 0);
                double number = json_real_value(value);
                assert_true(number >= ranges[i][0] && number <= ranges[i][1]);
                json_decref(value);
            }
        }
        space_release(&space);
    }
    struct space space = {0};
    space_add_range(&space, "huge", DISTRIBUTION_UNIFORM, -1.7e308, 1.7e308);
    space_add(&space, "wide", DISTRIBUTION_NORMAL)->sigma = 1.7e308;
    for (int64_t trial = 1; trial <= 100; trial++) {
        json_t *point = random_sampler.propose(&space, 1, trial);
        assert_int_equal(json_object_size(point),
                         2); /* JSON has no infinity: there would be no point at all */
        json_decref(point);
    }
    space_release(&space);
}

static void test_constants_and_types(void **state)
{
    (void)state;
    struct space space = {0};
    space_add_values(&space, "a", "[{\"x\": [1, null]}]")->distribution = DISTRIBUTION_CONSTANT;
    space_add(&space, "b", DISTRIBUTION_NORMAL)->mu = 2;
    struct parameter *layers = space_add_range(&space, "c", DISTRIBUTION_LATTICE, 4, 5);
    layers->step = 2;
    layers->integer = true;
    space_add_values(&space, "d", "[null]");
    assert_string_equal(text_of(random_sampler.propose(&space, 1, 1)),
                        "{\"a\":{\"x\":[1,null]},\"b\":2.0,\"c\":4,\"d\":null}");
    space_release(&space);
}

/* Against another implementation of AS 241, and against the C library's erfc. */
static void test_normal_quantile(void **state)
{
    (void)state;
    static const double cases[][2] = {
        {1e-300, -37.0470962993612},    {1e-20, -9.262340089798405},
        {1e-10, -6.361340902404056},    {0.001, -3.090232306167813},
        {0.07499, -1.4396021182393162}, {0.0750001, -1.4395307645017297},
        {0.3, -0.5244005127080407},     {0.5, 0},
        {0.75, 0.6744897501960817},     {0.999, 3.090232306167813},
        {1 - 1e-15, 7.941444487415977}, {0x1p-53, -8.209536151601386},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_near(normal_quantile(cases[i][0]), cases[i][1]);
    for (double u = 1e-12; u < 0.5; u *= 1.01) {
        double x = normal_quantile(u);
        assert_true(fabs(0.5 * erfc(-x / sqrt(2)) / u - 1) < 1e-13);
        assert_true(fabs(normal_quantile(1 - u) + x) < 1e-15 / u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_draws),    cmocka_unit_test(test_other_parameters_do_not_matter),
        cmocka_unit_test(test_continuous_laws), cmocka_unit_test(test_discrete_laws),
        cmocka_unit_test(test_categorical_law), cmocka_unit_test(test_independence),
        cmocka_unit_test(test_bounds),          cmocka_unit_test(test_constants_and_types),
        cmocka_unit_test(test_normal_quantile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
