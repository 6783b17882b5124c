/* Blobs in and out over the blob socket, without ever waiting: hashing goes on in pieces, at most 4 requests
 * are outstanding (all transfers together), lost ones are asked for again. Each transfer ends with one
 * result. */
#ifndef RUNG_WORKER_TRANSFER_H
#define RUNG_WORKER_TRANSFER_H

#include "base/error.h"
#include "base/files.h"
#include "wire/socket.h"

#include <stdbool.h>
#include <stdint.h>

struct transfers;

struct transfer_result {
    uint64_t id;
    bool succeeded;
    char sha256[SHA256_TEXT];
    int64_t size;
    /* When not. ERROR_RESOURCE: this machine's disk or descriptors; ERROR_PROTOCOL: the blob cannot be had
     * (lost, damaged), or was refused for good. */
    struct error error;
};

/* `bus` is borrowed. */
struct transfers *transfers_create(struct bus *bus, struct error *err);
void transfers_destroy(struct transfers *transfers);
/* Where the blobs are; transfers asked for before wait for it, and a new address takes over those under way.
 */
int transfers_connect(struct transfers *transfers, const char *address, const char *server_key,
                      struct error *err);
/* The socket to poll, or NULL. */
struct endpoint *transfers_endpoint(const struct transfers *transfers);

/* Brings a blob to `path` (under a temporary name until its hash is right). durable: fsynced, a name to be
 * trusted later. Returns the transfer's id, 0 without memory. A file that is there already is a success at
 * once. */
uint64_t transfers_fetch(struct transfers *transfers, const char *sha256, const char *path, bool durable);
/* Hashes the file and sends it; again and again, ever more slowly, while the coordinator cannot store it. */
uint64_t transfers_put(struct transfers *transfers, const char *path);
/* Forgets it; no result follows. */
void transfers_cancel(struct transfers *transfers, uint64_t id);

/* One turn: receive, hash a piece, send, repeat what was lost. True: there is more to do at once. */
bool transfers_step(struct transfers *transfers, int64_t now_ns);
/* Takes out the next finished one. */
bool transfers_next_result(struct transfers *transfers, struct transfer_result *result);

#endif
