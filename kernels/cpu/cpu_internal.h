/* What the files of the CPU backend share: the device, its lanes, scratch memory, and the operations of the
 * table (device.h), each called cpu_ and its name. */
#ifndef RUNG_KERNELS_CPU_CPU_INTERNAL_H
#define RUNG_KERNELS_CPU_CPU_INTERNAL_H

#include "kernels/cpu/loops.h"
#include "kernels/cpu/product.h"
#include "kernels/device.h"

/* Memory of the device's own, as large as any operation has needed. */
enum scratch_use { SCRATCH_LEFT, SCRATCH_RIGHT, SCRATCH_RESULT, SCRATCH_USES };

struct cpu {
    struct device device; /* first: the table's functions cast back */
    const struct cpu_loops *loops;
    struct products *products;
    struct scratch {
        void *memory;
        size_t bytes;
    } scratch[SCRATCH_USES];
    struct error failure; /* the first since the last synchronize */
};

static inline struct cpu *cpu_of(struct device *device)
{
    return (struct cpu *)device;
}

/* Tensor `p` of lane l. */
#define LANE(p, l) ((void *)((char *)(p) + (size_t)(l)*lanes.stride))
#define LANE_OR_NULL(p, l) ((p) ? LANE(p, l) : NULL)
#define LANE_CONST(p, l) ((const void *)((const char *)(p) + (size_t)(l)*lanes.stride))
#define LANE_CONST_OR_NULL(p, l) ((p) ? LANE_CONST(p, l) : NULL)

/* `count` reals, until the next call for the same use. NULL: no memory, noted as the device's failure. */
real *cpu_scratch(struct cpu *cpu, enum scratch_use use, int64_t count);
/* Keeps it for the next synchronize, unless one is kept already. */
void cpu_fail(struct cpu *cpu, const struct error *err);

void cpu_destroy(struct device *device);
int cpu_allocate(struct device *device, void **memory, size_t bytes, struct error *err);
void cpu_release(struct device *device, void *memory);
int cpu_share(struct device *device, const void **memory, const void *host, size_t bytes, struct error *err);
void cpu_unshare(struct device *device, const void *memory);
void cpu_transfer(struct device *device, void *to, const void *from, size_t bytes);
void cpu_copy(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes);
void cpu_zero(struct device *device, struct lanes lanes, void *memory, size_t bytes);
void cpu_memory(struct device *device, size_t *available, size_t *total);
int cpu_synchronize(struct device *device, struct error *err);
void cpu_step_begin(struct device *device, struct lanes lanes, struct lane_state *state, const double *rates);
void cpu_step_end(struct device *device, struct lanes lanes, struct lane_state *state);
void cpu_gather(struct device *device, struct lanes lanes, void *y, int64_t stride, const float *source,
                struct device_rows_of of, int64_t rows, int64_t columns);
void cpu_gather_real(struct device *device, struct lanes lanes, real *y, const float *source,
                     struct device_rows_of of, int64_t rows, int64_t columns);
void cpu_gather_integers(struct device *device, struct lanes lanes, int32_t *y, const int32_t *source,
                         struct device_rows_of of, int64_t rows, int64_t columns);
void cpu_embedding_forward(struct device *device, struct lanes lanes, void *y, int64_t stride, int64_t first,
                           const real *table, const int32_t *category, int64_t categories, int64_t which,
                           int64_t rows, int64_t width);
void cpu_embedding_backward(struct device *device, struct lanes lanes, real *dtable, const void *dy,
                            int64_t stride, int64_t first, const int32_t *category, int64_t categories,
                            int64_t which, int64_t rows, int64_t entries, int64_t width, bool accumulate);
void cpu_linear_forward(struct device *device, struct lanes lanes, void *y, void *before, const void *x,
                        const void *weight, const real *bias, int64_t rows, int64_t inputs, int64_t outputs,
                        enum device_activation f, bool wide);
void cpu_linear_backward_data(struct device *device, struct lanes lanes, void *dx, const void *dy,
                              const void *weight, int64_t rows, int64_t inputs, int64_t outputs);
void cpu_linear_backward_parameters(struct device *device, struct lanes lanes, real *dweight, real *dbias,
                                    const void *x, const void *dy, int64_t rows, int64_t inputs,
                                    int64_t outputs, bool accumulate);
void cpu_activation(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count,
                    enum device_activation f);
void cpu_add(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count);
void cpu_dropout(struct device *device, struct lanes lanes, void *y, unsigned char *mask, int64_t first_row,
                 int64_t rows, int64_t columns, uint32_t stream, const struct lane_state *state);
void cpu_activation_backward(struct device *device, struct lanes lanes, void *gradient, const void *saved,
                             const unsigned char *mask, int64_t count, enum device_activation f,
                             const struct lane_state *state);
void cpu_layer_norm(struct device *device, struct lanes lanes, void *y, real *saved, const void *x,
                    const real *gain, const real *offset, int64_t rows, int64_t columns);
void cpu_layer_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain, real *doffset,
                             const void *dy, const void *x, const real *saved, const real *gain, int64_t rows,
                             int64_t columns, bool accumulate);
void cpu_batch_norm(struct device *device, struct lanes lanes, void *y, real *saved, real *running,
                    const void *x, const real *gain, const real *offset, int64_t rows, int64_t columns,
                    int64_t group);
void cpu_batch_norm_apply(struct device *device, struct lanes lanes, void *y, const real *running,
                          const void *x, const real *gain, const real *offset, int64_t rows, int64_t columns);
void cpu_batch_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain, real *doffset,
                             const void *dy, const void *x, const real *saved, const real *gain, int64_t rows,
                             int64_t columns, int64_t group, bool accumulate);
void cpu_softmax_cross_entropy(struct device *device, struct lanes lanes, void *gradient, const real *logits,
                               const int32_t *label, const real *class_weight, int64_t rows, int64_t classes,
                               double scale, struct lane_state *state);
void cpu_binary_cross_entropy(struct device *device, struct lanes lanes, void *gradient, const real *logits,
                              const int32_t *label, const real *class_weight, int64_t rows, double scale,
                              struct lane_state *state);
void cpu_squared_error(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                       const real *target, int64_t count, double scale, struct lane_state *state);
void cpu_huber_error(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                     const real *target, int64_t count, double scale, struct lane_state *state);
void cpu_measure_gradient(struct device *device, struct lanes lanes, const real *gradient, int64_t count,
                          struct lane_state *state);
void cpu_update(struct device *device, struct lanes lanes, enum device_optimizer optimizer,
                const struct device_parameters *parameters, const struct lane_state *state);
void cpu_store(struct device *device, struct lanes lanes, void *stored, const real *x, int64_t count);
void cpu_finite(struct device *device, struct lanes lanes, bool *finite, const real *x, int64_t count);

#endif
