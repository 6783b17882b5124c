/* What the files of one table share. Each is compiled with RUNG_LOOPS naming the instruction set; LOOPS(name)
 * gives a function its own symbol in each. */
#ifndef RUNG_KERNELS_CPU_LOOPS_INTERNAL_H
#define RUNG_KERNELS_CPU_LOOPS_INTERNAL_H

#include "kernels/cpu/loops.h"

#define LOOPS_JOIN_EXPANDED(name, set) name##_##set
#define LOOPS_JOIN(name, set) LOOPS_JOIN_EXPANDED(name, set)
#define LOOPS(name) LOOPS_JOIN(cpu_##name, RUNG_LOOPS)

/* Elements worked on together: one 512-bit register of floats. Sums run in as many partial sums, added
 * pairwise at the end, so that their order is part of the source and not of the compiler's choice. */
#define WIDTH 16

static inline real sum_pairwise(real partial[WIDTH])
{
    for (int step = WIDTH / 2; step > 0; step /= 2)
        for (int l = 0; l < step; l++)
            partial[l] += partial[l + step];
    return partial[0];
}

void LOOPS(bias_activation)(real *y, real *before, const real *bias, int64_t rows, int64_t columns,
                            enum device_activation f);
void LOOPS(column_sums)(real *sums, const real *x, int64_t rows, int64_t columns, bool accumulate);
void LOOPS(activation_backward)(real *gradient, const real *saved, const real *mask, int64_t count,
                                enum device_activation f);
void LOOPS(dropout)(real *y, real *mask, int64_t first, int64_t count, uint32_t stream,
                    const struct dropout_draw *draw);
double LOOPS(softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label, int64_t rows,
                                    int64_t classes, double scale);
double LOOPS(squared_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                            double scale);
void LOOPS(sgd)(real *weight, const real *gradient, real *velocity, int64_t count,
                const struct sgd_step *step);
void LOOPS(adamw)(real *weight, const real *gradient, real *mean, real *square, int64_t count,
                  const struct adamw_step *step);
bool LOOPS(finite)(const real *x, int64_t count);

extern const struct cpu_loops LOOPS(loops);

#endif
