/* Ghost batch norm: statistics of each column within groups of rows. A block of columns at a time, row after
 * row, so that memory is read along its rows and each column's sum has its own order. */
#include "kernels/cpu/norm.h"

#define MOMENTUM ((real)0.1) /* of the running statistics */

/* The groups of rows there are, see device.h. */
static int64_t norm_groups(int64_t rows, int64_t group)
{
    int64_t whole = rows / group, rest = rows % group;
    return whole + (rest > 1 || (rest == 1 && whole == 0));
}

/* Where group g ends: a last row alone belongs to the group before it. */
static int64_t group_end(int64_t g, int64_t groups, int64_t rows, int64_t group)
{
    return g + 1 == groups ? rows : (g + 1) * group;
}

/* A block of columns within a group of rows. */
struct patch {
    int64_t first_row, rows, first, count, columns;
    enum device_precision precision;
};

static void patch_load(real block[NORM_BLOCK], const void *x, int64_t row, const struct patch *p)
{
    norm_load(block, x, (p->first_row + row) * p->columns + p->first, p->count, p->precision);
}

static void patch_store(void *y, const real block[NORM_BLOCK], int64_t row, const struct patch *p)
{
    norm_store(y, (p->first_row + row) * p->columns + p->first, block, p->count, p->precision);
}

static void patch_statistics(real *restrict mean, real *restrict variance, const void *x,
                             const struct patch *p)
{
    real block[NORM_BLOCK], n = (real)p->rows;

    memset(mean, 0, (size_t)p->count * sizeof(*mean));
    memset(variance, 0, (size_t)p->count * sizeof(*variance));
    for (int64_t i = 0; i < p->rows; i++) {
        patch_load(block, x, i, p);
        for (int64_t j = 0; j < p->count; j++)
            mean[j] += block[j];
    }
    for (int64_t j = 0; j < p->count; j++)
        mean[j] /= n;
    for (int64_t i = 0; i < p->rows; i++) {
        patch_load(block, x, i, p);
        for (int64_t j = 0; j < p->count; j++) {
            real difference = block[j] - mean[j];
            variance[j] += difference * difference;
        }
    }
    for (int64_t j = 0; j < p->count; j++)
        variance[j] /= n;
}

/* y = (x - mean) inverse gain + offset; gain and offset are those of the patch's columns. */
static void patch_apply(void *y, const void *x, const real *restrict mean, const real *restrict inverse,
                        const real *restrict gain, const real *restrict offset, const struct patch *p)
{
    real block[NORM_BLOCK];

    for (int64_t i = 0; i < p->rows; i++) {
        patch_load(block, x, i, p);
        for (int64_t j = 0; j < p->count; j++)
            block[j] = (block[j] - mean[j]) * inverse[j] * gain[j] + offset[j];
        patch_store(y, block, i, p);
    }
}

static void move_running(real *restrict mean, real *restrict variance, const real *restrict of_mean,
                         const real *restrict of_variance, int64_t rows, int64_t count)
{
    real unbiased = (real)rows / (real)(rows - 1);

    for (int64_t j = 0; j < count; j++) {
        mean[j] += MOMENTUM * (of_mean[j] - mean[j]);
        variance[j] += MOMENTUM * (of_variance[j] * unbiased - variance[j]);
    }
}

void LOOPS(batch_norm)(void *y, real *saved, real *running, const void *x, const real *gain,
                       const real *offset, int64_t rows, int64_t columns, int64_t group,
                       enum device_precision precision)
{
    int64_t groups = norm_groups(rows, group);
    real mean[NORM_BLOCK], variance[NORM_BLOCK];

    for (int64_t g = 0; g < groups; g++, saved += 2 * columns)
        for (int64_t first = 0; first < columns; first += NORM_BLOCK) {
            struct patch p = {.first_row = g * group,
                              .rows = group_end(g, groups, rows, group) - g * group,
                              .first = first,
                              .count = norm_block_of(columns - first),
                              .columns = columns,
                              .precision = precision};

            patch_statistics(mean, variance, x, &p);
            if (p.rows > 1)
                move_running(running + first, running + columns + first, mean, variance, p.rows, p.count);
            for (int64_t j = 0; j < p.count; j++) {
                variance[j] = norm_inverse(variance[j]);
                saved[2 * (first + j)] = mean[j];
                saved[2 * (first + j) + 1] = variance[j];
            }
            patch_apply(y, x, mean, variance, gain + first, offset + first, &p);
        }
}

void LOOPS(batch_norm_apply)(void *y, const real *running, const void *x, const real *gain,
                             const real *offset, int64_t rows, int64_t columns,
                             enum device_precision precision)
{
    real inverse[NORM_BLOCK];

    for (int64_t first = 0; first < columns; first += NORM_BLOCK) {
        struct patch p = {.rows = rows,
                          .first = first,
                          .count = norm_block_of(columns - first),
                          .columns = columns,
                          .precision = precision};
        for (int64_t j = 0; j < p.count; j++)
            inverse[j] = norm_inverse(running[columns + first + j]);
        patch_apply(y, x, running + first, inverse, gain + first, offset + first, &p);
    }
}

/* sum = column sums of dy, cross = of dy (x - mean) inverse. */
static void patch_sums(real *restrict sum, real *restrict cross, const void *dy, const void *x,
                       const real *restrict mean, const real *restrict inverse, const struct patch *p)
{
    real slope[NORM_BLOCK], block[NORM_BLOCK];

    memset(sum, 0, (size_t)p->count * sizeof(*sum));
    memset(cross, 0, (size_t)p->count * sizeof(*cross));
    for (int64_t i = 0; i < p->rows; i++) {
        patch_load(slope, dy, i, p);
        patch_load(block, x, i, p);
        for (int64_t j = 0; j < p->count; j++) {
            sum[j] += slope[j];
            cross[j] += slope[j] * ((block[j] - mean[j]) * inverse[j]);
        }
    }
}

/* dx = gain inverse (dy - sum / n - normal cross / n) */
static void patch_backward(void *dx, const void *dy, const void *x, const real *restrict mean,
                           const real *restrict inverse, const real *restrict gain, const real *restrict sum,
                           const real *restrict cross, const struct patch *p)
{
    real slope[NORM_BLOCK], block[NORM_BLOCK], share = 1 / (real)p->rows;

    for (int64_t i = 0; i < p->rows; i++) {
        patch_load(slope, dy, i, p);
        patch_load(block, x, i, p);
        for (int64_t j = 0; j < p->count; j++) {
            real normal = (block[j] - mean[j]) * inverse[j];
            slope[j] = gain[j] * inverse[j] * (slope[j] - (sum[j] + normal * cross[j]) * share);
        }
        patch_store(dx, slope, i, p);
    }
}

void LOOPS(batch_norm_backward)(void *dx, real *dgain, real *doffset, const void *dy, const void *x,
                                const real *saved, const real *gain, int64_t rows, int64_t columns,
                                int64_t group, bool accumulate, enum device_precision precision)
{
    int64_t groups = norm_groups(rows, group);
    real mean[NORM_BLOCK], inverse[NORM_BLOCK], sum[NORM_BLOCK], cross[NORM_BLOCK];

    norm_start_sums(dgain, doffset, columns, accumulate);
    for (int64_t g = 0; g < groups; g++, saved += 2 * columns)
        for (int64_t first = 0; first < columns; first += NORM_BLOCK) {
            struct patch p = {.first_row = g * group,
                              .rows = group_end(g, groups, rows, group) - g * group,
                              .first = first,
                              .count = norm_block_of(columns - first),
                              .columns = columns,
                              .precision = precision};

            for (int64_t j = 0; j < p.count; j++) {
                mean[j] = saved[2 * (first + j)];
                inverse[j] = saved[2 * (first + j) + 1];
            }
            patch_sums(sum, cross, dy, x, mean, inverse, &p);
            for (int64_t j = 0; j < p.count; j++) {
                dgain[first + j] += cross[j];
                doffset[first + j] += sum[j];
            }
            patch_backward(dx, dy, x, mean, inverse, gain + first, sum, cross, &p);
        }
}
