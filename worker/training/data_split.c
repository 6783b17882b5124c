/* Systematic sampling over rows sorted by class, in random order within a class; see data_split.h.
 *
 * Along that order every k-th row is taken, which gives each class its share to within one row and the whole
 * its exact share, without a special case for small classes. */
#include "worker/training/data_split.h"

#include "base/random.h"
#include "worker/training/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PURPOSE_SPLIT 0x73706c74u /* "splt": keeps these words apart from others of the same seed */

struct drawn {
    int32_t label;
    uint64_t word;
    int64_t row;
};

static int drawn_compare(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    if (x->label != y->label)
        return (x->label > y->label) - (x->label < y->label);
    if (x->word != y->word)
        return (x->word > y->word) - (x->word < y->word);
    return (x->row > y->row) - (x->row < y->row);
}

static struct drawn *draw(const int32_t *label, int64_t rows, uint64_t seed)
{
    struct drawn *order = malloc((size_t)rows * sizeof *order);
    for (int64_t row = 0; row < rows && order; row++) {
        struct philox words = philox4x32(seed, (uint32_t)row, (uint32_t)(row >> 32), PURPOSE_SPLIT, 0);
        order[row].label = label ? label[row] : 0;
        order[row].word = (uint64_t)words.word[0] << 32 | words.word[1];
        order[row].row = row;
    }
    if (order)
        qsort(order, (size_t)rows, sizeof *order, drawn_compare);
    return order;
}

/* Until every part has taken its rows: not yet given to any. */
#define PART_FREE SPLIT_COUNT

/* A class that training never sees cannot be learned: its first row is kept from the others. */
static void keep_classes(unsigned char *part, const struct drawn *order, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        if (i == 0 || order[i].label != order[i - 1].label)
            part[order[i].row] = SPLIT_TRAIN;
}

/* Gives `wanted` of the free rows to `split`, evenly along the order. */
static void take(unsigned char *part, const struct drawn *order, int64_t rows, int64_t wanted,
                 enum split split)
{
    int64_t left = 0, at = 0;
    for (int64_t i = 0; i < rows; i++)
        left += part[order[i].row] == PART_FREE;
    if (wanted > left)
        wanted = left;
    for (int64_t i = 0; i < rows; i++) {
        if (part[order[i].row] != PART_FREE)
            continue;
        /* In double precision: the product of two row counts may leave 64 bits before it leaves memory. */
        double before = floor((double)at * (double)wanted / (double)left);
        double after = floor((double)(at + 1) * (double)wanted / (double)left);
        at++;
        if (after > before)
            part[order[i].row] = (unsigned char)split;
    }
}

int split_check(const unsigned char *part, int64_t rows, double test, struct error *err)
{
    int64_t count[SPLIT_COUNT] = {0};
    for (int64_t row = 0; row < rows; row++)
        count[part[row]]++;
    if (count[SPLIT_TRAIN] < 2 || count[SPLIT_VALIDATION] < 1 || (test > 0 && count[SPLIT_TEST] < 1))
        return error_set(err, ERROR_USAGE,
                         "too few rows: %lld give %lld for training, %lld for validation and %lld for the "
                         "test; expected at least 2, 1 and %d (of more rows, or by other shares: "
                         "data.validation, data.test)",
                         (long long)rows, (long long)count[SPLIT_TRAIN], (long long)count[SPLIT_VALIDATION],
                         (long long)count[SPLIT_TEST], test > 0 ? 1 : 0);
    return 0;
}

int split_rows(unsigned char *part, const int32_t *label, int64_t classes, int64_t rows, double validation,
               double test, uint64_t seed, struct error *err)
{
    struct drawn *order = draw(label, rows, seed);
    if (!order)
        return error_set(err, ERROR_MEMORY, "no memory to split %lld rows", (long long)rows);
    memset(part, PART_FREE, (size_t)rows);
    if (classes > 0)
        keep_classes(part, order, rows);
    take(part, order, rows, llround((double)rows * test), SPLIT_TEST);
    take(part, order, rows, llround((double)rows * validation), SPLIT_VALIDATION);
    free(order);
    for (int64_t row = 0; row < rows; row++)
        if (part[row] == PART_FREE)
            part[row] = SPLIT_TRAIN;
    return split_check(part, rows, test, err);
}
