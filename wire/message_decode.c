/* JSON text to a message. Everything a peer sends is checked here, against the table: kinds, bounds, what
 * must be there. Fields the table does not know are ignored, so that a newer peer may say more. */
#include "base/files.h"
#include "wire/message.h"
#include "wire/message_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int expected(const struct field *field, const char *what, struct error *err)
{
    return error_set(err, ERROR_PROTOCOL, "%s must be %s", field->name, what);
}

static bool session_is_valid(const char *session, size_t size)
{
    return size == SESSION_SIZE - 1 && strspn(session, "0123456789abcdef") == size;
}

static int string_decode(char **member, const struct field *field, const json_t *value, struct error *err)
{
    if (!json_is_string(value)) {
        return expected(field, "text", err);
    }
    const char *string = json_string_value(value);
    size_t size = json_string_length(value);
    if (field->kind == FIELD_NAME && size > MESSAGE_NAME_LIMIT) {
        return expected(field, "at most 256 bytes", err);
    }
    if (field->kind == FIELD_NAME && field->required && size == 0) {
        return expected(field, "not empty", err);
    }
    if (field->kind == FIELD_SESSION && !session_is_valid(string, size)) {
        return expected(field, "16 lower-case hex digits", err);
    }
    if (field->kind == FIELD_HASH && !sha256_is_valid(string)) {
        return expected(field, "64 lower-case hex digits", err);
    }
    *member = malloc(size + 1);
    if (!*member) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    memcpy(*member, string, size + 1);
    return 0;
}

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= MESSAGE_INTEGER_LIMIT;
}

static int number_decode(double *member, const struct field *field, const json_t *value, struct error *err)
{
    double number;
    if (!json_is_number(value) || !isfinite(number = json_number_value(value)) || number < 0) {
        return expected(field, "a finite number of at least 0", err);
    }
    *member = number;
    return 0;
}

static int outcome_decode(enum outcome *member, const struct field *field, const json_t *value,
                          struct error *err)
{
    if (!json_is_string(value) || !outcome_parse(json_string_value(value), member) ||
        *member == OUTCOME_NONE) {
        return expected(field, "an outcome", err);
    }
    return 0;
}

static int action_decode(enum action *member, const struct field *field, const json_t *value,
                         struct error *err)
{
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    for (int i = 0; action_names[i]; i++) {
        if (strcmp(name, action_names[i]) == 0) {
            *member = i;
            return 0;
        }
    }
    return expected(field, "\"continue\" or \"stop\"", err);
}

static int metrics_check(const struct field *field, const json_t *value, struct error *err)
{
    const char *name;
    json_t *entry;
    double number;
    if (json_object_size(value) > MESSAGE_LIST_LIMIT) {
        return expected(field, "at most 100000 entries", err);
    }
    json_object_foreach((json_t *)value, name, entry)
    {
        if (strlen(name) > MESSAGE_NAME_LIMIT) {
            return expected(field, "named by at most 256 bytes", err);
        }
        if (!json_number_get(entry, &number)) {
            return error_set(err, ERROR_PROTOCOL, "%s: \"%s\" must be a number", field->name, name);
        }
    }
    return 0;
}

static int slots_check(const struct field *field, const json_t *value, struct error *err)
{
    if (!json_is_array(value) || json_array_size(value) > MESSAGE_LIST_LIMIT) {
        return expected(field, "a list of at most 100000 entries", err);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_count(json_array_get(value, i))) {
            return expected(field, "a list of integers from 0 to 2^53", err);
        }
    }
    return 0;
}

static int json_decode(json_t **member, const struct field *field, json_t *value, struct error *err)
{
    if (field->kind == FIELD_SLOTS) {
        if (slots_check(field, value, err)) {
            return -1;
        }
    } else if (field->kind != FIELD_JSON && !json_is_object(value)) {
        return expected(field, "an object", err);
    } else if (field->kind == FIELD_METRICS && metrics_check(field, value, err)) {
        return -1;
    }
    *member = json_incref(value);
    return 0;
}

static int fields_decode(char *base, const struct field *fields, const json_t *object, struct error *err);

static int list_decode(char *base, const struct field *field, const json_t *value, struct error *err)
{
    if (!json_is_array(value) || json_array_size(value) > MESSAGE_LIST_LIMIT) {
        return expected(field, "a list of at most 100000 entries", err);
    }
    size_t count = json_array_size(value);
    if (count == 0) {
        return 0;
    }
    char *entries = calloc(count, field->list->entry_size);
    if (!entries) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    /* Owned by the message from here on, so that message_release frees a half-read list. */
    *(char **)(base + field->offset) = entries;
    *(size_t *)(base + field->count_offset) = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(value, i);
        if (!json_is_object(entry)) {
            return expected(field, "a list of objects", err);
        }
        if (fields_decode(entries + i * field->list->entry_size, field->list->fields, entry, err)) {
            return error_prefix(err, "%s[%zu]", field->name, i);
        }
    }
    return 0;
}

static int value_decode(char *base, const struct field *field, json_t *value, struct error *err)
{
    void *member = base + field->offset;
    switch (field->kind) {
    case FIELD_NAME:
    case FIELD_TEXT:
    case FIELD_SESSION:
    case FIELD_HASH:
        return string_decode(member, field, value, err);
    case FIELD_INTEGER:
        if (!is_count(value)) {
            return expected(field, "an integer from 0 to 2^53", err);
        }
        *(int64_t *)member = json_integer_value(value);
        return 0;
    case FIELD_NUMBER:
        return number_decode(member, field, value, err);
    case FIELD_BOOLEAN:
        if (!json_is_boolean(value)) {
            return expected(field, "true or false", err);
        }
        *(bool *)member = json_is_true(value);
        return 0;
    case FIELD_OUTCOME:
        return outcome_decode(member, field, value, err);
    case FIELD_ACTION:
        return action_decode(member, field, value, err);
    case FIELD_LIST:
        return list_decode(base, field, value, err);
    case FIELD_OBJECT:
    case FIELD_METRICS:
    case FIELD_SLOTS:
    case FIELD_JSON:
        return json_decode(member, field, value, err);
    }
    return 0;
}

static int fields_decode(char *base, const struct field *fields, const json_t *object, struct error *err)
{
    for (const struct field *field = fields; field->name; field++) {
        json_t *value = json_object_get(object, field->name);
        if (!value || json_is_null(value)) {
            if (field->required) {
                return error_set(err, ERROR_PROTOCOL, "%s is missing", field->name);
            }
            continue;
        }
        if (value_decode(base, field, value, err)) {
            return -1;
        }
    }
    return 0;
}

static int type_decode(enum message_type *type, const json_t *object, struct error *err)
{
    const char *name = json_string_value(json_object_get(object, "type"));
    if (!name) {
        return error_set(err, ERROR_PROTOCOL, "type is missing");
    }
    for (int i = 0; i < MESSAGE_TYPE_COUNT; i++) {
        if (strcmp(name, message_layouts[i].name) == 0) {
            *type = i;
            return 0;
        }
    }
    return error_set(err, ERROR_PROTOCOL, "unknown type \"%.64s\"", name);
}

static int bytes_decode(struct message *message, const void *bytes, size_t byte_count, struct error *err)
{
    if (byte_count == 0) {
        return 0;
    }
    if (!message_layouts[message->type].binary) {
        return error_set(err, ERROR_PROTOCOL, "has no second frame");
    }
    if (byte_count > MESSAGE_BYTES_LIMIT) {
        return error_set(err, ERROR_PROTOCOL, "frame 2 is larger than %u bytes", MESSAGE_BYTES_LIMIT);
    }
    message->bytes = malloc(byte_count);
    if (!message->bytes) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    memcpy(message->bytes, bytes, byte_count);
    message->byte_count = byte_count;
    return 0;
}

static int object_decode(struct message *message, const json_t *object, const void *bytes, size_t byte_count,
                         struct error *err)
{
    if (!json_is_object(object)) {
        return error_set(err, ERROR_PROTOCOL, "a message must be a JSON object");
    }
    if (type_decode(&message->type, object, err)) {
        return -1;
    }
    const struct message_layout *layout = &message_layouts[message->type];
    if (fields_decode((char *)message, layout->fields, object, err) ||
        bytes_decode(message, bytes, byte_count, err)) {
        return error_prefix(err, "%s", layout->name);
    }
    return 0;
}

int message_decode(struct message *message, const char *json, size_t size, const void *bytes,
                   size_t byte_count, struct error *err)
{
    memset(message, 0, sizeof *message);
    if (size > MESSAGE_FRAME_LIMIT) {
        return error_set(err, ERROR_PROTOCOL, "frame 1 is larger than %u bytes", MESSAGE_FRAME_LIMIT);
    }
    json_t *object = json_parse(json, size, err);
    if (!object) {
        return -1;
    }
    int result = object_decode(message, object, bytes, byte_count, err);
    if (result) {
        message_release(message);
    }
    json_decref(object);
    return result;
}
