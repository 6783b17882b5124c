/* JSON: parsing and access. Writing is in json_write.c. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const nonfinite_names[] = {"NaN", "-Infinity", "Infinity"};

/* Length of the bare non-finite token at `at`, or 0. */
static size_t nonfinite_at(const char *at, const char *end)
{
    for (size_t i = 0; i < sizeof nonfinite_names / sizeof *nonfinite_names; i++) {
        size_t length = strlen(nonfinite_names[i]);
        if ((size_t)(end - at) >= length && memcmp(at, nonfinite_names[i], length) == 0)
            return length;
    }
    return 0;
}

/* Copies JSON text, putting quotes around bare non-finite tokens (never inside strings). */
static void nonfinite_quote(struct text *quoted, const char *text, size_t size)
{
    const char *end = text + size, *start = text;
    bool inside = false;
    for (const char *at = text; at < end;) {
        if (inside && *at == '\\' && at + 1 < end) {
            at += 2;
            continue;
        }
        if (*at == '"')
            inside = !inside;
        size_t length = inside ? 0 : nonfinite_at(at, end);
        if (!length) {
            at++;
            continue;
        }
        text_append_bytes(quoted, start, (size_t)(at - start));
        text_append(quoted, "\"");
        text_append_bytes(quoted, at, length);
        text_append(quoted, "\"");
        at += length;
        start = at;
    }
    text_append_bytes(quoted, start, (size_t)(end - start));
}

json_t *json_parse(const char *text, size_t size, struct error *err)
{
    struct text quoted;
    text_init(&quoted);
    if (memmem(text, size, "NaN", 3) || memmem(text, size, "Infinity", 8)) {
        nonfinite_quote(&quoted, text, size);
        if (quoted.failed) {
            text_release(&quoted);
            error_set(err, ERROR_MEMORY, "out of memory");
            return NULL;
        }
        text = quoted.data;
        size = quoted.size;
    }
    json_error_t reason;
    json_t *value = json_loadb(text, size, JSON_DECODE_ANY, &reason);
    if (!value)
        error_set(err, ERROR_PROTOCOL, "not JSON: line %d, column %d: %s", reason.line, reason.column,
                  reason.text);
    text_release(&quoted);
    return value;
}

json_t *json_number(double value)
{
    if (isnan(value))
        return json_string("NaN");
    if (isinf(value))
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return json_real(value);
}

bool json_number_get(const json_t *value, double *number)
{
    if (json_is_number(value)) {
        *number = json_number_value(value);
        return true;
    }
    const char *string = json_string_value(value);
    if (!string)
        return false;
    if (strcmp(string, "NaN") == 0)
        *number = (double)NAN;
    else if (strcmp(string, "Infinity") == 0)
        *number = (double)INFINITY;
    else if (strcmp(string, "-Infinity") == 0)
        *number = -(double)INFINITY;
    else
        return false;
    return true;
}

int64_t json_get_integer(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

double json_get_number(const json_t *object, const char *key, double fallback)
{
    double number;
    return json_number_get(json_object_get(object, key), &number) ? number : fallback;
}

const char *json_get_string(const json_t *object, const char *key, const char *fallback)
{
    const char *string = json_string_value(json_object_get(object, key));
    return string ? string : fallback;
}

bool json_get_boolean(const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}
