/* A message as JSON text, written straight from the table. */
#include "base/text.h"
#include "wire/message.h"
#include "wire/message_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Room a typical message needs: one allocation for nearly all of them. */
#define FIRST_CAPACITY 512

static void append_integer(struct text *text, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    text_append_bytes(text, digits + at, sizeof digits - at);
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\';
}

static void append_escape(struct text *text, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    if (byte == '"' || byte == '\\') {
        char pair[2] = {'\\', (char)byte};
        text_append_bytes(text, pair, sizeof pair);
        return;
    }
    char code[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    text_append_bytes(text, code, sizeof code);
}

static void append_escaped(struct text *text, const char *string)
{
    text_append_bytes(text, "\"", 1);
    for (const char *at = string; *at != '\0';) {
        const char *end = at;
        while (*end != '\0' && is_plain((unsigned char)*end)) {
            end++;
        }
        text_append_bytes(text, at, (size_t)(end - at));
        if (*end != '\0') {
            append_escape(text, (unsigned char)*end++);
        }
        at = end;
    }
    text_append_bytes(text, "\"", 1);
}

/* Text from programs may be cut inside a character; a reader would refuse the whole message for it. */
static void append_string(struct text *text, const char *string)
{
    const char *byte = string;
    while (*byte != '\0' && (unsigned char)*byte < 0x80) {
        byte++;
    }
    if (*byte == '\0') {
        append_escaped(text, string);
        return;
    }
    char *repaired = utf8_repair(string, strlen(string));
    if (!repaired) {
        text->failed = true;
        return;
    }
    append_escaped(text, repaired);
    free(repaired);
}

/* Whether an optional field has nothing to say. */
static bool field_is_empty(const struct field *field, const char *base)
{
    const void *member = base + field->offset;
    switch (field->kind) {
    case FIELD_INTEGER:
        return *(const int64_t *)member == 0;
    case FIELD_NUMBER:
        return *(const double *)member == 0;
    case FIELD_BOOLEAN:
        return !*(const bool *)member;
    case FIELD_OUTCOME:
        return *(const enum outcome *)member == OUTCOME_NONE;
    case FIELD_ACTION:
        return false;
    case FIELD_LIST:
        return *(const size_t *)(base + field->count_offset) == 0;
    default:
        return *(void *const *)member == NULL;
    }
}

static int fields_encode(struct text *text, const struct field *fields, const char *base, bool first,
                         struct error *err);

static int list_encode(struct text *text, const struct field *field, const char *base, struct error *err)
{
    const char *entries = *(char *const *)(base + field->offset);
    size_t count = *(const size_t *)(base + field->count_offset);
    text_append_bytes(text, "[", 1);
    for (size_t i = 0; i < count; i++) {
        text_append(text, i == 0 ? "{" : ",{");
        if (fields_encode(text, field->list->fields, entries + i * field->list->entry_size, true, err)) {
            return error_prefix(err, "%s", field->name);
        }
        text_append_bytes(text, "}", 1);
    }
    text_append_bytes(text, "]", 1);
    return 0;
}

static int number_encode(struct text *text, const struct field *field, double value, struct error *err)
{
    if (!isfinite(value) || value < 0) {
        return error_set(err, ERROR_PROTOCOL, "%s must be a finite number of at least 0", field->name);
    }
    char digits[NUMBER_SIZE];
    text_append(text, number_format(value, digits));
    return 0;
}

/* What a reader would refuse is never sent: it would be lost silently, and repeated for ever. */
static int integer_encode(struct text *text, const struct field *field, int64_t value, struct error *err)
{
    if (value < 0 || value > MESSAGE_INTEGER_LIMIT) {
        return error_set(err, ERROR_PROTOCOL, "%s is %lld, not an integer from 0 to 2^53", field->name,
                         (long long)value);
    }
    append_integer(text, value);
    return 0;
}

static int name_encode(struct text *text, const struct field *field, const char *name, struct error *err)
{
    if (strlen(name) > MESSAGE_NAME_LIMIT) {
        return error_set(err, ERROR_PROTOCOL, "%s is longer than %d bytes", field->name, MESSAGE_NAME_LIMIT);
    }
    append_string(text, name);
    return 0;
}

static int value_encode(struct text *text, const struct field *field, const char *base, struct error *err)
{
    const void *member = base + field->offset;
    switch (field->kind) {
    case FIELD_NAME:
        return name_encode(text, field, *(char *const *)member, err);
    case FIELD_TEXT:
    case FIELD_SESSION:
    case FIELD_HASH:
        append_string(text, *(char *const *)member);
        return 0;
    case FIELD_INTEGER:
        return integer_encode(text, field, *(const int64_t *)member, err);
    case FIELD_NUMBER:
        return number_encode(text, field, *(const double *)member, err);
    case FIELD_BOOLEAN:
        text_append(text, *(const bool *)member ? "true" : "false");
        return 0;
    case FIELD_OUTCOME:
        append_string(text, outcome_name(*(const enum outcome *)member));
        return 0;
    case FIELD_ACTION:
        append_string(text, action_names[*(const enum action *)member == ACTION_STOP]);
        return 0;
    case FIELD_LIST:
        return list_encode(text, field, base, err);
    case FIELD_OBJECT:
    case FIELD_METRICS:
    case FIELD_SLOTS:
    case FIELD_JSON:
        json_append(text, *(json_t *const *)member);
        return 0;
    }
    return 0;
}

/* A required field that an empty member cannot express: pointers, and an outcome. */
static bool field_needs_value(const struct field *field)
{
    return field->kind != FIELD_INTEGER && field->kind != FIELD_NUMBER && field->kind != FIELD_BOOLEAN &&
           field->kind != FIELD_ACTION && field->kind != FIELD_LIST;
}

static int fields_encode(struct text *text, const struct field *fields, const char *base, bool first,
                         struct error *err)
{
    for (const struct field *field = fields; field->name; field++) {
        bool empty = field_is_empty(field, base);
        if (empty && !field->required) {
            continue;
        }
        if (empty && field_needs_value(field)) {
            return error_set(err, ERROR_PROTOCOL, "%s is missing", field->name);
        }
        text_append(text, first ? "\"" : ",\"");
        first = false;
        text_append(text, field->name);
        text_append_bytes(text, "\":", 2);
        if (value_encode(text, field, base, err)) {
            return -1;
        }
    }
    return 0;
}

char *message_encode(const struct message *message, size_t *size, struct error *err)
{
    if ((unsigned)message->type >= MESSAGE_TYPE_COUNT) {
        error_set(err, ERROR_PROTOCOL, "encode: unknown message type %d", (int)message->type);
        return NULL;
    }
    const struct message_layout *layout = &message_layouts[message->type];
    struct text text;
    text_init(&text);
    text.data = malloc(FIRST_CAPACITY);
    text.capacity = text.data ? FIRST_CAPACITY : 0;
    text_append(&text, "{\"type\":\"");
    text_append(&text, layout->name);
    text_append_bytes(&text, "\"", 1);
    if (fields_encode(&text, layout->fields, (const char *)message, false, err)) {
        error_prefix(err, "encode %s", layout->name);
        text_release(&text);
        return NULL;
    }
    text_append_bytes(&text, "}", 1);
    if (!text.failed && text.size > MESSAGE_FRAME_LIMIT) {
        error_set(err, ERROR_PROTOCOL, "encode %s: larger than %u bytes", layout->name, MESSAGE_FRAME_LIMIT);
        text_release(&text);
        return NULL;
    }
    *size = text.size;
    char *json = text_steal(&text);
    if (!json) {
        error_set(err, ERROR_MEMORY, "encode %s: out of memory", layout->name);
    }
    return json;
}
