/* Matrix products by cuBLASLt. Plans are chosen by the shape of one lane, never by timing and never by how
 * many lanes there are: so a product is bitwise the same in every run, and in a lane as in the trial alone.
 */
#ifndef RUNG_KERNELS_CUDA_PRODUCT_CUH
#define RUNG_KERNELS_CUDA_PRODUCT_CUH

#include "kernels/cuda/core.cuh"

#include <cublasLt.h>
#include <cublas_v2.h>

/* For split sums of a product; what NVIDIA recommends for Hopper. */
#define CUDA_PRODUCT_WORKSPACE_BYTES ((size_t)32 << 20)

enum cuda_epilogue { CUDA_EPILOGUE_NONE, CUDA_EPILOGUE_BIAS, CUDA_EPILOGUE_RELU_BIAS };

/* d (m, n) = op(a) (m, k) op(b) (k, n), all dense and column-major as cuBLAS wants them: a row-major matrix
 * is its transpose. a and b stored, d real or stored. Only int64_t: compared and hashed as bytes. */
struct cuda_product {
    int64_t m, n, k;
    int64_t transpose_a, transpose_b;
    int64_t precision; /* enum device_precision */
    int64_t real_result;
    int64_t accumulate; /* d += */
    int64_t epilogue;   /* bias (m) real, of each row */
};

/* What a plan was made for: the product, how many lanes how far apart (d may lie elsewhere than the rest of
 * a lane), and to how many bytes the operands are aligned. */
struct cuda_plan_key {
    struct cuda_product product;
    int64_t lanes, stride, stride_d;
    int64_t align_a, align_b, align_d, align_bias;
};

struct cuda_plan {
    struct cuda_plan_key key;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    bool found;   /* false: cuBLASLt has nothing for it */
    bool batched; /* all lanes in one call */
    struct cuda_plan *next;
};

enum { CUDA_PLAN_BUCKETS = 256 };

struct cuda_products {
    cublasLtHandle_t lt;
    cublasHandle_t plain; /* for what cuBLASLt refuses; created when first needed */
    void *workspace;
    int64_t plans;
    struct cuda_plan *bucket[CUDA_PLAN_BUCKETS];
};

/* The types of a product in cuBLAS's words. */
static inline cudaDataType_t cuda_stored_type(int64_t precision)
{
    return precision == DEVICE_BF16 ? CUDA_R_16BF : precision == DEVICE_FP16 ? CUDA_R_16F : CUDA_R_32F;
}
static inline cublasComputeType_t cuda_compute_type(int64_t precision)
{
    return precision == DEVICE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* Makes a plan of plan->key. A failure is an error; that there is none is plan->found. */
cublasStatus_t cuda_plan_make(struct cuda_products *products, struct cuda_plan *plan, const void *bias);
void cuda_plan_release(struct cuda_plan *plan);

/* Where the first lane's operands are; the others' lie lanes.stride behind, d's stride_d. */
struct cuda_operands {
    void *d;
    size_t stride_d;
    const void *a, *b;
    const real *bias; /* NULL without such an epilogue */
};

/* Enqueues the product for all lanes. false: there is no plan with its epilogue, and nothing was done. */
bool cuda_product_run(struct cuda_device *cuda, struct lanes lanes, const struct cuda_product *product,
                      const struct cuda_operands *operands);
/* The same without epilogue by plain cuBLAS, lane by lane. */
void cuda_product_plain(struct cuda_device *cuda, struct lanes lanes, const struct cuda_product *product,
                        const struct cuda_operands *operands);

/* Keeps a failure of cuBLAS like cuda_note does. */
void cuda_note_product(struct cuda_device *cuda, cublasStatus_t status, const struct cuda_product *product);

#endif
