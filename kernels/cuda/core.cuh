/* The backend's own parts, which stand behind the operations. */
#ifndef RUNG_KERNELS_CUDA_CORE_CUH
#define RUNG_KERNELS_CUDA_CORE_CUH

#include "kernels/cuda/operations.h"

/* The device of that number with its context, stream and memory pool; NULL when it cannot be had. */
struct device *cuda_create(int number, struct error *err);

/* A failure that is no CUDA code, kept like one of cuda_note. */
void cuda_fail(struct cuda_device *cuda, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Memory pool, pinned staging, what is shared; NULL-safe destroy. */
int cuda_pool_create(struct cuda_device *cuda, struct error *err);
void cuda_pool_destroy(struct cuda_device *cuda);

/* Pinned memory between host and device (transfer.cu). */
struct cuda_staging;
struct cuda_staging *cuda_staging_create(int number, struct error *err);
void cuda_staging_destroy(struct cuda_staging *staging);
/* Hands over what was asked for by cuda_deliver; `complete`: the copies have been made, else zeros. */
void cuda_staging_hand_over(struct cuda_staging *staging, bool complete);

/* cuBLASLt handle, workspace and plans. */
int cuda_products_create(struct cuda_device *cuda, struct error *err);
void cuda_products_destroy(struct cuda_device *cuda);

struct cuda_pool {
    cudaMemPool_t pool;
    struct cuda_staging *staging;
    struct cuda_share *shares;
};

#endif
