/* The CPU backend's table: lanes are a loop, memory is the host's, products and loops do the work. */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/loops.h"
#include "kernels/cpu/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cpu {
    struct device device; /* first: the table's functions cast back */
    const struct cpu_loops *loops;
    struct products *products;
    struct error failure; /* the first since the last synchronize */
};

static struct cpu *cpu_of(struct device *device)
{
    return (struct cpu *)device;
}

/* Tensor `p` of lane l. */
#define LANE(p, l) ((void *)((char *)(p) + (size_t)(l)*lanes.stride))
#define LANE_OR_NULL(p, l) ((p) ? LANE(p, l) : NULL)
#define LANE_CONST(p, l) ((const void *)((const char *)(p) + (size_t)(l)*lanes.stride))
#define LANE_CONST_OR_NULL(p, l) ((p) ? LANE_CONST(p, l) : NULL)

static void cpu_destroy(struct device *device)
{
    products_destroy(cpu_of(device)->products);
    free(device);
}

static int cpu_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    size_t rounded = (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;

    (void)device;
    if (rounded < bytes ||
        posix_memalign(memory, DEVICE_ALIGNMENT, rounded ? rounded : DEVICE_ALIGNMENT) != 0)
        return error_set(err, ERROR_MEMORY, "no memory for %zu bytes", bytes);
    memset(*memory, 0, rounded);
    return 0;
}

static void cpu_release(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

static int cpu_share(struct device *device, const void **memory, const void *host, size_t bytes,
                     struct error *err)
{
    (void)device;
    (void)bytes;
    (void)err;
    *memory = host;
    return 0;
}

static void cpu_unshare(struct device *device, const void *memory)
{
    (void)device;
    (void)memory;
}

static void cpu_transfer(struct device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
}

static void cpu_copy(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++)
        memcpy(LANE(to, l), LANE_CONST(from, l), bytes);
}

static void cpu_zero(struct device *device, struct lanes lanes, void *memory, size_t bytes)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++)
        memset(LANE(memory, l), 0, bytes);
}

static int cpu_synchronize(struct device *device, struct error *err)
{
    struct cpu *cpu = cpu_of(device);
    struct error failure = cpu->failure;

    if (failure.code == ERROR_NONE)
        return 0;
    cpu->failure.code = ERROR_NONE;
    return error_set(err, failure.code, "%s", failure.message);
}

static void gather_row(real *restrict y, const float *restrict source, int64_t columns)
{
#ifdef RUNG_REAL_DOUBLE
    for (int64_t j = 0; j < columns; j++)
        y[j] = source[j];
#else
    memcpy(y, source, (size_t)columns * sizeof(*y));
#endif
}

static void cpu_gather(struct device *device, struct lanes lanes, real *y, const float *source,
                       const int32_t *index, int64_t rows, int64_t columns)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++) {
        real *to = LANE(y, l);
        const int32_t *from = LANE_CONST_OR_NULL(index, l);
        for (int64_t i = 0; i < rows; i++)
            gather_row(to + i * columns, source + (from ? from[i] : i) * columns, columns);
    }
}

static void cpu_gather_labels(struct device *device, struct lanes lanes, int32_t *y, const int32_t *source,
                              const int32_t *index, int64_t rows)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++) {
        int32_t *to = LANE(y, l);
        const int32_t *from = LANE_CONST_OR_NULL(index, l);
        for (int64_t i = 0; i < rows; i++)
            to[i] = source[from ? from[i] : i];
    }
}

static void multiply(struct cpu *cpu, const struct product_shape *shape, real *c, const real *a,
                     const real *b)
{
    struct error err;
    if (product_run(cpu->products, shape, c, a, b, &err) != 0 && cpu->failure.code == ERROR_NONE)
        cpu->failure = err;
}

static void cpu_linear_forward(struct device *device, struct lanes lanes, real *y, real *before,
                               const real *x, const real *weight, const real *bias, int64_t rows,
                               int64_t inputs, int64_t outputs, enum device_activation f)
{
    struct cpu *cpu = cpu_of(device);
    struct product_shape shape = {.m = rows, .n = outputs, .k = inputs};

    for (int64_t l = 0; l < lanes.count; l++) {
        multiply(cpu, &shape, LANE(y, l), LANE_CONST(x, l), LANE_CONST(weight, l));
        cpu->loops->bias_activation(LANE(y, l), LANE_OR_NULL(before, l), LANE_CONST(bias, l), rows, outputs,
                                    f);
    }
}

static void cpu_linear_backward_data(struct device *device, struct lanes lanes, real *dx, const real *dy,
                                     const real *weight, int64_t rows, int64_t inputs, int64_t outputs)
{
    struct product_shape shape = {.m = rows, .n = inputs, .k = outputs, .transpose_b = true};

    for (int64_t l = 0; l < lanes.count; l++)
        multiply(cpu_of(device), &shape, LANE(dx, l), LANE_CONST(dy, l), LANE_CONST(weight, l));
}

static void cpu_linear_backward_parameters(struct device *device, struct lanes lanes, real *dweight,
                                           real *dbias, const real *x, const real *dy, int64_t rows,
                                           int64_t inputs, int64_t outputs, bool accumulate)
{
    struct cpu *cpu = cpu_of(device);
    struct product_shape shape = {
        .m = inputs, .n = outputs, .k = rows, .transpose_a = true, .accumulate = accumulate};

    for (int64_t l = 0; l < lanes.count; l++) {
        multiply(cpu, &shape, LANE(dweight, l), LANE_CONST(x, l), LANE_CONST(dy, l));
        cpu->loops->column_sums(LANE(dbias, l), LANE_CONST(dy, l), rows, outputs, accumulate);
    }
}

static void cpu_dropout(struct device *device, struct lanes lanes, real *y, real *mask, int64_t first_row,
                        int64_t rows, int64_t columns, uint32_t stream, const struct dropout_draw *draws)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->dropout(LANE(y, l), LANE(mask, l), first_row * columns, rows * columns, stream,
                                       &draws[l]);
}

static void cpu_activation_backward(struct device *device, struct lanes lanes, real *gradient,
                                    const real *saved, const real *mask, int64_t count,
                                    enum device_activation f)
{
    for (int64_t l = 0; l < lanes.count; l++)
        cpu_of(device)->loops->activation_backward(LANE(gradient, l), LANE_CONST(saved, l),
                                                   LANE_CONST_OR_NULL(mask, l), count, f);
}

static void cpu_softmax_cross_entropy(struct device *device, struct lanes lanes, double *loss, real *gradient,
                                      const real *logits, const int32_t *label, int64_t rows, int64_t classes,
                                      double scale)
{
    for (int64_t l = 0; l < lanes.count; l++)
        *(double *)LANE(loss, l) += cpu_of(device)->loops->softmax_cross_entropy(
            LANE(gradient, l), LANE_CONST(logits, l), LANE_CONST(label, l), rows, classes, scale);
}

static void cpu_squared_error(struct device *device, struct lanes lanes, double *loss, real *gradient,
                              const real *prediction, const real *target, int64_t count, double scale)
{
    for (int64_t l = 0; l < lanes.count; l++)
        *(double *)LANE(loss, l) += cpu_of(device)->loops->squared_error(
            LANE(gradient, l), LANE_CONST(prediction, l), LANE_CONST(target, l), count, scale);
}

static void cpu_sgd(struct device *device, struct lanes lanes, real *weight, const real *gradient,
                    real *velocity, int64_t count, int64_t decayed, const struct sgd_step *steps)
{
    for (int64_t l = 0; l < lanes.count; l++) {
        real *w = LANE(weight, l), *v = LANE_OR_NULL(velocity, l);
        const real *g = LANE_CONST(gradient, l);
        struct sgd_step plain = steps[l];
        plain.weight_decay = 0;
        cpu_of(device)->loops->sgd(w, g, v, decayed, &steps[l]);
        cpu_of(device)->loops->sgd(w + decayed, g + decayed, v ? v + decayed : NULL, count - decayed, &plain);
    }
}

static void cpu_adamw(struct device *device, struct lanes lanes, real *weight, const real *gradient,
                      real *mean, real *square, int64_t count, int64_t decayed,
                      const struct adamw_step *steps)
{
    for (int64_t l = 0; l < lanes.count; l++) {
        real *w = LANE(weight, l), *m = LANE(mean, l), *v = LANE(square, l);
        const real *g = LANE_CONST(gradient, l);
        struct adamw_step plain = steps[l];
        plain.weight_decay = 0;
        cpu_of(device)->loops->adamw(w, g, m, v, decayed, &steps[l]);
        cpu_of(device)->loops->adamw(w + decayed, g + decayed, m + decayed, v + decayed, count - decayed,
                                     &plain);
    }
}

static void cpu_finite(struct device *device, struct lanes lanes, bool *finite, const real *x, int64_t count)
{
    for (int64_t l = 0; l < lanes.count; l++)
        finite[l] = cpu_of(device)->loops->finite(LANE_CONST(x, l), count);
}

static const struct device_operations cpu_operations = {
    .destroy = cpu_destroy,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .share = cpu_share,
    .unshare = cpu_unshare,
    .upload = cpu_transfer,
    .download = cpu_transfer,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .synchronize = cpu_synchronize,
    .gather = cpu_gather,
    .gather_labels = cpu_gather_labels,
    .linear_forward = cpu_linear_forward,
    .linear_backward_data = cpu_linear_backward_data,
    .linear_backward_parameters = cpu_linear_backward_parameters,
    .dropout = cpu_dropout,
    .activation_backward = cpu_activation_backward,
    .softmax_cross_entropy = cpu_softmax_cross_entropy,
    .squared_error = cpu_squared_error,
    .sgd = cpu_sgd,
    .adamw = cpu_adamw,
    .finite = cpu_finite,
};

/* "cpu/avx512_core", or "cpu/avx2+avx512" where oneDNN was told to use another instruction set than the loops
 * do. */
static void name_device(struct cpu *cpu)
{
    const char *products = products_instruction_set(), *loops = cpu->loops->instruction_set;
    bool same = strncmp(products, loops, strlen(loops)) == 0;

    snprintf(cpu->device.name, sizeof(cpu->device.name), "cpu/%s%s%s", products, same ? "" : "+",
             same ? "" : loops);
}

struct device *cpu_create(const char *number, struct error *err)
{
    struct cpu *cpu = calloc(1, sizeof(*cpu));

    if (!cpu) {
        error_set(err, ERROR_MEMORY, "no memory for the device");
        return NULL;
    }
    if (number[0] == '\0' || number[strspn(number, "0123456789")] != '\0') {
        error_set(err, ERROR_RESOURCE, "device 'cpu:%s': expected a number behind 'cpu:'", number);
        free(cpu);
        return NULL;
    }
    cpu->products = products_create(err);
    if (!cpu->products) {
        free(cpu);
        return NULL;
    }
    cpu->loops = cpu_loops_best();
    cpu->device.operations = &cpu_operations;
    name_device(cpu);
    return &cpu->device;
}
