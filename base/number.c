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

/* `precision` significant digits of a positive value; true when they read back as the same value. snprintf
 * and strtod see the same locale, and only digits are taken, so its decimal point does not matter. */
static bool decimal_try(struct decimal *decimal, double value, int precision)
{
    char scientific[48];
    snprintf(scientific, sizeof scientific, "%.*e", precision - 1, value);
    if (strtod(scientific, NULL) != value)
        return false;
    const char *exponent = strchr(scientific, 'e');
    decimal->count = 0;
    for (const char *at = scientific; at < exponent; at++) {
        if (*at >= '0' && *at <= '9')
            decimal->digits[decimal->count++] = *at;
    }
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
    decimal->point = (int)strtol(exponent + 1, NULL, 10) + 1;
    return true;
}

/* A decimal m / 10^k of at most 15 digits is found by arithmetic alone: m and 10^k are exact, so the quotient
 * is the correctly rounded value of that decimal, and no two such decimals share a double. Most metrics and
 * parameters end here, some ten times faster than through snprintf. */
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
        if (whole / scale != value)
            continue;
        char reversed[24];
        int count = 0;
        for (uint64_t rest = (uint64_t)whole; rest; rest /= 10)
            reversed[count++] = (char)('0' + rest % 10);
        for (int i = 0; i < count; i++)
            decimal->digits[i] = reversed[count - 1 - i];
        decimal->point = count - places;
        while (count > 1 && decimal->digits[count - 1] == '0')
            count--;
        decimal->count = count;
        return true;
    }
    return false;
}

/* At a power of two the gap above is twice the gap below. The shortest decimal may then lie above the value
 * while a nearer one of the same length, below it, reads back as a neighbour: so try the next 16-digit
 * decimal upwards. */
static bool decimal_above(struct decimal *decimal, double value)
{
    int exponent;
    if (frexp(value, &exponent) != 0.5 || !decimal_try(decimal, value, 17) || decimal->count < 17)
        return false;
    uint64_t digits = 0;
    for (int i = 0; i < 16; i++)
        digits = digits * 10 + (uint64_t)(decimal->digits[i] - '0');
    char above[48];
    snprintf(above, sizeof above, "%llue%d", (unsigned long long)digits + 1, decimal->point - 16);
    if (strtod(above, NULL) != value)
        return false;
    memcpy(decimal->digits, above, 16);
    decimal->count = 16;
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
    return true;
}

static void decimal_shortest(struct decimal *decimal, double value)
{
    if (decimal_short(decimal, value))
        return;
    /* Fifteen digits always survive a double of full precision; a subnormal one has fewer. */
    for (int precision = value < 2.2250738585072014e-308 ? 1 : 15; precision < 17; precision++) {
        if (decimal_try(decimal, value, precision))
            return;
    }
    if (!decimal_above(decimal, value))
        decimal_try(decimal, value, 17);
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
        snprintf(at, 16, "e%c%02d", point - 1 < 0 ? '-' : '+', abs(point - 1));
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
