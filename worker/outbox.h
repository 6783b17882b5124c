/* What one attempt has to tell the coordinator: reports and the end, numbered from 1, kept until the
 * cumulative acknowledge, sent again from the first unacknowledged. Knows no socket: the agent asks what to
 * send now. */
#ifndef RUNG_WORKER_OUTBOX_H
#define RUNG_WORKER_OUTBOX_H

#include "base/error.h"
#include "wire/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In flight at once. A long separation leaves thousands of reports: they go out window by window, at the pace
 * of the acknowledges, and a repeat never sends more than this. */
#define OUTBOX_WINDOW 64
#define OUTBOX_REPEAT_NS                                                                                     \
    (2 * 1000000000LL) /* without an acknowledge for this long, the window is sent again */

struct outbox {
    struct message *entries; /* entries[first ...], owned; sequence of entries[first] is acknowledged + 1 */
    size_t first, count, capacity;
    int64_t last;         /* the newest number given out; 0: none */
    int64_t acknowledged; /* everything up to it */
    int64_t sent;         /* everything up to it was sent in this session */
    int64_t progress_ns;  /* when something was first sent or last acknowledged */
};

void outbox_init(struct outbox *outbox);
void outbox_release(struct outbox *outbox);
/* Takes the message (emptied), gives it the next number. On -1 (ERROR_MEMORY) it still belongs to the caller.
 */
int outbox_append(struct outbox *outbox, struct message *message, struct error *err);
/* Cumulative; numbers never given out, and old ones, are ignored. */
void outbox_acknowledge(struct outbox *outbox, int64_t sequence, int64_t now_ns);
bool outbox_is_empty(const struct outbox *outbox); /* all acknowledged */
/* The next message to send now (borrowed until the next call), or NULL; say outbox_sent when it was taken. */
const struct message *outbox_next(struct outbox *outbox, int64_t now_ns);
void outbox_sent(struct outbox *outbox, int64_t now_ns);
/* Send everything unacknowledged again: the session is new. */
void outbox_rewind(struct outbox *outbox);

#endif
