/* Large blocks of device memory for several lanes, for tests of shapes beyond those of the conformance test,
 * where backends take other ways: sums in several parts, rows that need a whole block, lists of tensors that
 * need several launches, more lanes than scratch memory holds. On the device named by RUNG_TEST_DEVICE (cpu:0
 * without). */
#ifndef RUNG_TESTS_LARGE_BLOCK_H
#define RUNG_TESTS_LARGE_BLOCK_H

#include "kernels/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern struct device *device;
extern const struct device_operations *operations;
int set_up(void **state);
int tear_down(void **state);

/* Lanes on the host and on the device. Tensors are offsets into a lane; the state comes first. */
struct block {
    struct lanes lanes;
    char *host;
    void *memory;
};

void block_init(struct block *block, int64_t lanes);
size_t place(struct block *block, int64_t elements);
/* Every element from -1 to 1, in each lane others; states as they are when a trial starts. */
void block_open(struct block *block);
void to_device(struct block *block);
/* A copy of the block as the device left it; the caller's block keeps what went in. */
struct block from_device(const struct block *block);
void block_release(struct block *block, struct block *after);

static inline void *on_host(const struct block *block, int64_t lane, size_t at)
{
    return block->host + block->lanes.stride * (size_t)lane + at;
}
static inline double get(const struct block *block, int64_t lane, size_t at, int64_t i)
{
    return ((float *)on_host(block, lane, at))[i];
}
static inline void *on_device(const struct block *block, size_t at)
{
    return (char *)block->memory + at;
}

void expect(const char *name, int64_t lane, int64_t i, double found, double expected, double tolerance);

#endif
