/* The queue of transfers. A transfer is `hashing` (uploads: the name of a blob is its hash), then `moving`,
 * then `over`. Bytes are confirmed in order on both ways; whatever is lost is asked for again from the first
 * byte not confirmed. */
#include "worker/transfer.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_SIZE (1 << 20) /* of the protocol */
#define OUTSTANDING_LIMIT 4  /* of the protocol */
#define HASH_STEP (4 << 20)  /* bytes hashed in one turn: about 10 ms */
#define REPEAT_NS (5 * NS_PER_SECOND)
#define RESTART_LIMIT 3 /* beginnings after a refusal, before it is given up */

enum transfer_state { TRANSFER_HASHING, TRANSFER_MOVING, TRANSFER_OVER };

struct transfer {
    uint64_t id;
    bool upload, durable, succeeded;
    enum transfer_state state;
    char sha256[SHA256_TEXT];
    char *path, *partial; /* partial: fetches only */
    int fd;               /* of path (upload) or partial */
    int64_t size;         /* -1: not known yet */
    int64_t confirmed;    /* bytes hashed (hashing), stored (upload) or written (fetch) */
    int64_t next;         /* first byte not yet asked for or sent */
    int outstanding, restarts;
    int64_t progress_ns;
    crypto_hash_sha256_state hash;
    struct error error;
};

struct transfers {
    struct bus *bus;
    struct endpoint *endpoint;
    struct transfer **list; /* in the order asked for */
    size_t count, capacity;
    uint64_t last_id;
    int abandoned; /* requests of cancelled transfers, still to be answered */
    int64_t abandoned_ns, now_ns;
    char buffer[CHUNK_SIZE];
};

struct transfers *transfers_create(struct bus *bus, struct error *err)
{
    struct transfers *transfers = calloc(1, sizeof *transfers);
    if (!transfers) {
        error_set(err, ERROR_MEMORY, "blobs: no memory");
        return NULL;
    }
    transfers->bus = bus;
    return transfers;
}

static void transfer_close(struct transfer *transfer)
{
    if (transfer->fd >= 0) {
        close(transfer->fd);
        transfer->fd = -1;
    }
}

static void transfer_destroy(struct transfer *transfer)
{
    transfer_close(transfer);
    if (transfer->partial && !transfer->succeeded) {
        unlink(transfer->partial);
    }
    free(transfer->path);
    free(transfer->partial);
    free(transfer);
}

void transfers_destroy(struct transfers *transfers)
{
    if (!transfers) {
        return;
    }
    for (size_t i = 0; i < transfers->count; i++) {
        transfer_destroy(transfers->list[i]);
    }
    free(transfers->list);
    endpoint_destroy(transfers->endpoint);
    free(transfers);
}

/* Begins the moving (again), with nothing confirmed. */
static void transfer_begin(struct transfer *transfer)
{
    transfer->state = TRANSFER_MOVING;
    transfer->confirmed = 0;
    transfer->next = 0;
    transfer->outstanding = 0;
    crypto_hash_sha256_init(&transfer->hash);
}

int transfers_connect(struct transfers *transfers, const char *address, const char *server_key,
                      struct error *err)
{
    struct endpoint *endpoint = endpoint_connect(transfers->bus, address, server_key, err);
    if (!endpoint) {
        return error_prefix(err, "blobs");
    }
    endpoint_destroy(transfers->endpoint);
    transfers->endpoint = endpoint;
    for (size_t i = 0; i < transfers->count; i++) {
        if (transfers->list[i]->state == TRANSFER_MOVING) {
            transfer_begin(transfers->list[i]);
        }
    }
    return 0;
}

struct endpoint *transfers_endpoint(const struct transfers *transfers)
{
    return transfers->endpoint;
}

static void transfer_fail(struct transfer *transfer, enum error_code code, const char *what, const char *why)
{
    error_set(&transfer->error, code, "%s %s: %s", what, transfer->path, why);
    transfer->state = TRANSFER_OVER;
    transfer_close(transfer);
}

static void transfer_succeed(struct transfer *transfer)
{
    transfer->succeeded = true;
    transfer->state = TRANSFER_OVER;
    transfer_close(transfer);
}

static struct transfer *transfers_add(struct transfers *transfers, const char *path)
{
    if (transfers->count == transfers->capacity) {
        size_t capacity = transfers->capacity ? 2 * transfers->capacity : 8;
        struct transfer **list = realloc(transfers->list, capacity * sizeof *list);
        if (!list) {
            return NULL;
        }
        transfers->list = list;
        transfers->capacity = capacity;
    }
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer || !(transfer->path = strdup(path))) {
        free(transfer);
        return NULL;
    }
    transfer->fd = -1;
    transfer->size = -1;
    transfer->id = ++transfers->last_id;
    transfers->list[transfers->count++] = transfer;
    return transfer;
}

uint64_t transfers_fetch(struct transfers *transfers, const char *sha256, const char *path, bool durable)
{
    struct transfer *transfer = transfers_add(transfers, path);
    if (!transfer) {
        return 0;
    }
    transfer->durable = durable;
    snprintf(transfer->sha256, sizeof transfer->sha256, "%s", sha256);
    transfer_begin(transfer);
    if (file_exists(path)) {
        transfer_succeed(transfer);
        return transfer->id;
    }
    /* Other agents of this machine may fetch the same blob: each has its own partial file. */
    size_t size = strlen(path) + 64;
    transfer->partial = malloc(size);
    if (!transfer->partial) {
        transfer_fail(transfer, ERROR_MEMORY, "fetch", "no memory");
        return transfer->id;
    }
    snprintf(transfer->partial, size, "%s.part-%ld-%llu", path, (long)getpid(),
             (unsigned long long)transfer->id);
    transfer->fd = open(transfer->partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (transfer->fd < 0) {
        transfer_fail(transfer, ERROR_RESOURCE, "fetch", strerror(errno));
    }
    return transfer->id;
}

uint64_t transfers_put(struct transfers *transfers, const char *path)
{
    struct transfer *transfer = transfers_add(transfers, path);
    if (!transfer) {
        return 0;
    }
    struct stat status;
    transfer->upload = true;
    transfer->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (transfer->fd < 0 || fstat(transfer->fd, &status) != 0) {
        transfer_fail(transfer, ERROR_RESOURCE, "upload", strerror(errno));
        return transfer->id;
    }
    transfer->size = status.st_size;
    transfer->state = TRANSFER_HASHING;
    crypto_hash_sha256_init(&transfer->hash);
    return transfer->id;
}

static void transfers_remove(struct transfers *transfers, size_t index)
{
    transfer_destroy(transfers->list[index]);
    memmove(&transfers->list[index], &transfers->list[index + 1],
            (transfers->count - index - 1) * sizeof *transfers->list);
    transfers->count--;
}

void transfers_cancel(struct transfers *transfers, uint64_t id)
{
    for (size_t i = 0; i < transfers->count; i++) {
        if (transfers->list[i]->id == id) {
            transfers->abandoned += transfers->list[i]->outstanding;
            transfers->abandoned_ns = transfers->now_ns;
            transfers_remove(transfers, i);
            return;
        }
    }
}

static void hash_to_text(crypto_hash_sha256_state *state, char hex[SHA256_TEXT])
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(state, digest);
    sodium_bin2hex(hex, SHA256_TEXT, digest, sizeof digest);
}

static void transfer_hash_piece(struct transfer *transfer, char *buffer)
{
    for (int64_t piece = 0; piece < HASH_STEP; piece += CHUNK_SIZE) {
        ssize_t count = pread(transfer->fd, buffer, CHUNK_SIZE, transfer->confirmed);
        if (count < 0) {
            transfer_fail(transfer, ERROR_RESOURCE, "upload", strerror(errno));
            return;
        }
        crypto_hash_sha256_update(&transfer->hash, (const unsigned char *)buffer, (size_t)count);
        transfer->confirmed += count;
        if (transfer->confirmed >= transfer->size || count == 0) {
            transfer->size = transfer->confirmed;
            hash_to_text(&transfer->hash, transfer->sha256);
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
    hash_to_text(&transfer->hash, hex);
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
        crypto_hash_sha256_update(&transfer->hash, message->bytes, message->byte_count);
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
    transfer->confirmed = message->offset < transfer->size ? message->offset : transfer->size;
    transfer->next = transfer->next > transfer->confirmed ? transfer->next : transfer->confirmed;
    if (message->offset >= transfer->size) {
        transfer_succeed(transfer);
    }
}

static void transfers_take_error(struct transfers *transfers, const struct message *message, int64_t now_ns)
{
    struct transfer *transfer = transfers_find(transfers, message->checkpoint, false);
    if (transfer && message->code && strcmp(message->code, "not_found") == 0) {
        transfer_fail(transfer, ERROR_RESOURCE, "fetch", "the coordinator does not have this blob");
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
    if (++transfer->restarts > RESTART_LIMIT) {
        transfer_fail(transfer, ERROR_RESOURCE, transfer->upload ? "upload" : "fetch",
                      message->error ? message->error : "refused by the coordinator");
        return;
    }
    transfer_begin(transfer);
    transfer->progress_ns = now_ns;
}

static void transfers_receive(struct transfers *transfers, int64_t now_ns)
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
static bool transfer_wants(const struct transfer *transfer)
{
    if (transfer->state != TRANSFER_MOVING) {
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

static void transfers_pump(struct transfers *transfers, int64_t now_ns)
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
        while (outstanding < OUTSTANDING_LIMIT && transfer_wants(transfer) &&
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

bool transfers_step(struct transfers *transfers, int64_t now_ns)
{
    bool more = false;
    transfers->now_ns = now_ns;
    for (size_t i = 0; i < transfers->count && !more; i++) {
        if (transfers->list[i]->state == TRANSFER_HASHING) {
            transfer_hash_piece(transfers->list[i], transfers->buffer);
            more = true;
        }
    }
    if (transfers->endpoint) {
        transfers_receive(transfers, now_ns);
        transfers_pump(transfers, now_ns);
    }
    for (size_t i = 0; i < transfers->count; i++) {
        more = more || transfers->list[i]->state == TRANSFER_OVER;
    }
    return more;
}

bool transfers_next_result(struct transfers *transfers, struct transfer_result *result)
{
    for (size_t i = 0; i < transfers->count; i++) {
        struct transfer *transfer = transfers->list[i];
        if (transfer->state == TRANSFER_OVER) {
            *result = (struct transfer_result){.id = transfer->id,
                                               .succeeded = transfer->succeeded,
                                               .size = transfer->size,
                                               .error = transfer->error};
            memcpy(result->sha256, transfer->sha256, sizeof result->sha256);
            transfers_remove(transfers, i);
            return true;
        }
    }
    return false;
}
