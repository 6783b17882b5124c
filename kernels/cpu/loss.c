/* Losses with their gradients in one pass. */
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/loops_internal.h"

#include <math.h>

static real row_maximum(const real *logits, int64_t classes)
{
    real maximum = logits[0];
    for (int64_t j = 1; j < classes; j++)
        maximum = logits[j] > maximum ? logits[j] : maximum;
    return maximum;
}

/* exps = exp(logits - maximum); returns their sum. */
static real row_exponentials(real *restrict exps, const real *restrict logits, int64_t classes, real maximum)
{
    real partial[WIDTH] = {0}, sum = 0;
    int64_t whole = classes - classes % WIDTH;

    for (int64_t j = 0; j < whole; j += WIDTH)
        for (int l = 0; l < WIDTH; l++) {
            real e = exponential(logits[j + l] - maximum);
            exps[j + l] = e;
            partial[l] += e;
        }
    if (whole < classes) {
        /* A whole vector here too: most problems have fewer than 16 classes. */
        real tail[WIDTH] = {0};
        for (int64_t j = whole; j < classes; j++)
            tail[j - whole] = logits[j] - maximum;
        for (int l = 0; l < WIDTH; l++)
            tail[l] = exponential(tail[l]);
        for (int64_t j = whole; j < classes; j++) {
            exps[j] = tail[j - whole];
            partial[j - whole] += exps[j];
        }
    }
    for (int l = 0; l < WIDTH; l++)
        sum += partial[l];
    return sum;
}

/* -log softmax(logits)[label] = maximum + log(sum of exp(logits - maximum)) - logits[label] */
double LOOPS(softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label, int64_t rows,
                                    int64_t classes, double scale)
{
    double loss = 0;

    for (int64_t i = 0; i < rows; i++, logits += classes) {
        real maximum = row_maximum(logits, classes), at_label = logits[label[i]], sum;

        sum = row_exponentials(gradient, logits, classes, maximum);
        real factor = (real)scale / sum;
        for (int64_t j = 0; j < classes; j++)
            gradient[j] *= factor;
        gradient[label[i]] -= (real)scale;
        gradient += classes;
        loss += log((double)sum) + ((double)maximum - (double)at_label);
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
