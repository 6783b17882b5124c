/* Linear layers. Products of 16-bit operands run on the processor's own bf16 where it has that; else operands
 * are widened into scratch memory and multiplied as reals, which gives results of the same class (exact
 * products, sums in float32). So does tf32, of rounded operands. */
#include "kernels/cpu/cpu_internal.h"

static bool is_narrow(enum device_precision precision)
{
    return device_stored_size(precision) == 2;
}

static bool is_native(enum device_precision precision)
{
    return precision == DEVICE_BF16 && products_have_bf16();
}

/* A stored operand as product_run can take it; NULL: no memory. */
static const void *operand(struct cpu *cpu, enum scratch_use use, const void *x, int64_t count,
                           enum device_precision precision)
{
    real *copy;

    if (precision == DEVICE_FP32 || is_native(precision))
        return x;
    copy = cpu_scratch(cpu, use, count);
    if (copy && precision == DEVICE_TF32)
        cpu->loops->round_tf32(copy, x, count);
    else if (copy)
        cpu->loops->widen(copy, x, count, precision);
    return copy;
}

/* c, real or (bf16_result) native, = product of stored operands. */
static bool multiply(struct cpu *cpu, struct product_shape *shape, void *c, const void *a, const void *b,
                     enum device_precision precision)
{
    const void *left = operand(cpu, SCRATCH_LEFT, a, shape->m * shape->k, precision);
    const void *right = operand(cpu, SCRATCH_RIGHT, b, shape->k * shape->n, precision);
    struct error err;

    if (!left || !right)
        return false;
    shape->bf16 = is_native(precision);
    if (product_run(cpu->products, shape, c, left, right, &err) == 0)
        return true;
    cpu_fail(cpu, &err);
    return false;
}

static void lane_forward(struct cpu *cpu, void *y, void *before, const void *x, const void *weight,
                         const real *bias, struct product_shape *shape, enum device_activation f,
                         enum device_precision precision, bool wide)
{
    bool narrowed = is_narrow(precision) && !wide;
    real *result = narrowed ? cpu_scratch(cpu, SCRATCH_RESULT, shape->m * shape->n) : y;

    if (result && multiply(cpu, shape, result, x, weight, precision))
        cpu->loops->bias_activation(result, narrowed ? y : NULL, before, bias, shape->m, shape->n, f,
                                    precision);
}

void cpu_linear_forward(struct device *device, struct lanes lanes, void *y, void *before, const void *x,
                        const void *weight, const real *bias, int64_t rows, int64_t inputs, int64_t outputs,
                        enum device_activation f, bool wide)
{
    struct product_shape shape = {.m = rows, .n = outputs, .k = inputs};

    for (int64_t l = 0; l < lanes.count; l++)
        lane_forward(cpu_of(device), LANE(y, l), LANE_OR_NULL(before, l), LANE_CONST(x, l),
                     LANE_CONST(weight, l), LANE_CONST(bias, l), &shape, f, lanes.precision, wide);
}

static void lane_backward_data(struct cpu *cpu, void *dx, const void *dy, const void *weight,
                               struct product_shape *shape, enum device_precision precision)
{
    bool narrowed = is_narrow(precision) && !is_native(precision);
    int64_t count = shape->m * shape->n;
    real *result = narrowed ? cpu_scratch(cpu, SCRATCH_RESULT, count) : dx;

    shape->bf16_result = is_native(precision);
    if (result && multiply(cpu, shape, result, dy, weight, precision) && narrowed)
        cpu->loops->narrow(dx, result, count, precision);
}

void cpu_linear_backward_data(struct device *device, struct lanes lanes, void *dx, const void *dy,
                              const void *weight, int64_t rows, int64_t inputs, int64_t outputs)
{
    struct product_shape shape = {.m = rows, .n = inputs, .k = outputs, .transpose_b = true};

    for (int64_t l = 0; l < lanes.count; l++)
        lane_backward_data(cpu_of(device), LANE(dx, l), LANE_CONST(dy, l), LANE_CONST(weight, l), &shape,
                           lanes.precision);
}

void cpu_linear_backward_parameters(struct device *device, struct lanes lanes, real *dweight, real *dbias,
                                    const void *x, const void *dy, int64_t rows, int64_t inputs,
                                    int64_t outputs, bool accumulate)
{
    struct cpu *cpu = cpu_of(device);
    struct product_shape shape = {
        .m = inputs, .n = outputs, .k = rows, .transpose_a = true, .accumulate = accumulate};

    for (int64_t l = 0; l < lanes.count; l++) {
        multiply(cpu, &shape, LANE(dweight, l), LANE_CONST(x, l), LANE_CONST(dy, l), lanes.precision);
        cpu->loops->column_sums(LANE(dbias, l), LANE_CONST(dy, l), rows, outputs, accumulate,
                                lanes.precision);
    }
}
