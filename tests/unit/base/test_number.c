/* Numbers as text: Python's repr, exact round trips, strict parsing, whatever the locale. */
#include "base/random.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void check(double value, const char *expected)
{
    char buffer[NUMBER_SIZE];
    assert_string_equal(number_format(value, buffer), expected);
}

/* Each expected text is what Python 3 prints. */
static void test_repr(void **state)
{
    (void)state;
    check(0.0, "0.0");
    check(-0.0, "-0.0");
    check(1.0, "1.0");
    check(-3.0, "-3.0");
    check(0.1, "0.1");
    check(0.3, "0.3");
    check(0.1 + 0.2, "0.30000000000000004");
    check(1e-4, "0.0001");
    check(1e-5, "1e-05");
    check(1.5e-5, "1.5e-05");
    check(0.00012345, "0.00012345");
    check(123456.789, "123456.789");
    check(1e15, "1000000000000000.0");
    check(9999999999999998.0, "9999999999999998.0");
    check(1e16, "1e+16");
    check(1.2345678901234568e17, "1.2345678901234568e+17");
    check(1e22, "1e+22");
    check(1e23, "1e+23");
    check(1e100, "1e+100");
    check(5e-324, "5e-324");
    check(2.2250738585072014e-308, "2.2250738585072014e-308");
    check(1.7976931348623157e308, "1.7976931348623157e+308");
    check(9007199254740993.0, "9007199254740992.0");
    check(1.0 / 3, "0.3333333333333333");
    check(2.0 / 3, "0.6666666666666666");
    check(100.0 / 3, "33.333333333333336");
    check((double)NAN, "NaN");
    check((double)INFINITY, "Infinity");
    check(-(double)INFINITY, "-Infinity");
}

/* Powers of two have unequal gaps on their sides: here the nearest 16-digit decimal is not the shortest text.
 */
static void test_powers_of_two(void **state)
{
    (void)state;
    check(0x1p-1017, "7.120236347223045e-307");
    check(0x1p-44, "5.684341886080802e-14");
    check(0x1p-140, "7.174648137343064e-43");
    check(0x1p-1074, "5e-324");
    check(0x1p1023, "8.98846567431158e+307");
    char buffer[NUMBER_SIZE];
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        double value = ldexp(1, exponent);
        assert_true(strtod(number_format(value, buffer), NULL) == value);
    }
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads back exactly, and no shorter mantissa would: one digit less, rounded either way, is another number.
 */
static void check_shortest(double value)
{
    char buffer[NUMBER_SIZE], shorter[48];
    double back;
    assert_true(strlen(number_format(value, buffer)) < NUMBER_SIZE);
    assert_true(number_parse(buffer, &back) && back == value);
    int digits = 0, trailing = 0;
    bool leading = true;
    for (const char *at = buffer; *at && *at != 'e'; at++) {
        if (*at < '0' || *at > '9' || (leading && *at == '0'))
            continue;
        leading = false;
        digits++;
        trailing = *at == '0' ? trailing + 1 : 0;
    }
    digits -= trailing;
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
        assert_true(strtod(shorter, NULL) != value);
    }
}

static void test_random_round_trips(void **state)
{
    (void)state;
    const uint64_t seed = 11;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < 20000; i++) {
        double any = from_bits(random_below(seed, i, 1, 0, UINT64_C(1) << 63));
        double unit = random_unit(seed, i, 2, 0);
        double places = nearbyint(unit * 10000) / 10000;
        if (isfinite(any) && any != 0)
            check_shortest(any);
        check_shortest(unit);
        if (places != 0)
            check_shortest(places);
        check_shortest(unit * 1e12);
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1", 1},     {"1.", 1},       {".5", 0.5}, {"+1", 1},     {"-0.25", -0.25}, {"1e-3", 1e-3},
                {"1E5", 1e5}, {"2.5e+2", 250}, {"007", 7},  {"1e-999", 0}, {"0.1", 0.1}};
    static const char *const bad[] = {"",  " 1",  "1 ",  "0x10", "inf", "nan",   "1e",    "1e+", ".",
                                      "+", "--1", "1,5", "1_0",  "e5",  "1e5.0", "1.2.3", "1d3", "1e999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -1;
        assert_true(number_parse(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = 42;
        assert_false(number_parse(bad[i], &value));
        assert_true(value == 42);
    }
}

/* A library of a user's program may have set a locale with a decimal comma. */
static void test_any_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "nl_NL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++)
        found = setlocale(LC_NUMERIC, names[i]);
    if (!found)
        skip();
    check(1.0 / 3, "0.3333333333333333");
    check(1e-7, "1e-07");
    double value;
    assert_true(number_parse("0.5", &value) && value == 0.5);
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repr),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_random_round_trips),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
