/* The trainer's random numbers, made on the host. */
#include "worker/training/random.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

uint32_t random_stream(enum random_purpose purpose, int layer)
{
    return (uint32_t)purpose | (uint32_t)layer << 8;
}

uint64_t trial_seed(uint64_t sweep_seed, int64_t trial)
{
    uint64_t name = fnv1a64("trial", 5);
    struct philox block = philox4x32(sweep_seed, (uint32_t)trial, (uint32_t)name, (uint32_t)(name >> 32), 0);

    return (uint64_t)block.word[1] << 32 | block.word[0];
}

void random_uniform(uint64_t seed, int layer, int64_t first, double *values, int64_t count, double bound)
{
    struct philox block = {{0}};

    for (int64_t i = 0; i < count; i++) {
        int64_t element = first + i;
        if (i == 0 || element % 4 == 0)
            block = philox4x32(seed, (uint32_t)(element / 4), 0, 0, random_stream(RANDOM_INITIAL, layer));
        values[i] = bound * (2 * ((double)block.word[element % 4] + 0.5) * 0x1p-32 - 1);
    }
}

void random_normal(uint64_t seed, int embedding, double *values, int64_t count)
{
    const double turn = 6.28318530717958647692;

    for (int64_t i = 0; i < count; i += 2) {
        struct philox block =
            philox4x32(seed, (uint32_t)(i / 2), 0, 0, random_stream(RANDOM_EMBEDDING, embedding));
        double radius = sqrt(-2 * log(((double)block.word[0] + 0.5) * 0x1p-32));
        double angle = turn * ((double)block.word[1] * 0x1p-32);
        values[i] = radius * cos(angle);
        if (i + 1 < count)
            values[i + 1] = radius * sin(angle);
    }
}

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* One stable pass of a radix sort by the digit at `shift`. */
static void sort_pass(uint64_t *to, const uint64_t *from, int64_t count, int shift)
{
    int32_t place[DIGITS] = {0}, sum = 0;

    for (int64_t i = 0; i < count; i++)
        place[from[i] >> shift & (DIGITS - 1)]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        int32_t size = place[digit];
        place[digit] = sum;
        sum += size;
    }
    for (int64_t i = 0; i < count; i++)
        to[place[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Rows enter in ascending order and the passes are stable, so equal words stay sorted by row. A radix sort,
 * since comparing would cost a tenth of a small data set's epoch. */
void random_order(uint64_t seed, int64_t epoch, int32_t *order, int64_t count, uint64_t *scratch)
{
    uint64_t *other = scratch + count;

    for (int64_t i = 0; i < count; i += 4) {
        struct philox block =
            philox4x32(seed, (uint32_t)(i / 4), 0, (uint32_t)epoch, random_stream(RANDOM_SHUFFLE, 0));
        for (int64_t j = i; j < count && j < i + 4; j++)
            scratch[j] = (uint64_t)block.word[j - i] << 32 | (uint64_t)j;
    }
    sort_pass(other, scratch, count, 32);
    sort_pass(scratch, other, count, 32 + DIGIT_BITS);
    sort_pass(other, scratch, count, 32 + 2 * DIGIT_BITS);
    for (int64_t i = 0; i < count; i++)
        order[i] = (int32_t)other[i];
}
