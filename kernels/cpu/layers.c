/* Activations, dropout and norms: the loops, lane by lane. */
#include "kernels/cpu/cpu_internal.h"

void cpu_activation(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count,
                    enum device_activation f)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->activation(LANE(y, l), LANE_CONST(x, l), count, f, lanes.precision);
}

void cpu_add(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->add(LANE(y, l), LANE_CONST(x, l), count, lanes.precision);
}

void cpu_dropout(struct device *device, struct lanes lanes, void *y, unsigned char *mask, int64_t first_row,
                 int64_t rows, int64_t columns, uint32_t stream, const struct lane_state *state)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->dropout(LANE(y, l), LANE(mask, l), first_row * columns, rows * columns, stream,
                                       LANE_CONST(state, l), lanes.precision);
}

void cpu_activation_backward(struct device *device, struct lanes lanes, void *gradient, const void *saved,
                             const unsigned char *mask, int64_t count, enum device_activation f,
                             const struct lane_state *state)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->activation_backward(LANE(gradient, l), LANE_CONST_OR_NULL(saved, l),
                                                   LANE_CONST_OR_NULL(mask, l), count, f,
                                                   LANE_CONST_OR_NULL(state, l), lanes.precision);
}

void cpu_layer_norm(struct device *device, struct lanes lanes, void *y, real *saved, const void *x,
                    const real *gain, const real *offset, int64_t rows, int64_t columns)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->layer_norm(LANE(y, l), LANE(saved, l), LANE_CONST(x, l), LANE_CONST(gain, l),
                                          LANE_CONST(offset, l), rows, columns, lanes.precision);
}

void cpu_layer_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain, real *doffset,
                             const void *dy, const void *x, const real *saved, const real *gain, int64_t rows,
                             int64_t columns, bool accumulate)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->layer_norm_backward(
            LANE(dx, l), LANE(dgain, l), LANE(doffset, l), LANE_CONST(dy, l), LANE_CONST(x, l),
            LANE_CONST(saved, l), LANE_CONST(gain, l), rows, columns, accumulate, lanes.precision);
}

void cpu_batch_norm(struct device *device, struct lanes lanes, void *y, real *saved, real *running,
                    const void *x, const real *gain, const real *offset, int64_t rows, int64_t columns,
                    int64_t group)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->batch_norm(LANE(y, l), LANE(saved, l), LANE(running, l), LANE_CONST(x, l),
                                          LANE_CONST(gain, l), LANE_CONST(offset, l), rows, columns, group,
                                          lanes.precision);
}

void cpu_batch_norm_apply(struct device *device, struct lanes lanes, void *y, const real *running,
                          const void *x, const real *gain, const real *offset, int64_t rows, int64_t columns)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->batch_norm_apply(LANE(y, l), LANE_CONST(running, l), LANE_CONST(x, l),
                                                LANE_CONST(gain, l), LANE_CONST(offset, l), rows, columns,
                                                lanes.precision);
}

void cpu_batch_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain, real *doffset,
                             const void *dy, const void *x, const real *saved, const real *gain, int64_t rows,
                             int64_t columns, int64_t group, bool accumulate)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->batch_norm_backward(
            LANE(dx, l), LANE(dgain, l), LANE(doffset, l), LANE_CONST(dy, l), LANE_CONST(x, l),
            LANE_CONST(saved, l), LANE_CONST(gain, l), rows, columns, group, accumulate, lanes.precision);
}
