/* The queue of transfers. A transfer is `hashing` (uploads: the name of a blob is its hash), then `moving`,
 * then `over`. */
#include "worker/transfer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void transfer_begin(struct transfer *transfer)
{
    transfer->state = TRANSFER_MOVING;
    transfer->confirmed = 0;
    transfer->next = 0;
    transfer->outstanding = 0;
    sha256_start(&transfer->hash);
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

void transfer_fail(struct transfer *transfer, enum error_code code, const char *what, const char *why)
{
    error_set(&transfer->error, code, "%s %s: %s", what, transfer->path, why);
    transfer->state = TRANSFER_OVER;
    transfer_close(transfer);
}

void transfer_succeed(struct transfer *transfer)
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
    sha256_start(&transfer->hash);
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
