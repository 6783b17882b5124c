/* The loops of the CPU backend, for one lane. The same sources are compiled once for each instruction set
 * (see CMakeLists.txt), giving one table each; cpu.c picks one by what the processor has. Results differ
 * between tables by rounding only (fused multiply-add), and a device's name says which one it uses.
 *
 * What a loop computes stands in device.h, at the operation of its name. `void *` tensors are stored in the
 * precision given. */
#ifndef RUNG_KERNELS_CPU_LOOPS_H
#define RUNG_KERNELS_CPU_LOOPS_H

#include "kernels/device.h"

struct cpu_loops {
    const char *instruction_set;

    /* To reals from 16-bit floats, and back to the nearest (ties to even; NaN stays NaN). */
    void (*widen)(real *y, const uint16_t *x, int64_t count, enum device_precision precision);
    void (*narrow)(uint16_t *y, const real *x, int64_t count, enum device_precision precision);
    /* y = x with 10 bits of mantissa. */
    void (*round_tf32)(real *y, const real *x, int64_t count);

    /* x (rows, columns) = f(x + bias), and y too, unless NULL; before, if not NULL, keeps f's argument. */
    void (*bias_activation)(real *x, void *y, void *before, const real *bias, int64_t rows, int64_t columns,
                            enum device_activation f, enum device_precision precision);
    /* sums (columns) = or += sum over rows of x. */
    void (*column_sums)(real *sums, const void *x, int64_t rows, int64_t columns, bool accumulate,
                        enum device_precision precision);
    void (*activation)(void *y, const void *x, int64_t count, enum device_activation f,
                       enum device_precision precision);
    void (*add)(void *y, const void *x, int64_t count, enum device_precision precision);
    void (*activation_backward)(void *gradient, const void *saved, const unsigned char *mask, int64_t count,
                                enum device_activation f, const struct lane_state *state,
                                enum device_precision precision);
    /* Of `count` elements of the effective batch from `first` on. */
    void (*dropout)(void *y, unsigned char *mask, int64_t first, int64_t count, uint32_t stream,
                    const struct lane_state *state, enum device_precision precision);

    void (*layer_norm)(void *y, real *saved, const void *x, const real *gain, const real *offset,
                       int64_t rows, int64_t columns, enum device_precision precision);
    void (*layer_norm_backward)(void *dx, real *dgain, real *doffset, const void *dy, const void *x,
                                const real *saved, const real *gain, int64_t rows, int64_t columns,
                                bool accumulate, enum device_precision precision);
    void (*batch_norm)(void *y, real *saved, real *running, const void *x, const real *gain,
                       const real *offset, int64_t rows, int64_t columns, int64_t group,
                       enum device_precision precision);
    void (*batch_norm_apply)(void *y, const real *running, const void *x, const real *gain,
                             const real *offset, int64_t rows, int64_t columns,
                             enum device_precision precision);
    void (*batch_norm_backward)(void *dx, real *dgain, real *doffset, const void *dy, const void *x,
                                const real *saved, const real *gain, int64_t rows, int64_t columns,
                                int64_t group, bool accumulate, enum device_precision precision);

    /* Add to state->loss. The gradient is real; it may lie where it is narrowed from. */
    void (*softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label,
                                  const real *class_weight, int64_t rows, int64_t classes, double scale,
                                  struct lane_state *state);
    void (*binary_cross_entropy)(real *gradient, const real *logits, const int32_t *label,
                                 const real *class_weight, int64_t rows, double scale,
                                 struct lane_state *state);
    void (*squared_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                          double scale, struct lane_state *state);
    void (*huber_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                        double scale, struct lane_state *state);

    /* The sum of squares; not finite if one of x is not. */
    double (*squares)(const real *x, int64_t count);
    /* One optimizer step over a stretch of parameters; wd = decayed ? state->weight_decay : 0. `ratio`
     * multiplies lars' gradient and lamb's learning rate. */
    void (*sgd)(real *weight, const real *gradient, real *velocity, int64_t count, bool decayed,
                const struct lane_state *state);
    void (*lars)(real *weight, const real *gradient, real *velocity, int64_t count, double ratio,
                 bool decayed, const struct lane_state *state);
    /* adam, or adamw when `decoupled`. */
    void (*adam)(real *weight, const real *gradient, real *mean, real *square, int64_t count, bool decayed,
                 bool decoupled, const struct lane_state *state);
    /* lamb: the moments, and the sum of u's squares; then the step. */
    double (*lamb_moments)(const real *weight, const real *gradient, real *mean, real *square, int64_t count,
                           bool decayed, const struct lane_state *state);
    void (*lamb)(real *weight, const real *mean, const real *square, int64_t count, double ratio,
                 bool decayed, const struct lane_state *state);
    bool (*finite)(const real *x, int64_t count);
};

/* The tables this build has, best first, ending in NULL; the last is for every processor. */
extern const struct cpu_loops *const cpu_loops_all[];
/* The best table this processor can run. */
const struct cpu_loops *cpu_loops_best(void);
bool cpu_loops_runs_here(const struct cpu_loops *loops);

#endif
