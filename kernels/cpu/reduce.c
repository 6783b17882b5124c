/* Is every number of a block finite? */
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
