/* What a YAML 1.1 scalar means: PyYAML's resolver, written as small matchers, plus the numbers it takes for
 * strings. */
#include "coordinator/yaml.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_sign(const char *text)
{
    return *text == '+' || *text == '-' ? text + 1 : text;
}

/* A copy without underscores in `buffer`; NULL when it is too long to be a number anyone means. */
static const char *without_underscores(const char *text, char *buffer, size_t size)
{
    size_t used = 0;
    for (; *text; text++) {
        if (*text == '_') {
            continue;
        }
        if (used + 1 >= size) {
            return NULL;
        }
        buffer[used++] = *text;
    }
    buffer[used] = '\0';
    return buffer;
}

static void set_integer(struct node *node, bool negative, uint64_t magnitude)
{
    node->kind = NODE_INTEGER;
    node->negative = negative && magnitude != 0;
    node->magnitude = magnitude;
    node->number = negative ? -(double)magnitude : (double)magnitude;
}

static void set_number(struct node *node, double number)
{
    node->kind = NODE_NUMBER;
    node->number = number;
}

/* Digits of `base` (2..16); beyond 64 bits it becomes a real number, as no setting takes such an integer. */
static bool set_digits(struct node *node, bool negative, const char *digits, unsigned base)
{
    uint64_t magnitude = 0;
    double wide = 0;
    bool huge = false;
    if (*digits == '\0') {
        return false;
    }
    for (; *digits; digits++) {
        unsigned digit =
            is_digit(*digits) ? (unsigned)(*digits - '0') : (unsigned)((*digits | 32) - 'a') + 10;
        if (digit >= base) {
            return false;
        }
        huge = huge || magnitude > (UINT64_MAX - digit) / base;
        magnitude = magnitude * base + digit;
        wide = wide * base + digit;
    }
    if (huge) {
        set_number(node, negative ? -wide : wide);
        node->form = FORM_HUGE_INTEGER;
    } else {
        set_integer(node, negative, magnitude);
    }
    return true;
}

/* [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+ with an optional fraction: sexagesimal, 1:30 is 90. */
static bool resolve_sexagesimal(struct node *node, const char *clean)
{
    const char *at = skip_sign(clean);
    double value = 0;
    if (!is_digit(*at) || !strchr(at, ':')) {
        return false;
    }
    for (int part = 0;; part++) {
        double digits = 0;
        int length = 0;
        for (; is_digit(*at); at++, length++) {
            digits = digits * 10 + (*at - '0');
        }
        if (length == 0 || (part > 0 && (length > 2 || digits > 59))) {
            return false;
        }
        value = value * 60 + digits;
        if (*at != ':') {
            break;
        }
        at++;
    }
    bool negative = *clean == '-';
    if (*at == '.') {
        double scale = 1;
        for (at++; is_digit(*at); at++) {
            scale /= 10;
            value += (*at - '0') * scale;
        }
        if (*at != '\0') {
            return false;
        }
        set_number(node, negative ? -value : value);
    } else if (*at == '\0' && *skip_sign(clean) != '0' && value < 9e15) {
        set_integer(node, negative, (uint64_t)value);
    } else {
        return false;
    }
    node->form = FORM_SEXAGESIMAL;
    return true;
}

static bool resolve_integer(struct node *node, const char *clean)
{
    bool negative = *clean == '-';
    const char *at = skip_sign(clean);
    if (at[0] == '0' && at[1] == 'b') {
        return set_digits(node, negative, at + 2, 2);
    }
    if (at[0] == '0' && at[1] == 'x') {
        return set_digits(node, negative, at + 2, 16);
    }
    if (at[0] == '0' && at[1] != '\0') {
        if (!set_digits(node, negative, at + 1, 8)) {
            return false;
        }
        node->form = FORM_OCTAL;
        return true;
    }
    return is_digit(*at) && set_digits(node, negative, at, 10);
}

/* A dot, and an exponent only with its sign: what YAML 1.1 calls a float. The sign of a number that starts
 * with a dot is ours; PyYAML takes such a one for a string. */
static bool is_strict_float(const char *text)
{
    const char *at = skip_sign(text);
    const char *dot = strchr(at, '.');
    const char *exponent = strpbrk(at, "eE");
    if (!dot || (at == dot && at != text)) {
        return false;
    }
    return !exponent || exponent[1] == '+' || exponent[1] == '-';
}

static bool resolve_number(struct node *node, const char *clean)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    double number;
    if (is_one_of(skip_sign(clean), infinities)) {
        set_number(node, *clean == '-' ? -INFINITY : INFINITY);
        return true;
    }
    if (is_one_of(clean, nans)) {
        set_number(node, NAN);
        return true;
    }
    if (!strpbrk(clean, ".eE") || !number_parse(clean, &number)) {
        return false; /* 09 is no octal and no number */
    }
    set_number(node, number);
    if (!is_strict_float(clean)) {
        node->form = FORM_BARE_EXPONENT;
    }
    return true;
}

static bool resolve_boolean(struct node *node)
{
    static const char *const truths[] = {"true", "True", "TRUE", NULL};
    static const char *const falsehoods[] = {"false", "False", "FALSE", NULL};
    static const char *const yes[] = {"yes", "Yes", "YES", "on", "On", "ON", NULL};
    static const char *const no[] = {"no", "No", "NO", "off", "Off", "OFF", NULL};
    bool word = is_one_of(node->text, yes) || is_one_of(node->text, no);
    if (!word && !is_one_of(node->text, truths) && !is_one_of(node->text, falsehoods)) {
        return false;
    }
    node->kind = NODE_BOOLEAN;
    node->boolean = is_one_of(node->text, truths) || is_one_of(node->text, yes);
    node->form = word ? FORM_BOOLEAN_WORD : FORM_USUAL;
    return true;
}

static bool resolve_null(struct node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    if (!is_one_of(node->text, nulls)) {
        return false;
    }
    node->kind = NODE_NULL;
    node->form = node->text[0] == '~' ? FORM_TILDE : FORM_USUAL;
    return true;
}

/* Underscores part digits of what YAML 1.1 calls a number (1_000, 0x_ff, 1_0.5_0): not of an exponent, not
 * behind a colon, and not of the numbers that are ours; _1 and ._5 are words. */
static bool takes_underscores(const struct node *node)
{
    const char *late = strpbrk(node->text, ":eE");
    return node->form != FORM_BARE_EXPONENT && isfinite(node->number) && !(late && strchr(late, '_'));
}

static bool resolve_numeric(struct node *node)
{
    char buffer[128];
    const char *at = skip_sign(node->text);
    const char *clean = without_underscores(node->text, buffer, sizeof buffer);
    bool underscores = strchr(node->text, '_') != NULL;
    if (!clean || (!is_digit(at[0]) && (at[0] != '.' || at[1] == '_'))) {
        return false;
    }
    if (!resolve_integer(node, clean)) {
        if (!resolve_sexagesimal(node, clean) && !resolve_number(node, clean)) {
            return false;
        }
        if (underscores && !takes_underscores(node)) {
            node->form = FORM_USUAL;
            return false;
        }
    }
    node->form = underscores ? FORM_UNDERSCORE : node->form;
    return true;
}

void node_resolve_plain(struct node *node)
{
    node->form = FORM_USUAL;
    if (!resolve_null(node) && !resolve_boolean(node) && !resolve_numeric(node)) {
        node->kind = NODE_STRING;
    }
}

bool node_resolve_tag(struct node *node, const char *tag)
{
    node_resolve_plain(node);
    enum node_kind kind = node->kind;
    node->form = FORM_USUAL;
    if (strcmp(tag, "str") == 0) {
        node->kind = NODE_STRING;
        node->quoted = true;
        return true;
    }
    if (strcmp(tag, "float") == 0) {
        node->kind = NODE_NUMBER;
        return kind == NODE_INTEGER || kind == NODE_NUMBER;
    }
    return (strcmp(tag, "int") == 0 && kind == NODE_INTEGER) ||
           (strcmp(tag, "bool") == 0 && kind == NODE_BOOLEAN) ||
           (strcmp(tag, "null") == 0 && kind == NODE_NULL);
}
