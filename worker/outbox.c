/* Numbered messages of one attempt until they are acknowledged. */
#include "worker/outbox.h"

#include <stdlib.h>
#include <string.h>

void outbox_init(struct outbox *outbox)
{
    memset(outbox, 0, sizeof *outbox);
}

void outbox_release(struct outbox *outbox)
{
    for (size_t i = 0; i < outbox->count; i++) {
        message_release(&outbox->entries[outbox->first + i]);
    }
    free(outbox->entries);
    outbox_init(outbox);
}

static int outbox_reserve(struct outbox *outbox, struct error *err)
{
    if (outbox->first + outbox->count < outbox->capacity) {
        return 0;
    }
    if (outbox->first > outbox->capacity / 2) {
        memmove(outbox->entries, outbox->entries + outbox->first, outbox->count * sizeof *outbox->entries);
        outbox->first = 0;
        return 0;
    }
    size_t capacity = outbox->capacity ? 2 * outbox->capacity : 8;
    struct message *entries = realloc(outbox->entries, capacity * sizeof *entries);
    if (!entries) {
        return error_set(err, ERROR_MEMORY, "no memory to keep a report");
    }
    outbox->entries = entries;
    outbox->capacity = capacity;
    return 0;
}

int outbox_append(struct outbox *outbox, struct message *message, struct error *err)
{
    if (outbox_reserve(outbox, err) != 0) {
        return -1;
    }
    message->sequence = ++outbox->last;
    outbox->entries[outbox->first + outbox->count++] = *message;
    message_init(message, message->type);
    return 0;
}

void outbox_acknowledge(struct outbox *outbox, int64_t sequence, int64_t now_ns)
{
    if (sequence <= outbox->acknowledged || sequence > outbox->last) {
        return;
    }
    while (outbox->acknowledged < sequence) {
        message_release(&outbox->entries[outbox->first]);
        outbox->first++;
        outbox->count--;
        outbox->acknowledged++;
    }
    if (outbox->count == 0) {
        outbox->first = 0;
    }
    if (outbox->sent < sequence) {
        outbox->sent = sequence; /* of an earlier session */
    }
    outbox->progress_ns = now_ns;
}

bool outbox_is_empty(const struct outbox *outbox)
{
    return outbox->count == 0;
}

const struct message *outbox_next(struct outbox *outbox, int64_t now_ns)
{
    if (outbox->sent > outbox->acknowledged && now_ns - outbox->progress_ns >= OUTBOX_REPEAT_NS) {
        outbox_rewind(outbox);
    }
    if (outbox->sent == outbox->last || outbox->sent - outbox->acknowledged >= OUTBOX_WINDOW) {
        return NULL;
    }
    return &outbox->entries[outbox->first + (size_t)(outbox->sent - outbox->acknowledged)];
}

void outbox_sent(struct outbox *outbox, int64_t now_ns)
{
    if (outbox->sent == outbox->acknowledged) {
        outbox->progress_ns = now_ns; /* the wait for an answer begins with the first in flight */
    }
    outbox->sent++;
}

void outbox_rewind(struct outbox *outbox)
{
    outbox->sent = outbox->acknowledged;
}
