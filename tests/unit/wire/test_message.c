/* Messages: every type makes the round trip with random contents, and damaged ones never crash. */
#include "base/random.h"
#include "wire/message.h"
#include "wire/message_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static uint64_t seed;
static uint32_t drawn;

static uint64_t draw(uint64_t bound)
{
    return random_below(seed, drawn++, 1, 0, bound);
}

static char *draw_string(size_t limit)
{
    static const char *const pieces[] = {
        "a", "Z", "\"", "\\", "\n", "\x01", " ", "\xc3\xa9", "\xf0\x9f\x98\x80", "/", "{"};
    char text[MESSAGE_NAME_LIMIT + 8] = "x";
    size_t size = 1;
    for (size_t i = draw(limit); i > 0 && size + 4 < limit; i--) {
        size += (size_t)sprintf(text + size, "%s", pieces[draw(sizeof pieces / sizeof *pieces)]);
    }
    return strdup(text);
}

static char *draw_hex(size_t digits)
{
    char *hex = calloc(1, digits + 1);
    for (size_t i = 0; i < digits; i++) {
        hex[i] = "0123456789abcdef"[draw(16)];
    }
    return hex;
}

static double draw_number(void)
{
    return random_unit(seed, drawn++, 2, 0) * pow(10, (double)draw(40) - 20);
}

static json_t *draw_object(bool metrics)
{
    json_t *object = json_object();
    for (uint64_t i = draw(4); i > 0; i--) {
        char name[32];
        snprintf(name, sizeof name, "key_%d", (int)draw(100));
        uint64_t kind = draw(metrics ? 3 : 5);
        json_t *value = kind == 0   ? json_number(draw_number())
                        : kind == 1 ? json_integer((json_int_t)draw(1000))
                        : kind == 2 ? json_number(draw(2) ? NAN : -INFINITY)
                        : kind == 3 ? json_pack("[b, n]", 1)
                                    : json_pack("{s: {s: s}}", "a", "b", "\xc3\xbc");
        json_object_set_new(object, name, value);
    }
    return object;
}

static void fields_fill(char *base, const struct field *fields);

static void list_fill(char *base, const struct field *field)
{
    size_t count = draw(4);
    char *entries = count > 0 ? calloc(count, field->list->entry_size) : NULL;
    *(char **)(base + field->offset) = entries;
    *(size_t *)(base + field->count_offset) = count;
    for (size_t i = 0; i < count; i++) {
        fields_fill(entries + i * field->list->entry_size, field->list->fields);
    }
}

static void field_fill(char *base, const struct field *field)
{
    void *member = base + field->offset;
    switch (field->kind) {
    case FIELD_NAME:
    case FIELD_TEXT:
        *(char **)member = draw_string(MESSAGE_NAME_LIMIT);
        break;
    case FIELD_SESSION:
        *(char **)member = draw_hex(16);
        break;
    case FIELD_HASH:
        *(char **)member = draw_hex(64);
        break;
    case FIELD_INTEGER:
        *(int64_t *)member = (int64_t)(draw(2) ? draw(100) : draw(MESSAGE_INTEGER_LIMIT + 1));
        break;
    case FIELD_NUMBER:
        *(double *)member = draw_number();
        break;
    case FIELD_BOOLEAN:
        *(bool *)member = draw(2);
        break;
    case FIELD_OUTCOME:
        *(enum outcome *)member = 1 + (enum outcome)draw(OUTCOME_COUNT - 1);
        break;
    case FIELD_ACTION:
        *(enum action *)member = (enum action)draw(2);
        break;
    case FIELD_LIST:
        list_fill(base, field);
        break;
    case FIELD_SLOTS:
        *(json_t **)member = json_pack("[i, i]", (int)draw(9), (int)draw(9));
        break;
    case FIELD_OBJECT:
    case FIELD_JSON:
    case FIELD_METRICS:
        *(json_t **)member = draw_object(field->kind == FIELD_METRICS);
        break;
    }
}

static void fields_fill(char *base, const struct field *fields)
{
    for (const struct field *field = fields; field->name; field++) {
        if (field->required || draw(3) > 0) {
            field_fill(base, field);
        }
    }
}

static void string_compare(const char *a, const char *b)
{
    if (a || b) {
        assert_non_null(a);
        assert_non_null(b);
        assert_string_equal(a, b);
    }
}

static void fields_compare(const char *a, const char *b, const struct field *fields);

static void list_compare(const char *a, const char *b, const struct field *field)
{
    size_t count = *(const size_t *)(a + field->count_offset);
    assert_int_equal(*(const size_t *)(b + field->count_offset), count);
    for (size_t i = 0; i < count; i++) {
        size_t at = i * field->list->entry_size;
        fields_compare(*(char *const *)(a + field->offset) + at, *(char *const *)(b + field->offset) + at,
                       field->list->fields);
    }
}

static void field_compare(const char *a, const char *b, const struct field *field)
{
    const void *x = a + field->offset, *y = b + field->offset;
    switch (field->kind) {
    case FIELD_NAME:
    case FIELD_TEXT:
    case FIELD_SESSION:
    case FIELD_HASH:
        string_compare(*(char *const *)x, *(char *const *)y);
        break;
    case FIELD_INTEGER:
        assert_int_equal(*(const int64_t *)x, *(const int64_t *)y);
        break;
    case FIELD_NUMBER:
        assert_memory_equal(x, y, sizeof(double));
        break;
    case FIELD_BOOLEAN:
        assert_int_equal(*(const bool *)x, *(const bool *)y);
        break;
    case FIELD_OUTCOME:
        assert_int_equal(*(const enum outcome *)x, *(const enum outcome *)y);
        break;
    case FIELD_ACTION:
        assert_int_equal(*(const enum action *)x, *(const enum action *)y);
        break;
    case FIELD_LIST:
        list_compare(a, b, field);
        break;
    case FIELD_SLOTS:
    case FIELD_OBJECT:
    case FIELD_JSON:
    case FIELD_METRICS: {
        char *left = json_canonical(*(json_t *const *)x), *right = json_canonical(*(json_t *const *)y);
        string_compare(left, right);
        free(left);
        free(right);
        break;
    }
    }
}

static void fields_compare(const char *a, const char *b, const struct field *fields)
{
    for (const struct field *field = fields; field->name; field++) {
        field_compare(a, b, field);
    }
}

static void round_trip(enum message_type type)
{
    struct message sent, got;
    struct error err = {0};
    size_t size;
    message_init(&sent, type);
    fields_fill((char *)&sent, message_layouts[type].fields);
    if (message_layouts[type].binary) {
        sent.byte_count = draw(1000);
        sent.bytes = calloc(1, sent.byte_count + 1);
    }
    char *json = message_encode(&sent, &size, &err);
    if (!json) {
        fail_msg("%s: %s", message_type_name(type), err.message);
    }
    assert_int_equal(strlen(json), size);
    if (message_decode(&got, json, size, sent.bytes, sent.byte_count, &err)) {
        fail_msg("%s: %s: %s", message_type_name(type), err.message, json);
    }
    assert_int_equal(got.type, type);
    fields_compare((char *)&sent, (char *)&got, message_layouts[type].fields);
    assert_int_equal(got.byte_count, sent.byte_count);
    free(json);
    message_release(&sent);
    message_release(&got);
}

static void every_type_makes_the_round_trip(void **state)
{
    (void)state;
    for (int type = 0; type < MESSAGE_TYPE_COUNT; type++) {
        for (int i = 0; i < 60; i++) {
            round_trip(type);
        }
    }
}

/* Whatever is cut or changed in a valid message, decoding ends with a message or an error. */
static void damaged_messages_never_crash(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++) {
        struct message message, got;
        struct error err = {0};
        size_t size;
        enum message_type type = draw(MESSAGE_TYPE_COUNT);
        message_init(&message, type);
        fields_fill((char *)&message, message_layouts[type].fields);
        char *json = message_encode(&message, &size, &err);
        assert_non_null(json);
        for (uint64_t n = 1 + draw(3); n > 0; n--) {
            json[draw(size)] = (char)draw(256);
        }
        if (message_decode(&got, json, draw(4) ? size : draw(size), NULL, 0, &err)) {
            assert_int_equal(err.code, ERROR_PROTOCOL);
            assert_true(err.message[0] != '\0');
        } else {
            message_release(&got);
        }
        free(json);
        message_release(&message);
    }
}

int main(void)
{
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_makes_the_round_trip),
        cmocka_unit_test(damaged_messages_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
