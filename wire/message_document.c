/* The tables as Markdown, for docs/protocol.md. */
#include "base/text.h"
#include "wire/message.h"
#include "wire/message_table.h"

static const char *kind_name(enum field_kind kind)
{
    switch (kind) {
    case FIELD_NAME:
        return "name";
    case FIELD_TEXT:
        return "text";
    case FIELD_SESSION:
        return "16 hex digits";
    case FIELD_HASH:
        return "64 hex digits";
    case FIELD_INTEGER:
        return "integer";
    case FIELD_NUMBER:
        return "number";
    case FIELD_BOOLEAN:
        return "boolean";
    case FIELD_OUTCOME:
        return "outcome";
    case FIELD_ACTION:
        return "`continue` or `stop`";
    case FIELD_OBJECT:
        return "object";
    case FIELD_METRICS:
        return "object of numbers";
    case FIELD_SLOTS:
        return "list of integers";
    case FIELD_JSON:
        return "any JSON";
    case FIELD_LIST:
        return "list";
    }
    return "";
}

static void fields_document(struct text *text, const char *prefix, const struct field *fields)
{
    for (const struct field *field = fields; field->name; field++) {
        text_printf(text, "| `%s%s` | %s | %s | %s |\n", prefix, field->name, kind_name(field->kind),
                    field->required ? "yes" : "", field->help);
        if (field->kind == FIELD_LIST) {
            struct text inner;
            text_init(&inner);
            text_printf(&inner, "%s[].", field->name);
            fields_document(text, inner.data ? inner.data : "", field->list->fields);
            text_release(&inner);
        }
    }
}

char *message_document(void)
{
    struct text text;
    text_init(&text);
    for (int i = 0; i < MESSAGE_TYPE_COUNT; i++) {
        const struct message_layout *layout = &message_layouts[i];
        text_printf(&text, "%s### `%s`\n\n%s. %s\n", i == 0 ? "" : "\n", layout->name, layout->direction,
                    layout->help);
        if (layout->fields->name) {
            text_append(&text, "\n| field | kind | required | meaning |\n|---|---|---|---|\n");
            fields_document(&text, "", layout->fields);
        }
    }
    return text_steal(&text);
}
