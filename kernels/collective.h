/* The devices of one trial, a process each, adding up and exchanging what lies in their memory.
 *
 * Every rank calls the same operations with the same sizes in the same order. Sums are made in the order of
 * the ranks, so all ranks get the same bits, whatever the timing. Nothing waits for ever: a rank that does
 * not come within the deadline, has ended, or has given up makes the operation fail on every rank that waits.
 * The first failure is kept and told by collective_check; what is called after it does nothing.
 *
 * With one rank every operation returns at once, and `gather` copies. A collective is used by one thread. */
#ifndef RUNG_KERNELS_COLLECTIVE_H
#define RUNG_KERNELS_COLLECTIVE_H

#include "base/error.h"
#include "kernels/device.h"

#include <stddef.h>
#include <stdint.h>

#define COLLECTIVE_RANKS 64     /* at most */
#define COLLECTIVE_ID_BYTES 128 /* as NCCL's */

/* What the first rank makes and the others join by. */
struct collective_id {
    unsigned char bytes[COLLECTIVE_ID_BYTES];
};

struct collective;

/* Over CPU devices of one machine, in memory that the ranks share: it has no name anywhere, so that nothing
 * of it is left when they end, however they do. */

/* For rank 0, which then joins. ERROR_RESOURCE. */
int collective_cpu_id(struct collective_id *id, int ranks, struct error *err);
/* Waits for all ranks, at most `seconds`, which is then the deadline of every operation. NULL: err,
 * ERROR_RESOURCE says which rank has not come. */
struct collective *collective_cpu_join(const struct collective_id *id, int rank, int ranks, double seconds,
                                       struct error *err);
/* Leaves; NULL is allowed. Others that wait for this rank fail. */
void collective_destroy(struct collective *collective);

int collective_rank(const struct collective *collective);
int collective_ranks(const struct collective *collective);

/* x (count) = the sum of all ranks' x. */
void collective_sum(struct collective *collective, real *x, int64_t count);
/* The same in float64. */
void collective_sum_double(struct collective *collective, double *x, int64_t count);
/* all (ranks, bytes) = the `own` (bytes) of each rank. */
void collective_gather(struct collective *collective, void *all, const void *own, size_t bytes);
/* memory (bytes) of every rank = that of rank `root`. */
void collective_broadcast(struct collective *collective, void *memory, size_t bytes, int root);

/* Makes what others wait for, and all that comes, fail: this rank cannot go on. `reason` is what they tell,
 * behind its number. */
void collective_abort(struct collective *collective, const char *reason);
/* 0, or the first failure, ERROR_RESOURCE; it stays. */
int collective_check(const struct collective *collective, struct error *err);
/* Seconds spent in operations so far, waiting for others included. */
double collective_seconds(const struct collective *collective);

#endif
