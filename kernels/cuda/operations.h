/* Every operation of the CUDA backend: cuda_X is X of the table in kernels/device.h, which says what it does.
 * One a file, but for those that share all their arithmetic. */
#ifndef RUNG_KERNELS_CUDA_OPERATIONS_H
#define RUNG_KERNELS_CUDA_OPERATIONS_H

#include "kernels/cuda/cuda.cuh"

extern "C" {
void cuda_destroy(struct device *device);
int cuda_allocate(struct device *device, void **memory, size_t bytes, struct error *err);
void cuda_release(struct device *device, void *memory);
int cuda_share(struct device *device, const void **memory, const void *host, size_t bytes, struct error *err);
void cuda_unshare(struct device *device, const void *memory);
void cuda_upload(struct device *device, void *memory, const void *host, size_t bytes);
void cuda_download(struct device *device, void *host, const void *memory, size_t bytes);
void cuda_copy(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes);
void cuda_zero(struct device *device, struct lanes lanes, void *memory, size_t bytes);
void cuda_memory(struct device *device, size_t *available, size_t *total);
int cuda_synchronize(struct device *device, struct error *err);
int cuda_record_begin(struct device *device, struct error *err);
int cuda_record_end(struct device *device, struct device_recording **recording, struct error *err);
void cuda_replay(struct device *device, const struct device_recording *recording, int64_t times);
void cuda_forget(struct device *device, struct device_recording *recording);
void cuda_step_begin(struct device *device, struct lanes lanes, struct lane_state *state,
                     const double *rates);
void cuda_step_end(struct device *device, struct lanes lanes, struct lane_state *state);
void cuda_gather(struct device *device, struct lanes lanes, void *y, int64_t stride, const float *source,
                 struct device_rows_of of, int64_t rows, int64_t columns);
void cuda_gather_real(struct device *device, struct lanes lanes, real *y, const float *source,
                      struct device_rows_of of, int64_t rows, int64_t columns);
void cuda_gather_integers(struct device *device, struct lanes lanes, int32_t *y, const int32_t *source,
                          struct device_rows_of of, int64_t rows, int64_t columns);
void cuda_embedding_forward(struct device *device, struct lanes lanes, void *y, int64_t stride, int64_t first,
                            const real *table, const int32_t *category, int64_t categories, int64_t which,
                            int64_t rows, int64_t width);
void cuda_embedding_backward(struct device *device, struct lanes lanes, real *dtable, const void *dy,
                             int64_t stride, int64_t first, const int32_t *category, int64_t categories,
                             int64_t which, int64_t rows, int64_t entries, int64_t width, bool accumulate);
void cuda_linear_forward(struct device *device, struct lanes lanes, void *y, void *before, const void *x,
                         const void *weight, const real *bias, int64_t rows, int64_t inputs, int64_t outputs,
                         enum device_activation f, bool wide);
void cuda_linear_backward_data(struct device *device, struct lanes lanes, void *dx, const void *dy,
                               const void *weight, int64_t rows, int64_t inputs, int64_t outputs);
void cuda_linear_backward_parameters(struct device *device, struct lanes lanes, real *dweight, real *dbias,
                                     const void *x, const void *dy, int64_t rows, int64_t inputs,
                                     int64_t outputs, bool accumulate);
void cuda_activation(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count,
                     enum device_activation f);
void cuda_add(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count);
void cuda_dropout(struct device *device, struct lanes lanes, void *y, unsigned char *mask, int64_t first_row,
                  int64_t rows, int64_t columns, uint32_t stream, const struct lane_state *state);
void cuda_activation_backward(struct device *device, struct lanes lanes, void *gradient, const void *saved,
                              const unsigned char *mask, int64_t count, enum device_activation f,
                              const struct lane_state *state);
void cuda_activation_backward_bias(struct device *device, struct lanes lanes, void *gradient, real *dbias,
                                   const void *saved, const unsigned char *mask, int64_t rows,
                                   int64_t columns, enum device_activation f, bool accumulate,
                                   const struct lane_state *state);
void cuda_layer_norm(struct device *device, struct lanes lanes, void *y, real *saved, const void *x,
                     const real *gain, const real *offset, int64_t rows, int64_t columns);
void cuda_layer_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain, real *doffset,
                              const void *dy, const void *x, const real *saved, const real *gain,
                              int64_t rows, int64_t columns, bool accumulate);
void cuda_batch_norm(struct device *device, struct lanes lanes, void *y, real *saved, real *running,
                     const void *x, const real *gain, const real *offset, int64_t rows, int64_t columns,
                     int64_t group);
void cuda_batch_norm_apply(struct device *device, struct lanes lanes, void *y, const real *running,
                           const void *x, const real *gain, const real *offset, int64_t rows,
                           int64_t columns);
void cuda_batch_norm_backward(struct device *device, struct lanes lanes, void *dx, real *dgain, real *doffset,
                              const void *dy, const void *x, const real *saved, const real *gain,
                              int64_t rows, int64_t columns, int64_t group, bool accumulate);
void cuda_softmax_cross_entropy(struct device *device, struct lanes lanes, void *gradient, const real *logits,
                                const int32_t *label, const real *class_weight, int64_t rows, int64_t classes,
                                double scale, struct lane_state *state);
void cuda_binary_cross_entropy(struct device *device, struct lanes lanes, void *gradient, const real *logits,
                               const int32_t *label, const real *class_weight, int64_t rows, double scale,
                               struct lane_state *state);
void cuda_squared_error(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                        const real *target, int64_t count, double scale, struct lane_state *state);
void cuda_huber_error(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                      const real *target, int64_t count, double scale, struct lane_state *state);
void cuda_measure_gradient(struct device *device, struct lanes lanes, const real *gradient, int64_t count,
                           struct lane_state *state);
void cuda_update(struct device *device, struct lanes lanes, enum device_optimizer optimizer,
                 const struct device_parameters *parameters, const struct lane_state *state);
void cuda_store(struct device *device, struct lanes lanes, void *stored, const real *x, int64_t count);
void cuda_finite(struct device *device, struct lanes lanes, bool *finite, const real *x, int64_t count);
}

#endif
