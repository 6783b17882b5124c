/* Bytes in and out. They are confirmed in order on both ways; whatever is lost is asked for again from the
 * first byte not confirmed. */
#include "worker/transfer_private.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OUTSTANDING_LIMIT 4 /* of the protocol */
#define HASH_STEP (4 << 20) /* bytes hashed in one turn: about 10 ms */
#define REPEAT_NS (5 * NS_PER_SECOND)
#define RESTART_LIMIT                                                                                        \
    10 /* beginnings without getting further, before it is given up: lost answers cost some */
#define DELAY_NS NS_PER_SECOND /* of an upload for which there is no room, doubled each time */
#define DELAYS_LIMIT 5         /* doublings: 32 s */

void transfer_hash_piece(struct transfer *transfer, char *buffer)
{
    for (int64_t piece = 0; piece < HASH_STEP; piece += CHUNK_SIZE) {
        ssize_t count = pread(transfer->fd, buffer, CHUNK_SIZE, transfer->confirmed);
        if (count < 0) {
            transfer_fail(transfer, ERROR_RESOURCE, "upload", strerror(errno));
            return;
        }
        sha256_add(&transfer->hash, buffer, (size_t)count);
        transfer->confirmed += count;
        if (transfer->confirmed >= transfer->size || count == 0) {
            transfer->size = transfer->confirmed;
            sha256_finish(&transfer->hash, transfer->sha256);
            transfer_begin(transfer);
            return;
        }
    }
}

/* The first moving transfer of this blob: two of one blob go one after the other, since answers name the blob
 * only. */
static struct transfer *transfers_find(struct transfers *transfers, const char *sha256, bool upload)
{
    for (size_t i = 0; sha256 && i < transfers->count; i++) {
        struct transfer *transfer = transfers->list[i];
        if (transfer->state == TRANSFER_MOVING && transfer->upload == upload &&
            strcmp(transfer->sha256, sha256) == 0) {
            return transfer;
        }
    }
    return NULL;
}

static void transfer_publish(struct transfer *transfer)
{
    char hex[SHA256_TEXT];
    sha256_finish(&transfer->hash, hex);
    if (strcmp(hex, transfer->sha256) != 0) {
        if (++transfer->restarts > RESTART_LIMIT) {
            transfer_fail(transfer, ERROR_PROTOCOL, "fetch",
                          "the bytes received do not have the blob's hash");
            return;
        }
        transfer_begin(transfer);
        return;
    }
    if (ftruncate(transfer->fd, transfer->size) != 0 || (transfer->durable && fsync(transfer->fd) != 0) ||
        rename(transfer->partial, transfer->path) != 0) {
        transfer_fail(transfer, ERROR_RESOURCE, "fetch", strerror(errno));
        return;
    }
    transfer_succeed(transfer);
}

static void transfers_take_chunk(struct transfers *transfers, const struct message *message, int64_t now_ns)
{
    struct transfer *transfer = transfers_find(transfers, message->checkpoint, false);
    int64_t count = (int64_t)message->byte_count;
    if (!transfer || message->offset != transfer->confirmed || message->offset + count > message->size ||
        (count == 0 && message->size != transfer->confirmed)) {
        return; /* an answer to a question asked twice, or nonsense: asked again after REPEAT_NS */
    }
    ssize_t written = pwrite(transfer->fd, message->bytes, message->byte_count, message->offset);
    if (written != count) {
        transfer_fail(transfer, ERROR_RESOURCE, "fetch", written < 0 ? strerror(errno) : "the disk is full");
        return;
    }
    if (count > 0) {
        sha256_add(&transfer->hash, message->bytes, message->byte_count);
    }
    transfer->size = message->size;
    transfer->confirmed += count;
    transfer->next = transfer->next > transfer->confirmed ? transfer->next : transfer->confirmed;
    transfer->outstanding -= transfer->outstanding > 0;
    transfer->progress_ns = now_ns;
    if (transfer->confirmed == transfer->size) {
        transfer_publish(transfer);
    }
}

static void transfers_take_stored(struct transfers *transfers, const struct message *message, int64_t now_ns)
{
    struct transfer *transfer = transfers_find(transfers, message->checkpoint, true);
    if (!transfer || message->offset < transfer->confirmed) {
        return;
    }
    transfer->outstanding -= transfer->outstanding > 0;
    transfer->progress_ns = now_ns;
    transfer->delays = 0;
    transfer->confirmed = message->offset < transfer->size ? message->offset : transfer->size;
    if (transfer->confirmed > transfer->furthest) {
        transfer->furthest = transfer->confirmed; /* a lossy way, not one that leads nowhere */
        transfer->restarts = 0;
    }
    transfer->next = transfer->next > transfer->confirmed ? transfer->next : transfer->confirmed;
    if (message->offset >= transfer->size) {
        transfer_succeed(transfer);
    }
}

/* The file is kept, and the coordinator's disk may have room again. */
static void transfer_delay(struct transfer *transfer, int64_t now_ns)
{
    transfer_begin(transfer);
    transfer->progress_ns = now_ns;
    transfer->resume_ns = now_ns + (DELAY_NS << transfer->delays);
    transfer->delays += transfer->delays < DELAYS_LIMIT;
}

static void transfers_take_error(struct transfers *transfers, const struct message *message, int64_t now_ns)
{
    struct transfer *transfer = transfers_find(transfers, message->checkpoint, false);
    if (transfer && message->code && strcmp(message->code, "not_found") == 0) {
        transfer_fail(transfer, ERROR_PROTOCOL, "fetch", "the coordinator does not have this blob");
        return;
    }
    if (!transfer) {
        transfer = transfers_find(transfers, message->checkpoint, true);
    }
    if (!transfer) {
        return;
    }
    if (transfer->outstanding > 1) {
        transfer->outstanding--; /* the pieces behind a refused one are refused too: one beginning for all of
                                    them */
        return;
    }
    if (transfer->upload && message->code && strcmp(message->code, "unavailable") == 0) {
        transfer_delay(transfer, now_ns);
        return;
    }
    if (++transfer->restarts > RESTART_LIMIT) {
        transfer_fail(transfer, ERROR_PROTOCOL, transfer->upload ? "upload" : "fetch",
                      message->error ? message->error : "refused by the coordinator");
        return;
    }
    transfer_begin(transfer);
    transfer->progress_ns = now_ns;
}

void transfers_receive(struct transfers *transfers, int64_t now_ns)
{
    struct message message;
    int result;
    while ((result = endpoint_receive(transfers->endpoint, NULL, &message, NULL)) != 0) {
        if (result < 0) {
            continue; /* malformed: as if lost */
        }
        if (message.checkpoint && !transfers_find(transfers, message.checkpoint, false) &&
            !transfers_find(transfers, message.checkpoint, true)) {
            transfers->abandoned -= transfers->abandoned > 0;
        }
        if (message.type == MESSAGE_CHUNK) {
            transfers_take_chunk(transfers, &message, now_ns);
        } else if (message.type == MESSAGE_STORED) {
            transfers_take_stored(transfers, &message, now_ns);
        } else if (message.type == MESSAGE_ERROR) {
            transfers_take_error(transfers, &message, now_ns);
        }
        message_release(&message);
    }
}

/* Whether this transfer has a request to send now. A fetch asks for its first piece alone: the size comes
 * with it. */
static bool transfer_wants(const struct transfer *transfer, int64_t now_ns)
{
    if (transfer->state != TRANSFER_MOVING || now_ns < transfer->resume_ns) {
        return false;
    }
    if (transfer->next == 0) {
        return transfer->outstanding == 0;
    }
    return transfer->next < transfer->size;
}

static int transfers_send(struct transfers *transfers, struct transfer *transfer)
{
    struct message message;
    message_init(&message, transfer->upload ? MESSAGE_PUT : MESSAGE_FETCH);
    message.checkpoint = transfer->sha256;
    message.offset = transfer->next;
    if (transfer->upload) {
        message.size = transfer->size;
        ssize_t count = pread(transfer->fd, transfers->buffer, CHUNK_SIZE, transfer->next);
        if (count < 0) {
            transfer_fail(transfer, ERROR_RESOURCE, "upload", strerror(errno));
            return 0;
        }
        message.bytes = transfers->buffer;
        message.byte_count = (size_t)count;
    }
    if (endpoint_send(transfers->endpoint, NULL, &message, NULL) != 0) {
        return -1;
    }
    transfer->outstanding++;
    transfer->next += CHUNK_SIZE;
    return 0;
}

void transfers_pump(struct transfers *transfers, int64_t now_ns)
{
    if (now_ns - transfers->abandoned_ns >= REPEAT_NS) {
        transfers->abandoned = 0; /* lost */
    }
    int outstanding = transfers->abandoned;
    for (size_t i = 0; i < transfers->count; i++) {
        struct transfer *transfer = transfers->list[i];
        if (transfer->outstanding > 0 && now_ns - transfer->progress_ns >= REPEAT_NS) {
            transfer->next = transfer->confirmed;
            transfer->outstanding = 0;
        }
        outstanding += transfer->outstanding;
    }
    for (size_t i = 0; i < transfers->count; i++) {
        struct transfer *transfer = transfers->list[i];
        while (outstanding < OUTSTANDING_LIMIT && transfer_wants(transfer, now_ns) &&
               transfers_find(transfers, transfer->sha256, transfer->upload) == transfer) {
            if (transfer->outstanding == 0) {
                transfer->progress_ns = now_ns;
            }
            if (transfers_send(transfers, transfer) != 0) {
                return; /* the queue is full: there is another turn */
            }
            outstanding++;
        }
    }
}
