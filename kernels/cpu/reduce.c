/* Reductions over a block of parameters or gradients. */
#include "kernels/cpu/loops_internal.h"

/* x - x is 0 for a finite x and NaN for all others; a sum of them is 0 or NaN. */
bool LOOPS(finite)(const real *x, int64_t count)
{
    real partial[WIDTH] = {0};
    int64_t i = 0;

    for (; i + WIDTH <= count; i += WIDTH)
        for (int l = 0; l < WIDTH; l++)
            partial[l] += x[i + l] - x[i + l];
    for (; i < count; i++)
        partial[0] += x[i] - x[i];
    return sum_pairwise(partial) == 0;
}

/* In float64, where no square of a float32 overflows: the sum is finite just if all of x are. */
double LOOPS(squares)(const real *x, int64_t count)
{
    double partial[WIDTH] = {0};
    int64_t i = 0;

    for (; i + WIDTH <= count; i += WIDTH)
        for (int l = 0; l < WIDTH; l++)
            partial[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < count; i++)
        partial[i % WIDTH] += (double)x[i] * (double)x[i];
    return sum_pairwise_double(partial);
}
