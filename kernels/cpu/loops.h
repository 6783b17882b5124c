/* The loops of the CPU backend, for one lane. The same sources are compiled once for each instruction set
 * (see CMakeLists.txt), giving one table each; cpu.c picks one by what the processor has. Results differ
 * between tables by rounding only (fused multiply-add), and a device's name says which one it uses. */
#ifndef RUNG_KERNELS_CPU_LOOPS_H
#define RUNG_KERNELS_CPU_LOOPS_H

#include "kernels/device.h"

struct cpu_loops {
    const char *instruction_set;

    /* y (rows, columns) = f(y + bias); before, if not NULL, keeps f's argument. */
    void (*bias_activation)(real *y, real *before, const real *bias, int64_t rows, int64_t columns,
                            enum device_activation f);
    /* sums (columns) = or += sum over rows of x. */
    void (*column_sums)(real *sums, const real *x, int64_t rows, int64_t columns, bool accumulate);
    void (*activation_backward)(real *gradient, const real *saved, const real *mask, int64_t count,
                                enum device_activation f);
    /* y *= mask = 0 or 1/(1-p) for `count` elements of the effective batch from `first` on. */
    void (*dropout)(real *y, real *mask, int64_t first, int64_t count, uint32_t stream,
                    const struct dropout_draw *draw);
    /* Return the loss's sum. */
    double (*softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label, int64_t rows,
                                    int64_t classes, double scale);
    double (*squared_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                            double scale);
    void (*sgd)(real *weight, const real *gradient, real *velocity, int64_t count,
                const struct sgd_step *step);
    void (*adamw)(real *weight, const real *gradient, real *mean, real *square, int64_t count,
                  const struct adamw_step *step);
    bool (*finite)(const real *x, int64_t count);
};

/* The tables this build has, best first, ending in NULL; the last is for every processor. */
extern const struct cpu_loops *const cpu_loops_all[];
/* The best table this processor can run. */
const struct cpu_loops *cpu_loops_best(void);
bool cpu_loops_runs_here(const struct cpu_loops *loops);

#endif
