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

/* What softmax's gradient lacks to be that of smoothed and weighted classes: with t_c = s / classes w_c, and
 * (1
 * - s) w_label besides for the label, it is scale (p_c sum(t) - t_c). Returns the row's loss. */
static double smoothed_row(real *restrict row, const real *restrict logits, double log_sum, int32_t label,
                           const real *class_weight, int64_t classes, double scale, double smoothing)
{
    double own = (1 - smoothing) * (class_weight ? (double)class_weight[label] : 1);
    double share = smoothing / (double)classes, all = own, loss = own * (log_sum - (double)logits[label]);

    for (int64_t c = 0; c < classes && smoothing > 0; c++) {
        double t = share * (class_weight ? (double)class_weight[c] : 1);
        loss += t * (log_sum - (double)logits[c]);
        all += t;
    }
    for (int64_t c = 0; c < classes; c++) {
        double t = share * (class_weight ? (double)class_weight[c] : 1);
        row[c] = (real)(scale * (all * (double)row[c] - t));
    }
    row[label] -= (real)(scale * own);
    return loss;
}

static void scale_row(real *restrict row, real factor, int64_t classes)
{
    for (int64_t j = 0; j < classes; j++)
        row[j] *= factor;
}

/* -log softmax(logits)[label] = maximum + log(sum of exp(logits - maximum)) - logits[label] */
void LOOPS(softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label,
                                  const real *class_weight, int64_t rows, int64_t classes, double scale,
                                  struct lane_state *state)
{
    bool plain = !class_weight && state->label_smoothing == 0;
    real maximum[WIDTH], sum[WIDTH];
    double loss = 0;

    for (int64_t first = 0; first < rows; first += WIDTH) {
        int64_t count = at_most(rows - first, WIDTH);

        rows_exponentials(gradient + first * classes, sum, maximum, logits + first * classes, count, classes);
        for (int64_t l = 0; l < count; l++) {
            int64_t at = (first + l) * classes;
            int32_t own = label[first + l];
            double log_sum = log((double)sum[l]) + (double)maximum[l];

            scale_row(gradient + at, (plain ? (real)scale : 1) / sum[l], classes);
            if (plain) {
                gradient[at + own] -= (real)scale;
                loss += log_sum - (double)logits[at + own];
            } else {
                loss += smoothed_row(gradient + at, logits + at, log_sum, own, class_weight, classes, scale,
                                     state->label_smoothing);
            }
        }
    }
    state->loss += loss;
}

/* softplus(z) = max(z, 0) + log(1 + exp(-|z|)); the logistic function from the same exponential. */
void LOOPS(binary_cross_entropy)(real *gradient, const real *logits, const int32_t *label,
                                 const real *class_weight, int64_t rows, double scale,
                                 struct lane_state *state)
{
    double s = state->label_smoothing, loss = 0;

    for (int64_t i = 0; i < rows; i++) {
        double z = (double)logits[i], q = label[i] * (1 - s) + s / 2;
        double weight = class_weight ? (double)class_weight[label[i]] : 1, tail = exp(-fabs(z));
        double logistic = (z < 0 ? tail : 1) / (1 + tail);

        loss += weight * ((z < 0 ? 0 : z) + log1p(tail) - z * q);
        gradient[i] = (real)(scale * weight * (logistic - q));
    }
    state->loss += loss;
}

void LOOPS(squared_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                          double scale, struct lane_state *state)
{
    double loss = 0;
    real factor = (real)(2 * scale);

    for (int64_t i = 0; i < count; i++) {
        real difference = prediction[i] - target[i];
        loss += (double)difference * (double)difference;
        gradient[i] = factor * difference;
    }
    state->loss += loss;
}

void LOOPS(huber_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                        double scale, struct lane_state *state)
{
    double delta = state->huber_delta, loss = 0;

    for (int64_t i = 0; i < count; i++) {
        double r = (double)prediction[i] - (double)target[i], size = fabs(r);
        loss += size > delta ? delta * (size - delta / 2) : r * r / 2; /* NaN stays NaN */
        gradient[i] = (real)(scale * (size > delta ? copysign(delta, r) : r));
    }
    state->loss += loss;
}
