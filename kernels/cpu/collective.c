/* Sums and exchanges over shared memory, piece by piece: every rank puts its piece down, adds up its share of
 * all pieces in the order of the ranks, and takes the whole sum. */
#include "kernels/cpu/collective_memory.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct collective {
    struct shared *shared; /* NULL with one rank */
    int rank, ranks;
    double seconds;    /* deadline of a meeting */
    uint64_t meetings; /* so far */
    int64_t spent_ns;
    struct error failure;
};

int collective_cpu_id(struct collective_id *id, int ranks, struct error *err)
{
    return shared_create(id, ranks, err);
}

static int meet(struct collective *collective)
{
    return shared_meet(collective->shared, collective->rank, collective->ranks, ++collective->meetings,
                       collective->seconds, &collective->failure);
}

/* All are there once they have met; then nobody needs the descriptor any more. */
static int join(struct collective *collective, const struct collective_id *id, struct error *err)
{
    if (collective->ranks == 1)
        return 0;
    collective->shared = shared_open(id, collective->rank, collective->ranks, err);
    if (!collective->shared)
        return -1;
    atomic_store(&collective->shared->rank[collective->rank].pid, (int32_t)getpid());
    int result = meet(collective);
    if (collective->rank == 0)
        close(shared_descriptor(id));
    return result == 0 ? 0 : collective_check(collective, err);
}

struct collective *collective_cpu_join(const struct collective_id *id, int rank, int ranks, double seconds,
                                       struct error *err)
{
    struct collective *collective = calloc(1, sizeof *collective);

    if (!collective) {
        error_set(err, ERROR_MEMORY, "no memory for a group of devices");
        return NULL;
    }
    collective->rank = rank;
    collective->ranks = ranks;
    collective->seconds = seconds;
    if (join(collective, id, err) == 0)
        return collective;
    collective_destroy(collective);
    return NULL;
}

void collective_destroy(struct collective *collective)
{
    if (!collective)
        return;
    if (collective->shared) {
        collective_abort(collective, "has left");
        shared_close(collective->shared, collective->ranks);
    }
    free(collective);
}

int collective_rank(const struct collective *collective)
{
    return collective->rank;
}

int collective_ranks(const struct collective *collective)
{
    return collective->ranks;
}

void collective_abort(struct collective *collective, const char *reason)
{
    char text[REASON_SIZE];

    if (!collective->shared)
        return;
    snprintf(text, sizeof text, "rank %d %s", collective->rank, reason);
    shared_abort(collective->shared, text);
}

int collective_check(const struct collective *collective, struct error *err)
{
    if (collective->failure.code == ERROR_NONE)
        return 0;
    return error_set(err, collective->failure.code, "%s", collective->failure.message);
}

double collective_seconds(const struct collective *collective)
{
    return (double)collective->spent_ns / NS_PER_SECOND;
}

/* ---- operations ---- */

/* Whether there is anything to do for them, and since when. */
static bool begin(const struct collective *collective, int64_t *since_ns)
{
    *since_ns = clock_now().monotonic_ns;
    return collective->shared && collective->failure.code == ERROR_NONE;
}

static void end(struct collective *collective, int64_t since_ns)
{
    collective->spent_ns += clock_now().monotonic_ns - since_ns;
}

static unsigned char *part(const struct collective *collective, int rank)
{
    return shared_part(collective->shared, rank);
}

static unsigned char *results(const struct collective *collective)
{
    return part(collective, collective->ranks);
}

/* This rank's share of a piece of `count` elements, of which each rank adds up one. */
static void share_of(const struct collective *collective, int64_t count, int64_t *first, int64_t *beyond)
{
    *first = count * collective->rank / collective->ranks;
    *beyond = count * (collective->rank + 1) / collective->ranks;
}

typedef void add_f(void *restrict sum, const void *restrict x, int64_t first, int64_t beyond);

static void add_real(void *restrict sum, const void *restrict x, int64_t first, int64_t beyond)
{
    real *restrict to = sum;
    const real *restrict from = x;

    for (int64_t i = first; i < beyond; i++)
        to[i] += from[i];
}

static void add_double(void *restrict sum, const void *restrict x, int64_t first, int64_t beyond)
{
    double *restrict to = sum;
    const double *restrict from = x;

    for (int64_t i = first; i < beyond; i++)
        to[i] += from[i];
}

/* A result is overwritten only after the next piece's first meeting, to which nobody comes before having
 * taken it. */
static int sum_piece(struct collective *collective, void *x, int64_t count, size_t size, add_f *add)
{
    int64_t first, beyond;

    share_of(collective, count, &first, &beyond);
    memcpy(part(collective, collective->rank), x, (size_t)count * size);
    if (meet(collective) != 0)
        return -1;
    memcpy(results(collective) + (size_t)first * size, part(collective, 0) + (size_t)first * size,
           (size_t)(beyond - first) * size);
    for (int rank = 1; rank < collective->ranks; rank++)
        add(results(collective), part(collective, rank), first, beyond);
    if (meet(collective) != 0)
        return -1;
    memcpy(x, results(collective), (size_t)count * size);
    return 0;
}

static void sum(struct collective *collective, void *x, int64_t count, size_t size, add_f *add)
{
    int64_t since, most = (int64_t)(PIECE_BYTES / size), done = 0;

    if (!begin(collective, &since))
        return;
    while (done < count) {
        int64_t piece = count - done < most ? count - done : most;
        if (sum_piece(collective, (unsigned char *)x + (size_t)done * size, piece, size, add) != 0)
            break;
        done += piece;
    }
    end(collective, since);
}

void collective_sum(struct collective *collective, real *x, int64_t count)
{
    sum(collective, x, count, sizeof *x, add_real);
}

void collective_sum_double(struct collective *collective, double *x, int64_t count)
{
    sum(collective, x, count, sizeof *x, add_double);
}

void collective_gather(struct collective *collective, void *all, const void *own, size_t bytes)
{
    int64_t since;

    if (!collective->shared) {
        memcpy(all, own, bytes);
        return;
    }
    if (!begin(collective, &since))
        return;
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        memcpy(part(collective, collective->rank), (const unsigned char *)own + done, piece);
        if (meet(collective) != 0)
            break;
        for (int rank = 0; rank < collective->ranks; rank++)
            memcpy((unsigned char *)all + (size_t)rank * bytes + done, part(collective, rank), piece);
        if (meet(collective) != 0) /* so that nobody overwrites what is still read */
            break;
    }
    end(collective, since);
}

void collective_broadcast(struct collective *collective, void *memory, size_t bytes, int root)
{
    int64_t since;

    if (!begin(collective, &since))
        return;
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        if (collective->rank == root)
            memcpy(part(collective, root), (unsigned char *)memory + done, piece);
        if (meet(collective) != 0)
            break;
        if (collective->rank != root)
            memcpy((unsigned char *)memory + done, part(collective, root), piece);
        if (meet(collective) != 0)
            break;
    }
    end(collective, since);
}
