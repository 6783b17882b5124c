/* Losses. Gradients of 16 bits are computed as reals in scratch memory first: outputs are narrow. */
#include "kernels/cpu/cpu_internal.h"

static real *gradient_open(struct cpu *cpu, void *gradient, int64_t count, enum device_precision precision)
{
    if (device_stored_size(precision) == sizeof(real))
        return gradient;
    return cpu_scratch(cpu, SCRATCH_RESULT, count);
}

static void gradient_close(struct cpu *cpu, void *gradient, const real *computed, int64_t count,
                           enum device_precision precision)
{
    if (computed != gradient)
        cpu->loops->narrow(gradient, computed, count, precision);
}

void cpu_softmax_cross_entropy(struct device *device, struct lanes lanes, void *gradient, const real *logits,
                               const int32_t *label, const real *class_weight, int64_t rows, int64_t classes,
                               double scale, struct lane_state *state)
{
    struct cpu *cpu = cpu_of(device);

    for (int64_t l = 0; l < lanes.count; l++) {
        struct lane_state *own = LANE(state, l);
        real *g = gradient_open(cpu, LANE(gradient, l), rows * classes, lanes.precision);
        if (!g)
            return;
        cpu->loops->softmax_cross_entropy(g, LANE_CONST(logits, l), LANE_CONST(label, l), class_weight, rows,
                                          classes, scale * own->loss_scale, own);
        gradient_close(cpu, LANE(gradient, l), g, rows * classes, lanes.precision);
    }
}

void cpu_binary_cross_entropy(struct device *device, struct lanes lanes, void *gradient, const real *logits,
                              const int32_t *label, const real *class_weight, int64_t rows, double scale,
                              struct lane_state *state)
{
    struct cpu *cpu = cpu_of(device);

    for (int64_t l = 0; l < lanes.count; l++) {
        struct lane_state *own = LANE(state, l);
        real *g = gradient_open(cpu, LANE(gradient, l), rows, lanes.precision);
        if (!g)
            return;
        cpu->loops->binary_cross_entropy(g, LANE_CONST(logits, l), LANE_CONST(label, l), class_weight, rows,
                                         scale * own->loss_scale, own);
        gradient_close(cpu, LANE(gradient, l), g, rows, lanes.precision);
    }
}

typedef void error_loop_f(real *gradient, const real *prediction, const real *target, int64_t count,
                          double scale, struct lane_state *state);

static void each_error(struct cpu *cpu, error_loop_f *loop, struct lanes lanes, void *gradient,
                       const real *prediction, const real *target, int64_t count, double scale,
                       struct lane_state *state)
{
    for (int64_t l = 0; l < lanes.count; l++) {
        struct lane_state *own = LANE(state, l);
        real *g = gradient_open(cpu, LANE(gradient, l), count, lanes.precision);
        if (!g)
            return;
        loop(g, LANE_CONST(prediction, l), LANE_CONST(target, l), count, scale * own->loss_scale, own);
        gradient_close(cpu, LANE(gradient, l), g, count, lanes.precision);
    }
}

void cpu_squared_error(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                       const real *target, int64_t count, double scale, struct lane_state *state)
{
    each_error(cpu_of(device), cpu_of(device)->loops->squared_error, lanes, gradient, prediction, target,
               count, scale, state);
}

void cpu_huber_error(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                     const real *target, int64_t count, double scale, struct lane_state *state)
{
    each_error(cpu_of(device), cpu_of(device)->loops->huber_error, lanes, gradient, prediction, target, count,
               scale, state);
}
