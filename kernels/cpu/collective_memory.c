/* Shared memory without a name (a memfd, opened by the others below /proc), and meetings in it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "kernels/cpu/collective_memory.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 2000 /* about 10 us: as long as ranks of one size are apart */
#define REASON_YIELDS 100000
#define LOOK_NS (100 * NS_PER_MS) /* between two looks whether the others live */

/* What an id says, in its first bytes. */
struct memory_id {
    uint64_t nonce;
    int32_t pid, descriptor;
};

int shared_create(struct collective_id *id, int ranks, struct error *err)
{
    struct memory_id memory = {.pid = (int32_t)getpid()};
    struct shared_head head = {.ranks = ranks};

    memset(id, 0, sizeof *id);
    if (getrandom(&memory.nonce, sizeof memory.nonce, 0) != (ssize_t)sizeof memory.nonce)
        return error_set(err, ERROR_RESOURCE, "no random number for a group of devices");
    head.nonce = memory.nonce;
    memory.descriptor = memfd_create("rung-collective", MFD_CLOEXEC);
    if (memory.descriptor < 0 || ftruncate(memory.descriptor, (off_t)shared_size(ranks)) != 0 ||
        pwrite(memory.descriptor, &head, sizeof head, 0) != (ssize_t)sizeof head) {
        error_set(err, ERROR_RESOURCE, "no memory to share between devices: %s", strerror(errno));
        if (memory.descriptor >= 0)
            close(memory.descriptor);
        return -1;
    }
    memcpy(id->bytes, &memory, sizeof memory);
    return 0;
}

static int open_descriptor(const struct memory_id *memory, int rank)
{
    char path[64];

    if (rank == 0)
        return memory->descriptor;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", memory->pid, memory->descriptor);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Another machine may have such a process and descriptor too. */
static bool is_ours(int descriptor, const struct memory_id *memory, int ranks)
{
    struct shared_head found = {0};

    return pread(descriptor, &found, sizeof found, 0) == (ssize_t)sizeof found &&
           found.nonce == memory->nonce && found.ranks == ranks;
}

struct shared *shared_open(const struct collective_id *id, int rank, int ranks, struct error *err)
{
    struct memory_id memory;
    struct shared *shared = MAP_FAILED;

    memcpy(&memory, id->bytes, sizeof memory);
    int descriptor = open_descriptor(&memory, rank);
    if (descriptor < 0 || !is_ours(descriptor, &memory, ranks))
        error_set(
            err, ERROR_RESOURCE,
            "rank %d finds no memory of rank 0: it has ended, or runs on another machine (CPU devices of "
            "one trial are of one machine)",
            rank);
    else if ((shared = mmap(NULL, shared_size(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)) ==
             MAP_FAILED)
        error_set(err, ERROR_RESOURCE, "no memory to share between devices: %s", strerror(errno));
    if (descriptor >= 0 && (rank > 0 || shared == MAP_FAILED))
        close(descriptor);
    return shared == MAP_FAILED ? NULL : shared;
}

void shared_close(struct shared *shared, int ranks)
{
    munmap(shared, shared_size(ranks));
}

int shared_descriptor(const struct collective_id *id)
{
    struct memory_id memory;

    memcpy(&memory, id->bytes, sizeof memory);
    return memory.descriptor;
}

/* ---- meetings ---- */

static void wake_all(struct shared *shared)
{
    atomic_fetch_add(&shared->bell, 1);
    if (atomic_load(&shared->waiting) > 0)
        syscall(SYS_futex, &shared->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void shared_abort(struct shared *shared, const char *reason)
{
    int32_t none = 0;

    if (!atomic_compare_exchange_strong(&shared->aborted, &none, 1))
        return;
    snprintf(shared->reason, sizeof shared->reason, "%s", reason);
    atomic_store(&shared->aborted, 2);
    wake_all(shared);
}

/* -1: all have come. */
static int first_missing(struct shared *shared, int ranks, uint64_t meeting)
{
    for (int i = 0; i < ranks; i++)
        if (atomic_load_explicit(&shared->rank[i].arrived, memory_order_acquire) < meeting)
            return i;
    return -1;
}

/* A process that has ended without a word, looked at by its parent or not; one that has not joined yet is
 * only late. */
static bool is_dead(struct shared *shared, int rank)
{
    int32_t pid = atomic_load(&shared->rank[rank].pid);
    struct pollfd ended = {.fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1, .events = POLLIN};

    if (ended.fd < 0)
        return pid > 0 && errno == ESRCH;
    bool dead = poll(&ended, 1, 0) == 1;
    close(ended.fd);
    return dead;
}

/* Whoever was first to give up may still be writing why; it is given time, but may have died at that. */
static int fail(struct shared *shared, const char *reason, struct error *err)
{
    shared_abort(shared, reason);
    for (int i = 0; i < REASON_YIELDS && atomic_load(&shared->aborted) != 2; i++)
        sched_yield();
    return error_set(err, ERROR_RESOURCE, "%s",
                     atomic_load(&shared->aborted) == 2 ? shared->reason : "another rank has given up");
}

/* One sleep, and a look at what may have happened meanwhile. */
static int wait_once(struct shared *shared, int missing, uint32_t bell, struct error *err)
{
    struct timespec most = {.tv_nsec = LOOK_NS};
    char reason[REASON_SIZE];

    if (atomic_load(&shared->aborted) != 0)
        return fail(shared, "", err);
    atomic_fetch_add(&shared->waiting, 1);
    long result = syscall(SYS_futex, &shared->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    bool timed_out = result != 0 && errno == ETIMEDOUT;
    atomic_fetch_sub(&shared->waiting, 1);
    if (!timed_out || !is_dead(shared, missing))
        return 0;
    snprintf(reason, sizeof reason, "rank %d (process %d) has ended", missing,
             (int)atomic_load(&shared->rank[missing].pid));
    return fail(shared, reason, err);
}

int shared_meet(struct shared *shared, int rank, int ranks, uint64_t meeting, double seconds,
                struct error *err)
{
    char reason[REASON_SIZE];
    int missing = -1;

    atomic_store_explicit(&shared->rank[rank].arrived, meeting, memory_order_release);
    wake_all(shared);
    for (int i = 0; i < SPINS; i++)
        if ((missing = first_missing(shared, ranks, meeting)) < 0)
            return 0;
    int64_t deadline = clock_now().monotonic_ns + (int64_t)(seconds * NS_PER_SECOND);
    for (;;) {
        uint32_t bell = atomic_load(&shared->bell);
        if ((missing = first_missing(shared, ranks, meeting)) < 0)
            return 0;
        if (clock_now().monotonic_ns >= deadline) {
            snprintf(reason, sizeof reason, "rank %d has not come within %g s", missing, seconds);
            return fail(shared, reason, err);
        }
        if (wait_once(shared, missing, bell, err) != 0)
            return -1;
    }
}
