/* The memory that the ranks of a CPU collective share, and how they wait for each other in it. */
#ifndef RUNG_KERNELS_CPU_COLLECTIVE_MEMORY_H
#define RUNG_KERNELS_CPU_COLLECTIVE_MEMORY_H

#include "kernels/collective.h"

#include <stdatomic.h>
#include <sys/types.h>

/* Of a rank's part, and of the sum: a piece stays in the second cache while it is added up, and the two
 * meetings that each takes cost little beside it. */
#define PIECE_BYTES ((size_t)256 << 10)
#define REASON_SIZE 200

/* One cache line a rank, so that arriving disturbs nobody. */
struct rank_state {
    _Alignas(64) _Atomic uint64_t arrived; /* meetings it has come to */
    _Atomic int32_t pid;                   /* 0: it has not joined */
};

struct shared_head {
    uint64_t nonce; /* of the id: this is what it stands for */
    int32_t ranks;
};

struct shared {
    struct shared_head head;
    _Atomic uint32_t bell;    /* moves with every arrival: what waits sleeps on it */
    _Atomic uint32_t waiting; /* how many sleep */
    _Atomic int32_t aborted;  /* 0: not; 1: the reason is being written; 2: it is there */
    char reason[REASON_SIZE];
    struct rank_state rank[COLLECTIVE_RANKS];
};

/* The parts behind the header. */
static inline unsigned char *shared_part(struct shared *shared, int rank)
{
    return (unsigned char *)(shared + 1) + (size_t)rank * PIECE_BYTES;
}
/* Bytes of it all: a part for each rank, and one for results. */
static inline size_t shared_size(int ranks)
{
    return sizeof(struct shared) + (size_t)(ranks + 1) * PIECE_BYTES;
}

/* Makes it for so many ranks; the id names this process's descriptor, which stays open until rank 0 closes
 * it, once all are there. */
int shared_create(struct collective_id *id, int ranks, struct error *err);
int shared_descriptor(const struct collective_id *id);
/* Maps it. NULL: it is gone, or on another machine. */
struct shared *shared_open(const struct collective_id *id, int rank, int ranks, struct error *err);
void shared_close(struct shared *shared, int ranks);

/* Notes the first reason and wakes all. */
void shared_abort(struct shared *shared, const char *reason);
/* This rank has come to `meeting`; waits until all have. -1: err says who has not. */
int shared_meet(struct shared *shared, int rank, int ranks, uint64_t meeting, double seconds,
                struct error *err);

#endif
