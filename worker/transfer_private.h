/* What the two parts of transfers share: transfer.c (the queue), transfer_moves.c (bytes in and out). */
#ifndef RUNG_WORKER_TRANSFER_PRIVATE_H
#define RUNG_WORKER_TRANSFER_PRIVATE_H

#include "base/sha256.h"
#include "worker/transfer.h"

#define CHUNK_SIZE (1 << 20) /* of the protocol */

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
    int64_t furthest;     /* of confirmed, over all beginnings */
    int outstanding;
    int restarts;      /* since the furthest moved */
    int delays;        /* in a row, because the coordinator could not store it */
    int64_t resume_ns; /* until when it waits for that */
    int64_t progress_ns;
    struct sha256 hash;
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

/* Begins the moving (again), with nothing confirmed. */
void transfer_begin(struct transfer *transfer);
void transfer_fail(struct transfer *transfer, enum error_code code, const char *what, const char *why);
void transfer_succeed(struct transfer *transfer);

/* transfer_moves.c */
void transfer_hash_piece(struct transfer *transfer, char *buffer);
void transfers_receive(struct transfers *transfers, int64_t now_ns);
void transfers_pump(struct transfers *transfers, int64_t now_ns);

#endif
