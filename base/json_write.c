/* JSON as text: canonical (one text for one value) and pretty (for people). */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* Objects of up to this many keys are sorted without an allocation. */
#define KEYS_INLINE 64
#define INDENT 2

static void append_string(struct text *text, const char *string, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    text_append_bytes(text, "\"", 1);
    size_t start = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)string[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        text_append_bytes(text, string + start, i - start);
        start = i + 1;
        char escape[6] = {'\\', (char)byte};
        size_t length = 2;
        switch (byte) {
        case '"':
        case '\\':
            break;
        case '\n':
            escape[1] = 'n';
            break;
        case '\r':
            escape[1] = 'r';
            break;
        case '\t':
            escape[1] = 't';
            break;
        default:
            memcpy(escape + 1, "u00", 3);
            escape[4] = hex[byte >> 4];
            escape[5] = hex[byte & 15];
            length = 6;
        }
        text_append_bytes(text, escape, length);
    }
    text_append_bytes(text, string + start, size - start);
    text_append_bytes(text, "\"", 1);
}

static void append_integer(struct text *text, json_int_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    /* As unsigned, so that the smallest integer has a magnitude. */
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        digits[--at] = '-';
    text_append_bytes(text, digits + at, sizeof digits - at);
}

static void append_real(struct text *text, double value)
{
    char number[NUMBER_SIZE];
    number_format(value, number);
    text_append(text, number);
}

/* Everything but arrays and objects; false for those. */
static bool append_scalar(struct text *text, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        append_string(text, json_string_value(value), json_string_length(value));
        return true;
    case JSON_INTEGER:
        append_integer(text, json_integer_value(value));
        return true;
    case JSON_REAL:
        append_real(text, json_real_value(value));
        return true;
    case JSON_TRUE:
        text_append_bytes(text, "true", 4);
        return true;
    case JSON_FALSE:
        text_append_bytes(text, "false", 5);
        return true;
    case JSON_NULL:
        text_append_bytes(text, "null", 4);
        return true;
    default:
        return false;
    }
}

static int compare_keys(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void append_object(struct text *text, const json_t *object)
{
    const char *inline_keys[KEYS_INLINE];
    size_t count = json_object_size(object), filled = 0;
    const char **keys = count <= KEYS_INLINE ? inline_keys : malloc(count * sizeof *keys);
    if (!keys) {
        text->failed = true;
        return;
    }
    const char *key;
    json_t *value;
    /* Iterating does not change the object; Jansson's macro is not const-correct. */
    json_object_foreach((json_t *)object, key, value) keys[filled++] = key;
    if (count > 1)
        qsort(keys, count, sizeof *keys, compare_keys);
    text_append_bytes(text, "{", 1);
    for (size_t i = 0; i < count; i++) {
        if (i)
            text_append_bytes(text, ",", 1);
        append_string(text, keys[i], strlen(keys[i]));
        text_append_bytes(text, ":", 1);
        json_append(text, json_object_get(object, keys[i]));
    }
    text_append_bytes(text, "}", 1);
    if (keys != inline_keys)
        free(keys);
}

void json_append(struct text *text, const json_t *value)
{
    if (!value) {
        text->failed = true; /* a value that could not be made: no memory */
        return;
    }
    if (append_scalar(text, value))
        return;
    if (json_is_object(value)) {
        append_object(text, value);
        return;
    }
    text_append_bytes(text, "[", 1);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i)
            text_append_bytes(text, ",", 1);
        json_append(text, json_array_get(value, i));
    }
    text_append_bytes(text, "]", 1);
}

char *json_canonical(const json_t *value)
{
    struct text text;
    text_init(&text);
    json_append(&text, value);
    return text_steal(&text);
}

static void append_line(struct text *text, int depth)
{
    text_printf(text, "\n%*s", depth * INDENT, "");
}

static void append_pretty(struct text *text, const json_t *value, int depth)
{
    if (!value) {
        text->failed = true; /* as in json_append */
        return;
    }
    if (append_scalar(text, value))
        return;
    bool is_object = json_is_object(value);
    size_t count = is_object ? json_object_size(value) : json_array_size(value);
    text_append(text, is_object ? "{" : "[");
    if (is_object) {
        const char *key;
        json_t *member;
        size_t i = 0;
        json_object_foreach((json_t *)value, key, member)
        {
            text_append(text, i++ ? "," : "");
            append_line(text, depth + 1);
            append_string(text, key, strlen(key));
            text_append(text, ": ");
            append_pretty(text, member, depth + 1);
        }
    }
    for (size_t i = 0; !is_object && i < count; i++) {
        text_append(text, i ? "," : "");
        append_line(text, depth + 1);
        append_pretty(text, json_array_get(value, i), depth + 1);
    }
    if (count)
        append_line(text, depth);
    text_append(text, is_object ? "}" : "]");
}

char *json_pretty(const json_t *value)
{
    struct text text;
    text_init(&text);
    append_pretty(&text, value, 0);
    return text_steal(&text);
}
