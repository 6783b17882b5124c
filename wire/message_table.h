/* The one table of the protocol: what each message holds, where it lives in struct message, and what it
 * means. Encoder, decoder and documentation all walk it; nothing else knows a field's name. Internal to
 * wire/. */
#ifndef RUNG_WIRE_MESSAGE_TABLE_H
#define RUNG_WIRE_MESSAGE_TABLE_H

#include "wire/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_FRAME_LIMIT (16u << 20)   /* bytes of frame 1 */
#define MESSAGE_BYTES_LIMIT (4u << 20)    /* bytes of frame 2: a chunk is 1 MiB */
#define MESSAGE_LIST_LIMIT 100000         /* entries of one list */
#define MESSAGE_NAME_LIMIT 256            /* bytes of one name */
#define MESSAGE_INTEGER_LIMIT (1LL << 53) /* what every language's JSON reads exactly */

enum field_kind {
    FIELD_NAME,    /* char *: at most MESSAGE_NAME_LIMIT bytes; not empty where required */
    FIELD_TEXT,    /* char *: any length a frame has room for */
    FIELD_SESSION, /* char *: 16 hex digits */
    FIELD_HASH,    /* char *: 64 hex digits */
    FIELD_INTEGER, /* int64_t, 0..MESSAGE_INTEGER_LIMIT */
    FIELD_NUMBER,  /* double, finite, >= 0 */
    FIELD_BOOLEAN, /* bool */
    FIELD_OUTCOME, /* enum outcome, any but OUTCOME_NONE */
    FIELD_ACTION,  /* enum action */
    FIELD_OBJECT,  /* json_t *: an object */
    FIELD_METRICS, /* json_t *: an object of numbers, non-finite ones as text */
    FIELD_SLOTS,   /* json_t *: an array of integers */
    FIELD_JSON,    /* json_t *: anything */
    FIELD_LIST,    /* a heap array of structs, and its size_t count */
};

struct field_list;

struct field {
    const char *name; /* on the wire; NULL ends a table */
    enum field_kind kind;
    bool required;                 /* else it may be absent (or null), which reads as zero, false or NULL */
    size_t offset;                 /* in struct message, or in the entry of a list */
    size_t count_offset;           /* FIELD_LIST */
    const struct field_list *list; /* FIELD_LIST */
    const char *help;
};

/* What one entry of a list looks like. */
struct field_list {
    size_t entry_size;
    const struct field *fields;
};

struct message_layout {
    const char *name;
    const char *direction;
    const char *help;
    const struct field *fields;
    bool binary; /* frame 2 may follow */
};

extern const struct message_layout message_layouts[MESSAGE_TYPE_COUNT];
extern const char *const action_names[]; /* NULL-terminated, by enum action */

#endif
