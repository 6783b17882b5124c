/* Layer norm: statistics of each row. Rows are taken in blocks, copied to the stack, so that dx may be dy. */
#include "kernels/cpu/norm.h"

static void store_row(void *y, const void *x, int64_t at, real mean, real inverse, const real *restrict gain,
                      const real *restrict offset, int64_t columns, enum device_precision precision)
{
    real block[NORM_BLOCK], read[NORM_BLOCK];

    for (int64_t first = 0, count; first < columns; first += count) {
        count = norm_block_of(columns - first);
        const real *restrict value = stored_read(read, x, at + first, count, precision);
        for (int64_t j = 0; j < count; j++)
            block[j] = (value[j] - mean) * inverse * gain[first + j] + offset[first + j];
        norm_store(y, at + first, block, count, precision);
    }
}

static real row_sum(const void *x, int64_t at, int64_t columns, enum device_precision precision)
{
    real block[NORM_BLOCK], partial[WIDTH] = {0};

    for (int64_t first = 0, count; first < columns; first += count) {
        count = norm_block_of(columns - first);
        norm_accumulate(partial, stored_read(block, x, at + first, count, precision), count);
    }
    return sum_pairwise(partial);
}

/* Of (x - mean)^2. */
static real row_squares(const void *x, int64_t at, real mean, int64_t columns,
                        enum device_precision precision)
{
    real block[NORM_BLOCK], square[NORM_BLOCK], partial[WIDTH] = {0};

    for (int64_t first = 0, count; first < columns; first += count) {
        count = norm_block_of(columns - first);
        const real *restrict value = stored_read(block, x, at + first, count, precision);
        for (int64_t j = 0; j < count; j++)
            square[j] = (value[j] - mean) * (value[j] - mean);
        norm_accumulate(partial, square, count);
    }
    return sum_pairwise(partial);
}

void LOOPS(layer_norm)(void *y, real *saved, const void *x, const real *gain, const real *offset,
                       int64_t rows, int64_t columns, enum device_precision precision)
{
    real n = (real)columns;

    for (int64_t i = 0; i < rows; i++) {
        int64_t at = i * columns;
        real mean = row_sum(x, at, columns, precision) / n;
        real inverse = norm_inverse(row_squares(x, at, mean, columns, precision) / n);
        saved[2 * i] = mean;
        saved[2 * i + 1] = inverse;
        store_row(y, x, at, mean, inverse, gain, offset, columns, precision);
    }
}

/* Loads a block of a row: normal = (x - mean) inverse, and the slope dy. */
static void load_pair(real *restrict normal, real *restrict slope, const void *x, const void *dy, int64_t at,
                      int64_t count, const real *saved, enum device_precision precision)
{
    norm_load(normal, x, at, count, precision);
    norm_load(slope, dy, at, count, precision);
    for (int64_t j = 0; j < count; j++)
        normal[j] = (normal[j] - saved[0]) * saved[1];
}

/* One block's part of dgain, doffset, and of the row's sums of gain dy and of gain dy normal. */
static void gather_block(real *restrict dgain, real *restrict doffset, real sum[WIDTH], real cross[WIDTH],
                         const real *restrict normal, real *restrict slope, const real *restrict gain,
                         int64_t count)
{
    real product[NORM_BLOCK];

    for (int64_t j = 0; j < count; j++) {
        dgain[j] += slope[j] * normal[j];
        doffset[j] += slope[j];
        slope[j] *= gain[j];
        product[j] = slope[j] * normal[j];
    }
    norm_accumulate(sum, slope, count);
    norm_accumulate(cross, product, count);
}

/* dx = inverse (gain dy - mean(gain dy) - normal mean(gain dy normal)) */
void LOOPS(layer_norm_backward)(void *dx, real *dgain, real *doffset, const void *dy, const void *x,
                                const real *saved, const real *gain, int64_t rows, int64_t columns,
                                bool accumulate, enum device_precision precision)
{
    real normal[NORM_BLOCK], slope[NORM_BLOCK], n = (real)columns;

    norm_start_sums(dgain, doffset, columns, accumulate);
    for (int64_t i = 0; i < rows; i++, saved += 2) {
        int64_t at = i * columns;
        real sums[WIDTH] = {0}, crosses[WIDTH] = {0};

        for (int64_t first = 0, count; first < columns; first += count) {
            count = norm_block_of(columns - first);
            load_pair(normal, slope, x, dy, at + first, count, saved, precision);
            gather_block(dgain + first, doffset + first, sums, crosses, normal, slope, gain + first, count);
        }
        real sum = sum_pairwise(sums) / n, cross = sum_pairwise(crosses) / n;
        for (int64_t first = 0, count; first < columns; first += count) {
            count = norm_block_of(columns - first);
            load_pair(normal, slope, x, dy, at + first, count, saved, precision);
            for (int64_t j = 0; j < count; j++)
                slope[j] = saved[1] * (gain[first + j] * slope[j] - sum - normal[j] * cross);
            norm_store(dx, at + first, slope, count, precision);
        }
    }
}
