/* Ladders of rungs, and what all stopping rules share. */
#include "search/stopping.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void check_levels(int64_t min_iter, int64_t max_iter, double eta, const int64_t *expected, int count)
{
    const struct stopping_settings settings = {
        .kind = STOPPING_ASHA_PROMOTION, .min_iter = min_iter, .max_iter = max_iter, .eta = eta};
    int64_t levels[STOPPING_LEVELS];
    assert_int_equal(stopping_levels(&settings, levels, NULL), count);
    for (int i = 0; i < count; i++)
        assert_int_equal(levels[i], expected[i]);
}

#define LEVELS(min_iter, max_iter, eta, ...)                                                                 \
    check_levels(min_iter, max_iter, eta, (const int64_t[]){__VA_ARGS__},                                    \
                 (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static void test_levels(void **state)
{
    (void)state;
    LEVELS(1, 81, 3, 1, 3, 9, 27, 81);
    LEVELS(1, 27, 3, 1, 3, 9, 27);
    LEVELS(1, 200, 3, 1, 3, 9, 27, 81, 200); /* no power of eta */
    LEVELS(1, 28, 3, 1, 3, 9, 27, 28);
    LEVELS(2, 16, 2, 2, 4, 8, 16);
    LEVELS(5, 5, 3, 5);
    LEVELS(5, 6, 3, 5, 6);
    LEVELS(30, 120, 1.5, 30, 45, 67, 101, 120);
    LEVELS(1, 4, 1.5, 1, 2, 3, 4); /* 1, 1.5, 2.25, 3.375: two levels of 1 are one */
    LEVELS(1, 10, 2.5, 1, 2, 6, 10);
    LEVELS(1, INT64_C(1000000000000000000), 1e9, 1, 1000000000, INT64_C(1000000000000000000));
    /* 1000 = 10^3 exactly, where a logarithm gives 2.9999999999999996. */
    LEVELS(1, 1000, 10, 1, 10, 100, 1000);
    LEVELS(1, 243, 3, 1, 3, 9, 27, 81, 243);
}

static void check_bad(enum stopping_kind kind, int64_t min_iter, int64_t max_iter, double eta,
                      const char *word)
{
    const struct stopping_settings settings = {
        .kind = kind, .min_iter = min_iter, .max_iter = max_iter, .eta = eta, .trials = -1};
    struct error err = {0};
    assert_null(stopping_create(&settings, &err));
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, word));
}

static void test_bad_settings(void **state)
{
    (void)state;
    check_bad(STOPPING_ASHA_STOPPING, 0, 9, 3, "min_iter");
    check_bad(STOPPING_ASHA_STOPPING, 10, 9, 3, "max_iter");
    check_bad(STOPPING_NONE, 1, 0, 3, "max_iter");
    check_bad(STOPPING_ASHA_PROMOTION, 1, 9, 1, "eta");
    check_bad(STOPPING_ASHA_PROMOTION, 1, 9, (double)NAN, "eta");
    check_bad(STOPPING_ASHA_PROMOTION, 1, 9, (double)INFINITY, "eta");
    check_bad(STOPPING_ASHA_PROMOTION, 1000, 1000000, 1.001, "rungs");
    check_bad(STOPPING_ASHA_PROMOTION, 1, 1000000, 1 + 1e-9, "rungs");
    check_bad(STOPPING_ASHA_PROMOTION, 1, INT64_MAX, nextafter(1, 2), "rungs");
    check_bad(STOPPING_SUCCESSIVE_HALVING, 1, 9, 3, "run_cap");
}

/* Judged at 10, 40 and 160 completed units, not one later. */
static void test_levels_of_an_object(void **state)
{
    (void)state;
    const struct stopping_settings settings = {
        .kind = STOPPING_ASHA_PROMOTION, .min_iter = 10, .max_iter = 160, .eta = 4, .trials = -1};
    struct stopping *stopping = stopping_create(&settings, NULL);
    static const int64_t levels[] = {10, 40, 160};
    assert_int_equal(stopping_rung_count(stopping), 3);
    for (int rung = 0; rung < 3; rung++)
        assert_int_equal(stopping_level(stopping, rung), levels[rung]);
    stopping_destroy(stopping);
    stopping_destroy(NULL);
}

static void test_none(void **state)
{
    (void)state;
    const struct stopping_settings settings = {.kind = STOPPING_NONE, .max_iter = 27, .trials = -1};
    struct stopping *stopping = stopping_create(&settings, NULL);
    assert_int_equal(stopping_rung_count(stopping), 1);
    assert_int_equal(stopping_add(stopping, 1), 0);
    assert_int_equal(stopping_add(stopping, 3), -1); /* a gap */
    assert_int_equal(stopping_add(stopping, 2), 0);
    assert_int_equal(stopping_target(stopping, 1), 27);
    assert_int_equal(stopping_enter(stopping, 1, 0, (double)NAN, 0), STOPPING_FINISH);
    assert_int_equal(stopping_enter(stopping, 1, 0, 3, 0), STOPPING_FINISH);
    stopping_end(stopping, 2, false);
    stopping_close(stopping);
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    assert_int_equal(stopping_next_prune(stopping, 0), 0);
    stopping_destroy(stopping);
}

/* What an owner may get wrong changes nothing. */
static void test_stray_inputs(void **state)
{
    (void)state;
    const struct stopping_settings settings = {
        .kind = STOPPING_ASHA_PROMOTION, .min_iter = 1, .max_iter = 9, .eta = 3, .trials = -1};
    struct stopping *stopping = stopping_create(&settings, NULL);
    stopping_add(stopping, 1);
    assert_int_equal(stopping_enter(stopping, 0, 0, 1, 0), STOPPING_STOP);
    assert_int_equal(stopping_enter(stopping, 2, 0, 1, 0), STOPPING_STOP);
    stopping_end(stopping, 7, true);
    stopping_prune(stopping, -1);
    assert_int_equal(stopping_promote(stopping, 1), 1); /* it has entered nothing */
    stopping_enter(stopping, 1, 2, 1, 0);               /* not its next rung */
    assert_int_equal(stopping_enter(stopping, 1, 0, 1, 0), STOPPING_PAUSE);
    stopping_end(stopping, 1, false);
    assert_int_equal(stopping_enter(stopping, 1, 1, 1, 0), STOPPING_STOP); /* it has ended */
    assert_int_equal(stopping_promote(stopping, 1), 1);
    stopping_close(stopping);
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    assert_int_equal(stopping_next_prune(stopping, 0), 0);
    stopping_destroy(stopping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_levels_of_an_object),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_stray_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
