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

static inline double sum_pairwise_double(double partial[WIDTH])
{
    for (int step = WIDTH / 2; step > 0; step /= 2)
        for (int l = 0; l < step; l++)
            partial[l] += partial[l + step];
    return partial[0];
}

/* Dropout's threshold t, and 1 / (1 - t / 2^16): of the probability there is, so that the mean is kept. */
static inline uint32_t dropout_threshold(const struct lane_state *state)
{
    double t = state->dropout * 65536 + 0.5;
    return t < 65535 ? (uint32_t)t : 65535;
}

static inline real dropout_factor(const struct lane_state *state)
{
    return (real)(65536.0 / (65536.0 - dropout_threshold(state)));
}

void LOOPS(widen)(real *y, const uint16_t *x, int64_t count, enum device_precision precision);
void LOOPS(narrow)(uint16_t *y, const real *x, int64_t count, enum device_precision precision);
void LOOPS(round_tf32)(real *y, const real *x, int64_t count);
void LOOPS(bias_activation)(real *x, void *y, void *before, const real *bias, int64_t rows, int64_t columns,
                            enum device_activation f, enum device_precision precision);
void LOOPS(column_sums)(real *sums, const void *x, int64_t rows, int64_t columns, bool accumulate,
                        enum device_precision precision);
void LOOPS(activation)(void *y, const void *x, int64_t count, enum device_activation f,
                       enum device_precision precision);
void LOOPS(add)(void *y, const void *x, int64_t count, enum device_precision precision);
void LOOPS(activation_backward)(void *gradient, const void *saved, const unsigned char *mask, int64_t count,
                                enum device_activation f, const struct lane_state *state,
                                enum device_precision precision);
void LOOPS(dropout)(void *y, unsigned char *mask, int64_t first, int64_t count, uint32_t stream,
                    const struct lane_state *state, enum device_precision precision);
void LOOPS(layer_norm)(void *y, real *saved, const void *x, const real *gain, const real *offset,
                       int64_t rows, int64_t columns, enum device_precision precision);
void LOOPS(layer_norm_backward)(void *dx, real *dgain, real *doffset, const void *dy, const void *x,
                                const real *saved, const real *gain, int64_t rows, int64_t columns,
                                bool accumulate, enum device_precision precision);
void LOOPS(batch_norm)(void *y, real *saved, real *running, const void *x, const real *gain,
                       const real *offset, int64_t rows, int64_t columns, int64_t group,
                       enum device_precision precision);
void LOOPS(batch_norm_apply)(void *y, const real *running, const void *x, const real *gain,
                             const real *offset, int64_t rows, int64_t columns,
                             enum device_precision precision);
void LOOPS(batch_norm_backward)(void *dx, real *dgain, real *doffset, const void *dy, const void *x,
                                const real *saved, const real *gain, int64_t rows, int64_t columns,
                                int64_t group, bool accumulate, enum device_precision precision);
void LOOPS(softmax_cross_entropy)(real *gradient, const real *logits, const int32_t *label,
                                  const real *class_weight, int64_t rows, int64_t classes, double scale,
                                  struct lane_state *state);
void LOOPS(binary_cross_entropy)(real *gradient, const real *logits, const int32_t *label,
                                 const real *class_weight, int64_t rows, double scale,
                                 struct lane_state *state);
void LOOPS(squared_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                          double scale, struct lane_state *state);
void LOOPS(huber_error)(real *gradient, const real *prediction, const real *target, int64_t count,
                        double scale, struct lane_state *state);
double LOOPS(squares)(const real *x, int64_t count);
void LOOPS(sgd)(real *weight, const real *gradient, real *velocity, int64_t count, bool decayed,
                const struct lane_state *state);
void LOOPS(lars)(real *weight, const real *gradient, real *velocity, int64_t count, double ratio,
                 bool decayed, const struct lane_state *state);
void LOOPS(adam)(real *weight, const real *gradient, real *mean, real *square, int64_t count, bool decayed,
                 bool decoupled, const struct lane_state *state);
double LOOPS(lamb_moments)(const real *weight, const real *gradient, real *mean, real *square, int64_t count,
                           bool decayed, const struct lane_state *state);
void LOOPS(lamb)(real *weight, const real *mean, const real *square, int64_t count, double ratio,
                 bool decayed, const struct lane_state *state);
bool LOOPS(finite)(const real *x, int64_t count);

extern const struct cpu_loops LOOPS(loops);

#endif
