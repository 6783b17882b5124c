/* The CUDA backend's device, and what every operation of it uses.
 *
 * An operation of the table (kernels/device.h) called X is `extern "C" void cuda_X(...)` with exactly the
 * table's signature, one operation a file; operations.h has the prototypes, device.cu fills the table. An
 * operation enqueues on cuda->stream and returns; it must be able to stand in a recording (a stream capture):
 * no allocation, no waiting, no host memory read after it returned. Kernels are launched by CUDA_LAUNCH
 * (launch.cuh), and after each launch stands
 *
 *     cuda_note(cuda, cudaGetLastError(), "gather");
 *
 * Lanes are a grid dimension: tensor p of lane l is cuda_lane(p, lanes.stride, l). The order of a sum may
 * depend on the sizes of one lane only, so that a lane's result is bitwise that of the trial alone. */
#ifndef RUNG_KERNELS_CUDA_CUDA_CUH
#define RUNG_KERNELS_CUDA_CUDA_CUH

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "kernels/device.h"
}

/* What devices of this build are called: "cuda:0". */
#ifdef RUNG_EMULATED_GPU
#define CUDA_KIND "emulated"
#else
#define CUDA_KIND "cuda"
#endif

/* Bytes of cuda->workspace. Operations follow each other on one stream, so each has all of it, and finds in
 * it what others left. */
#define CUDA_WORKSPACE_BYTES ((size_t)16 << 20)

struct cuda_pool;
struct cuda_products;

struct cuda_device {
    struct device device; /* first: the table's functions cast back */
    int number;
    int multiprocessors;
    cudaStream_t stream; /* not blocking: knows nothing of the legacy default stream */
    void *workspace;     /* CUDA_WORKSPACE_BYTES, for partial results */
    bool recording;
    bool unusable;        /* the context or the device is lost: nothing done on it will succeed again */
    struct error failure; /* the first since the last synchronize */
    struct cuda_pool *pool;
    struct cuda_products *products;
};

/* The backend's own device; makes it the calling thread's current one. */
static inline struct cuda_device *cuda_of(struct device *device)
{
    struct cuda_device *cuda = (struct cuda_device *)device;
    (void)cudaSetDevice(cuda->number);
    return cuda;
}

/* Keeps the first failure until synchronize tells it. `what`: "gather", "copying 4096 bytes to the device".
 */
void cuda_note(struct cuda_device *cuda, cudaError_t code, const char *what);

/* Is this a code after which the process can no longer use the device? */
bool cuda_is_lost(cudaError_t code);
/* "cuda:0: WHAT: cudaErrorName: text", ERROR_MEMORY or ERROR_RESOURCE; always returns -1. */
int cuda_error(struct error *err, int number, cudaError_t code, const char *what);

/* `bytes` of device memory will be at `host` after the next synchronize; `host` must live until then. Not in
 * a recording. */
void cuda_deliver(struct cuda_device *cuda, void *host, const void *memory, size_t bytes);

/* What product_linear.cu needs where a product's own epilogue cannot do it (bias.cu).
 *
 * bias_activation: y (rows, columns) = f(product + bias); product (rows, columns) real, a lane's
 * product_stride bytes behind the one before, may be y; bias (columns) real; `before`, when not NULL, keeps
 * f's argument. y is real when `wide`, else stored, as `before` is. So a result of 16 bits is rounded once,
 * and not before the bias as well. column_sums: sums (columns) real = (or +=) the column sums of x (rows,
 * columns) stored. */
extern "C" void cuda_bias_activation(struct cuda_device *cuda, struct lanes lanes, void *y, void *before,
                                     const real *product, size_t product_stride, const real *bias,
                                     int64_t rows, int64_t columns, enum device_activation f, bool wide);
extern "C" void cuda_column_sums(struct cuda_device *cuda, struct lanes lanes, real *sums, const void *x,
                                 int64_t rows, int64_t columns, bool accumulate);

/* Tensor p of a lane; the second also where p may be NULL. */
template <typename T> __host__ __device__ static inline T *cuda_lane(T *p, size_t stride, int64_t lane)
{
    return (T *)((char *)p + stride * (size_t)lane);
}
template <typename T>
__host__ __device__ static inline const T *cuda_lane(const T *p, size_t stride, int64_t lane)
{
    return (const T *)((const char *)p + stride * (size_t)lane);
}
template <typename T>
__host__ __device__ static inline T *cuda_lane_or_null(T *p, size_t stride, int64_t lane)
{
    return p ? cuda_lane(p, stride, lane) : NULL;
}

#endif
