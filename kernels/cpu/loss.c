/* Losses with their gradients in one pass. */
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/loops_internal.h"

#include <math.h>

/* Softmax works on 16 rows at a time, one a vector element, 16 classes after another: most problems have
 * fewer classes than a vector has elements, and a row alone would be all latency (measured: 80 ns a row of
 * 10, against 17 ns so). */
struct tile {
    real value[WIDTH][WIDTH]; /* (classes, rows) */
};

static inline int64_t at_most(int64_t count, int64_t limit)
{
    return count < limit ? count : limit;
}

static void tile_load(struct tile *tile, const real *x, int64_t rows, int64_t columns, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            tile->value[j][i] = x[i * stride + j];
}

static void tile_store(real *x, const struct tile *tile, int64_t rows, int64_t columns, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            x[i * stride + j] = tile->value[j][i];
}

static void tile_maximum(real maximum[WIDTH], const struct tile *tile, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int l = 0; l < WIDTH; l++)
            maximum[l] = tile->value[j][l] > maximum[l] ? tile->value[j][l] : maximum[l];
}

static void tile_exponentials(struct tile *tile, real sum[WIDTH], const real maximum[WIDTH], int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int l = 0; l < WIDTH; l++) {
            real e = exponential(tile->value[j][l] - maximum[l]);
            tile->value[j][l] = e;
            sum[l] += e;
        }
}

/* exps = exp(logits - the row's maximum), and the rows' sums of them; at most 16 rows. */
static void rows_exponentials(real *exps, real sum[WIDTH], real maximum[WIDTH], const real *logits,
                              int64_t rows, int64_t classes)
{
    struct tile tile = {{{0}}};

    for (int l = 0; l < WIDTH; l++) {
        sum[l] = 0;
        maximum[l] = -INFINITY;
    }
    for (int64_t j = 0; j < classes; j += WIDTH) {
        tile_load(&tile, logits + j, rows, at_most(classes - j, WIDTH), classes);
        tile_maximum(maximum, &tile, at_most(classes - j, WIDTH));
    }
    for (int64_t j = 0; j < classes; j += WIDTH) {
        int64_t columns = at_most(classes - j, WIDTH);
        if (classes > WIDTH)
            tile_load(&tile, logits + j, rows, columns, classes);
        tile_exponentials(&tile, sum, maximum, columns);
        tile_store(exps + j, &tile, rows, columns, classes);
    }
}

/* -log softmax(logits)[label] = maximum + log(sum of exp(logits - maximum)) - logits[label] */
double LOOPS(softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label, int64_t rows,
                                    int64_t classes, double scale)
{
    real maximum[WIDTH], sum[WIDTH];
    double loss = 0;

    for (int64_t first = 0; first < rows; first += WIDTH) {
        int64_t count = at_most(rows - first, WIDTH);

        rows_exponentials(gradient + first * classes, sum, maximum, logits + first * classes, count, classes);
        for (int64_t l = 0; l < count; l++) {
            real *row = gradient + (first + l) * classes, factor = (real)scale / sum[l];
            for (int64_t j = 0; j < classes; j++)
                row[j] *= factor;
            row[label[first + l]] -= (real)scale;
            loss += log((double)sum[l]) + (double)maximum[l];
            loss -= (double)logits[(first + l) * classes + label[first + l]];
        }
    }
    return loss;
}

double LOOPS(squared_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                            double scale)
{
    double loss = 0;
    real factor = (real)(2 * scale);

    for (int64_t i = 0; i < count; i++) {
        real difference = prediction[i] - target[i];
        loss += (double)difference * (double)difference;
        gradient[i] = factor * difference;
    }
    return loss;
}
