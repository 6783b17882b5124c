/* Scaling numbers: against values by hand, and by the definitions written down again. */
#include "tests/unit/worker/scaling_fixture.h"

#include "base/normal.h"
#include "base/random.h"
#include "worker/training/data_sort.h"

static struct scaling fit(enum preprocess preprocess, const double *given, int64_t count)
{
    double value[2000];
    struct scaling scaling;
    struct error err = {0};
    memcpy(value, given, (size_t)count * sizeof *value);
    if (scaling_fit(&scaling, preprocess, value, count, &err) < 0)
        fail_msg("%s", err.message);
    return scaling;
}

/* The percentage points that tables of the normal distribution print. */
static void normal_quantiles(void **state)
{
    (void)state;
    static const double known[][2] = {{0.5, 0},
                                      {0.6, 0.2533471031357997},
                                      {0.7, 0.5244005127080407},
                                      {0.8, 0.8416212335729143},
                                      {0.9, 1.2815515655446004},
                                      {0.975, 1.959963984540054},
                                      {0.999, 3.090232306167813},
                                      {1 - 1e-7, 5.199337582187471}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        check_near(normal_quantile(known[i][0]), known[i][1], 2e-9);
        check_near(normal_quantile(1 - known[i][0]), -known[i][1], 2e-9);
    }
    check_near(normal_quantile(1e-7), -5.199337582192817, 1e-10);
}

static void standard_by_hand(void **state)
{
    (void)state;
    struct scaling scaling = fit(PREPROCESS_STANDARD, (double[]){2, 4, 4, 4, 5, 5, 7, 9}, 8);
    check_near(scaling.centre, 5, 0);
    check_near(scaling.scale, 2, 1e-15);
    check_near(scaling_apply(&scaling, 8), 1.5, 1e-15);
    check_near(scaling_apply(&scaling, NAN), 0, 0);
}

static void robust_by_hand(void **state)
{
    (void)state;
    /* Sorted 1 2 4 8 100: quartiles 2 and 8. The far value moves neither. */
    struct scaling scaling = fit(PREPROCESS_ROBUST, (double[]){8, 1, 100, 2, 4}, 5);
    check_near(scaling.centre, 4, 0);
    check_near(scaling.scale, 6, 0);
    check_near(scaling_apply(&scaling, 100), 16, 1e-15);
    check_near(scaling_apply(&scaling, NAN), 0, 0);
    /* Four values: places 0.75, 1.5 and 2.25 between them. */
    scaling = fit(PREPROCESS_ROBUST, (double[]){40, 10, 30, 20}, 4);
    check_near(scaling.centre, 25, 1e-15);
    check_near(scaling.scale, 32.5 - 17.5, 1e-15);
    /* Most values equal: the quartiles are one, so the standard deviation: mean 2, squares 8 * 4 + 64. */
    scaling = fit(PREPROCESS_ROBUST, (double[]){0, 0, 0, 0, 0, 0, 0, 10, 0, 10}, 10);
    check_near(scaling.centre, 0, 0);
    check_near(scaling.scale, 4, 1e-15);
}

static void quantile_by_hand(void **state)
{
    (void)state;
    struct scaling scaling = fit(PREPROCESS_QUANTILE, (double[]){10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5}, 11);
    static const double score[] = {-5.199337582192817,  -1.2815515655446004, -0.8416212335729143,
                                   -0.5244005127080407, -0.2533471031357997, 0};
    for (int i = 0; i <= 5; i++) {
        check_near(scaling_apply(&scaling, i), score[i], 1e-9);
        check_near(scaling_apply(&scaling, 10 - i), -score[i], 1e-8);
    }
    check_near(scaling_apply(&scaling, 5.5), 0.12566134685507402, 1e-9); /* the share 0.55 */
    check_near(scaling_apply(&scaling, -100), score[0], 1e-9);
    check_near(scaling_apply(&scaling, 1e300), -score[0], 1e-8);
    check_near(scaling_apply(&scaling, NAN), 0, 1e-10); /* of the median */
    scaling_release(&scaling);
    /* Ties: 1 has the shares 0.25, 0.5 and 0.75 of 0 1 1 1 2; their middle is 0.5. */
    scaling = fit(PREPROCESS_QUANTILE, (double[]){1, 0, 1, 2, 1}, 5);
    check_near(scaling_apply(&scaling, 1), 0, 1e-10);
    check_near(scaling_apply(&scaling, 0.5), -1.1503493803760079, 1e-9); /* the share 0.125 */
    scaling_release(&scaling);
    /* Shares of the lowest value among many equal ones: it is the lower end, as everything below. */
    scaling = fit(PREPROCESS_QUANTILE, (double[]){0, 0, 0, 1}, 4);
    check_near(scaling_apply(&scaling, 0), score[0], 1e-9);
    scaling_release(&scaling);
}

/* The definitions once more, the slow way. */
static double linear_percentile(const double *sorted, int64_t count, double share)
{
    double place = share * (double)(count - 1), below = floor(place);
    double low = sorted[(int64_t)below], high = sorted[(int64_t)ceil(place)];
    return low + (high - low) * (place - below);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantile_of_many_rows(void **state)
{
    (void)state;
    const uint64_t seed = 20;
    enum { COUNT = 1777 };
    static double value[COUNT], sorted[COUNT], quantile[QUANTILES_MAXIMUM];
    for (uint32_t i = 0; i < COUNT; i++) { /* half of them tied */
        struct philox words = philox4x32(seed, i, 0, 0, 0);
        double x = (double)words.word[0] / 4294967296.0;
        value[i] = words.word[1] % 2 ? floor(x * 20) : exp(6 * x);
    }
    memcpy(sorted, value, sizeof sorted);
    qsort(sorted, COUNT, sizeof *sorted, compare);
    for (int k = 0; k < QUANTILES_MAXIMUM; k++)
        quantile[k] = linear_percentile(sorted, COUNT, k / 999.0);
    struct scaling scaling = fit(PREPROCESS_QUANTILE, value, COUNT);
    assert_int_equal(scaling.quantiles, QUANTILES_MAXIMUM);
    for (int k = 0; k < QUANTILES_MAXIMUM; k++)
        check_near(scaling.quantile[k], quantile[k], 1e-13);
    for (int i = 0; i < COUNT; i += 7) {
        /* Rounding may part or join a tie that both sides compute; the score then differs by a step. */
        double x = scaling.quantile[i % QUANTILES_MAXIMUM] * (i % 3 ? 1 : 1.001);
        check_near(scaling_apply(&scaling, x), slow_score(scaling.quantile, QUANTILES_MAXIMUM, x), 1e-7);
    }
    scaling_release(&scaling);
}

/* Every exponent and both signs, with ties, against the C library's sort. */
static void numbers_are_sorted(void **state)
{
    static const int64_t counts[] = {0, 1, 2, 4095, 4096, 5000, 30011};
    const char *given = getenv("SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261201;
    (void)state;
    print_message("SEED=%llu\n", (unsigned long long)seed);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int64_t count = counts[k];
        double *value = malloc(((size_t)count + 1) * sizeof *value);
        double *expected = malloc(((size_t)count + 1) * sizeof *expected);
        for (int64_t i = 0; i < count; i++) {
            struct philox words = philox4x32(seed, (uint32_t)i, (uint32_t)k, 0, 0);
            double mantissa = (double)(int32_t)words.word[0] / 0x1p31;
            value[i] = words.word[1] % 5 == 0   ? (double)(words.word[2] % 10) - 5
                       : words.word[1] % 5 == 1 ? ldexp(mantissa, (int)(words.word[2] % 2098) - 1074)
                                                : mantissa;
            expected[i] = value[i];
        }
        qsort(expected, (size_t)count, sizeof *expected, compare);
        numbers_sort(value, count);
        for (int64_t i = 0; i < count; i++)
            assert_true(value[i] == expected[i]);
        free(value);
        free(expected);
    }
}

static void what_no_scale_can_hold_is_refused(void **state)
{
    (void)state;
    static const enum preprocess kinds[] = {PREPROCESS_STANDARD, PREPROCESS_ROBUST, PREPROCESS_QUANTILE};
    for (int i = 0; i < 3; i++) {
        struct scaling scaling;
        struct error err = {0};
        double far[] = {-1.7e308, 1.7e308, 1, -1.7e308, 1.7e308};
        assert_int_equal(scaling_fit(&scaling, kinds[i], far, 5, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
        assert_non_null(strstr(err.message, "spans -1.7e+308 to 1.7e+308"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_quantiles),      cmocka_unit_test(standard_by_hand),
        cmocka_unit_test(robust_by_hand),        cmocka_unit_test(quantile_by_hand),
        cmocka_unit_test(quantile_of_many_rows), cmocka_unit_test(what_no_scale_can_hold_is_refused),
        cmocka_unit_test(numbers_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
