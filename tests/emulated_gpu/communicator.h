/* NCCL communicators: the ranks, in one process or several, meet in a shared memory segment named by the
 * unique id. Each rank has a slot there that its data passes through, chunk after chunk. */
#ifndef EMULATED_GPU_COMMUNICATOR_H
#define EMULATED_GPU_COMMUNICATOR_H

#include <atomic>
#include <memory>

#include "nccl.h"
#include "world.h"

namespace emulated
{
constexpr int MOST_RANKS = 64;
constexpr size_t CHUNK_BYTES = 256 << 10;

struct collective { /* what all ranks must have called alike */
    int kind;       /* collective_kind */
    int type, operation, root;
    uint64_t count;
};
enum collective_kind { ALL_REDUCE, BROADCAST, ALL_GATHER };

struct rank_seat {
    std::atomic<int> process;               /* its pid; 0: not joined yet */
    std::atomic<int> left;                  /* all it had to do is done */
    std::atomic<uint64_t> posted, consumed; /* chunks, from 1 */
    collective call;                        /* that the posted chunk belongs to */
};
struct segment {
    std::atomic<int> joined, failed; /* failed: a rank had an error or aborted */
    rank_seat seats[MOST_RANKS];
    /* slots follow, page-aligned */
};
} // namespace emulated

/* Lives as long as the handle and the work that is queued for it. */
struct ncclComm {
    int ranks, rank, device;
    bool blocking;
    emulated::segment *shared = nullptr;
    size_t shared_bytes;
    char *slots;
    char name[NCCL_UNIQUE_ID_BYTES];
    bool in_progress = false; /* a non-blocking call that is told of once */
    bool aborted = false, finalizing = false;
    ncclResult_t error = ncclSuccess;
    uint64_t chunks = 0; /* passed by this rank */
    int calls = 0;
    emulated::operation_ref last;
    int watches[emulated::MOST_RANKS]; /* a pidfd of each other process, or -1 */
    ncclComm();
    ncclComm(const ncclComm &) = delete;
    ~ncclComm();
};

namespace emulated
{
typedef std::shared_ptr<ncclComm> communicator_ref;
/* NULL unless it is one. */
communicator_ref communicator_find(ncclComm_t handle);
/* An error of this rank, which the others are told of. */
void communicator_fail(ncclComm &of, ncclResult_t error);
/* Looks for errors of other ranks, and for processes that have died. */
void communicator_look(ncclComm &of);
} // namespace emulated

#endif
