/* Numbers as text: the shortest decimal that reads back the same, laid out as Python's repr does. */
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* digits d1 d2 ... dn stand for 0.d1d2...dn * 10^point */
struct decimal {
    char digits[24];
    int count;
    int point;
};

/* Writes the digits of whole * 10^exponent, without zeros at the end. */
static void decimal_set(struct decimal *decimal, uint64_t whole, int exponent)
{
    char reversed[24];
    int count = 0;
    do
        reversed[count++] = (char)('0' + whole % 10);
    while (whole /= 10);
    for (int i = 0; i < count; i++)
        decimal->digits[i] = reversed[count - 1 - i];
    decimal->point = count + exponent;
    while (count > 1 && decimal->digits[count - 1] == '0')
        count--;
    decimal->count = count;
}

/* A decimal m / 10^k of at most 15 digits is found by arithmetic alone: m and 10^k are exact, so the quotient
 * is the correctly rounded value of that decimal, and no two such decimals share a double. Most parameters
 * end here, some ten times faster than through snprintf. */
static bool decimal_short(struct decimal *decimal, double value)
{
    if (value < 1e-4 || value >= 1e15)
        return false;
    double scale = 1;
    for (int places = 0; places <= 9; places++, scale *= 10) {
        double scaled = value * scale;
        if (scaled >= 1e15)
            return false;
        double whole = nearbyint(scaled);
        if (whole / scale == value) {
            decimal_set(decimal, (uint64_t)whole, -places);
            return true;
        }
    }
    return false;
}

/* The nearest whole * 10^exponent of `precision` digits. Only digits are taken, so that the locale's decimal
 * point does not matter. */
static uint64_t decimal_round(double value, int precision, int *exponent)
{
    char scientific[48];
    snprintf(scientific, sizeof scientific, "%.*e", precision - 1, value);
    uint64_t whole = 0;
    const char *at = scientific;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9')
            whole = whole * 10 + (uint64_t)(*at - '0');
    }
    *exponent = (int)strtol(at + 1, NULL, 10) - (precision - 1);
    return whole;
}

/* "e-07", two digits at least, and NUL: as Python writes it. */
static void put_exponent(char *at, int exponent)
{
    int rest = abs(exponent);
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    if (rest >= 100)
        *at++ = (char)('0' + rest / 100);
    *at++ = (char)('0' + rest / 10 % 10);
    *at++ = (char)('0' + rest % 10);
    *at = '\0';
}

/* Whether whole * 10^exponent is read as `value`; its text has no decimal point that a locale could change.
 */
static bool reads_back(uint64_t whole, int exponent, double value)
{
    char text[40];
    struct decimal decimal;
    decimal_set(&decimal, whole, exponent);
    memcpy(text, decimal.digits, (size_t)decimal.count);
    put_exponent(text + decimal.count, decimal.point - decimal.count);
    return strtod(text, NULL) == value;
}

/* A subnormal number may need fewer digits than 15: the fewest that do. */
static void decimal_subnormal(struct decimal *decimal, double value)
{
    int precision = 0, exponent;
    uint64_t whole;
    do
        whole = decimal_round(value, ++precision, &exponent);
    while (precision < 17 && !reads_back(whole, exponent, value));
    decimal_set(decimal, whole, exponent);
}

/* Seventeen digits always do, so one call of snprintf is enough; shorter candidates are made from them.
 *
 * 15 digits: half a gap between doubles is at most 11.2 units of the 17th digit, so only a candidate as near
 * as that can be read as the value.
 *
 * 16 digits: the nearest one. Where the 17th digit is 5, rounding twice could go wrong, so ask again. At a
 * power of two the gap above is twice the gap below: the next candidate upwards may do where the nearest,
 * below, is read as a neighbour. */
static void decimal_shortest(struct decimal *decimal, double value)
{
    if (decimal_short(decimal, value))
        return;
    if (value < 2.2250738585072014e-308) {
        decimal_subnormal(decimal, value);
        return;
    }
    int exponent, exponent16, binary;
    uint64_t whole = decimal_round(value, 17, &exponent);
    uint64_t shorter = (whole + 50) / 100;
    if (whole + 12 >= shorter * 100 && whole <= shorter * 100 + 12 &&
        reads_back(shorter, exponent + 2, value)) {
        decimal_set(decimal, shorter, exponent + 2);
        return;
    }
    shorter = (whole + 5) / 10;
    exponent16 = exponent + 1;
    if (whole % 10 == 5)
        shorter = decimal_round(value, 16, &exponent16);
    bool fits = reads_back(shorter, exponent16, value);
    if (!fits && frexp(value, &binary) == 0.5) {
        shorter = whole / 10 + 1;
        exponent16 = exponent + 1;
        fits = reads_back(shorter, exponent16, value);
    }
    if (fits)
        decimal_set(decimal, shorter, exponent16);
    else
        decimal_set(decimal, whole, exponent);
}

static char *put(char *at, const char *bytes, int count)
{
    memcpy(at, bytes, (size_t)count);
    return at + count;
}

static char *put_zeros(char *at, int count)
{
    memset(at, '0', (size_t)count);
    return at + count;
}

char *number_format(double value, char buffer[NUMBER_SIZE])
{
    char *at = buffer;
    if (isnan(value))
        return strcpy(buffer, "NaN");
    if (signbit(value))
        *at++ = '-';
    value = fabs(value);
    if (isinf(value)) {
        strcpy(at, "Infinity");
        return buffer;
    }
    if (value == 0) {
        strcpy(at, "0.0");
        return buffer;
    }
    struct decimal decimal;
    decimal_shortest(&decimal, value);
    int count = decimal.count, point = decimal.point;
    if (point < -3 || point > 16) { /* repr: exponent below -4 or from 16 on */
        *at++ = decimal.digits[0];
        if (count > 1) {
            *at++ = '.';
            at = put(at, decimal.digits + 1, count - 1);
        }
        put_exponent(at, point - 1);
        return buffer;
    }
    if (point <= 0) {
        at = put(at, "0.", 2);
        at = put_zeros(at, -point);
        at = put(at, decimal.digits, count);
    } else if (count <= point) {
        at = put(at, decimal.digits, count);
        at = put_zeros(at, point - count);
        at = put(at, ".0", 2);
    } else {
        at = put(at, decimal.digits, point);
        *at++ = '.';
        at = put(at, decimal.digits + point, count - point);
    }
    *at = '\0';
    return buffer;
}

/* digits [. digits] [e [sign] digits] with at least one digit before the exponent. */
static bool number_is_plain(const char *at)
{
    if (*at == '+' || *at == '-')
        at++;
    size_t whole = strspn(at, "0123456789");
    at += whole;
    size_t fraction = 0;
    if (*at == '.') {
        at++;
        fraction = strspn(at, "0123456789");
        at += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-')
            at++;
        size_t exponent = strspn(at, "0123456789");
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return *at == '\0';
}

bool number_parse(const char *string, double *value)
{
    if (!number_is_plain(string))
        return false;
    /* The C library keeps one object for "C": this neither allocates nor fails. */
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale)
        return false;
    double number = strtod_l(string, NULL, locale);
    freelocale(locale);
    if (!isfinite(number))
        return false;
    *value = number;
    return true;
}
