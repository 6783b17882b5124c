/* Products run by their plans, which are made when a shape is first seen, and kept. */
#include "kernels/cuda/product.cuh"

#include <stdlib.h>
#include <string.h>

/* A runner that has seen so many shapes forgets them all: a plan takes about a KiB, and tens of
 * microseconds to make again. */
enum { PLANS_MOST = 4096 };

int cuda_products_create(struct cuda_device *cuda, struct error *err)
{
    cublasStatus_t status;
    cudaError_t code;

    cuda->products = (struct cuda_products *)calloc(1, sizeof *cuda->products);
    if (!cuda->products)
        return error_set(err, ERROR_MEMORY, "no memory for a device");
    code = cudaMalloc(&cuda->products->workspace, CUDA_PRODUCT_WORKSPACE_BYTES);
    if (code != cudaSuccess)
        return cuda_error(err, cuda->number, code, "memory for its products");
    status = cublasLtCreate(&cuda->products->lt);
    if (status != CUBLAS_STATUS_SUCCESS)
        return error_set(err, status == CUBLAS_STATUS_ALLOC_FAILED ? ERROR_MEMORY : ERROR_RESOURCE,
                         CUDA_KIND ":%d: cuBLASLt cannot begin: %s", cuda->number,
                         cublasGetStatusString(status));
    return 0;
}

static void forget_plans(struct cuda_products *products)
{
    for (int i = 0; i < CUDA_PLAN_BUCKETS; i++) {
        while (products->bucket[i]) {
            struct cuda_plan *plan = products->bucket[i];
            products->bucket[i] = plan->next;
            cuda_plan_release(plan);
            free(plan);
        }
    }
    products->plans = 0;
}

void cuda_products_destroy(struct cuda_device *cuda)
{
    struct cuda_products *products = cuda->products;

    if (!products)
        return;
    forget_plans(products);
    if (products->plain)
        (void)cublasDestroy(products->plain);
    if (products->lt)
        (void)cublasLtDestroy(products->lt);
    if (products->workspace)
        (void)cudaFree(products->workspace);
    free(products);
    cuda->products = NULL;
}

void cuda_note_product(struct cuda_device *cuda, cublasStatus_t status, const struct cuda_product *product)
{
    enum error_code code = ERROR_RESOURCE;

    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    /* What cuBLAS was told by the runtime says more than its own word for it. */
    cuda_note(cuda, cudaGetLastError(), "a matrix product");
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        code = ERROR_MEMORY;
    if (status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_NOT_SUPPORTED)
        code = ERROR_INTERNAL;
    cuda_fail(cuda, code, "a matrix product of (%lld, %lld) and (%lld, %lld): %s", (long long)product->m,
              (long long)product->k, (long long)product->k, (long long)product->n,
              cublasGetStatusString(status));
}

/* The largest power of 2 that divides an address; beyond 256 it makes no difference. */
static int64_t alignment_of(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer | DEVICE_ALIGNMENT;

    return (int64_t)(address & (~address + 1));
}

/* FNV-1a over 64-bit words. */
static struct cuda_plan **bucket_of(struct cuda_products *products, const struct cuda_plan_key *key)
{
    const uint64_t *words = (const uint64_t *)key;
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < sizeof *key / sizeof *words; i++)
        hash = (hash ^ words[i]) * 1099511628211u;
    return &products->bucket[(hash ^ hash >> 32) % CUDA_PLAN_BUCKETS];
}

static struct cuda_plan *plan_make(struct cuda_device *cuda, const struct cuda_plan_key *key,
                                   const real *bias)
{
    struct cuda_products *products = cuda->products;
    struct cuda_plan *plan = (struct cuda_plan *)calloc(1, sizeof *plan), **bucket;
    cublasStatus_t status;

    if (!plan) {
        cuda_fail(cuda, ERROR_MEMORY, "no memory for a plan");
        return NULL;
    }
    plan->key = *key;
    status = cuda_plan_make(products, plan, bias);
    if (status != CUBLAS_STATUS_SUCCESS) {
        cuda_note_product(cuda, status, &key->product);
        cuda_plan_release(plan);
        free(plan);
        return NULL;
    }
    if (products->plans == PLANS_MOST)
        forget_plans(products);
    bucket = bucket_of(products, key);
    plan->next = *bucket;
    *bucket = plan;
    products->plans++;
    return plan;
}

/* NULL: a failure was noted. */
static struct cuda_plan *plan_of(struct cuda_device *cuda, const struct cuda_plan_key *key, const real *bias)
{
    struct cuda_plan *plan = *bucket_of(cuda->products, key);

    while (plan && memcmp(&plan->key, key, sizeof *key) != 0)
        plan = plan->next;
    return plan ? plan : plan_make(cuda, key, bias);
}

static cublasStatus_t run_lane(struct cuda_device *cuda, struct cuda_plan *plan, struct lanes lanes,
                               const struct cuda_operands *operands, int64_t lane)
{
    const float one = 1, addend = plan->key.product.accumulate ? 1 : 0;
    const real *bias = cuda_lane_or_null(operands->bias, lanes.stride, lane);
    void *d = cuda_lane((char *)operands->d, operands->stride_d, lane);

    if (bias) {
        cublasStatus_t status = cublasLtMatmulDescSetAttribute(
            plan->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
    }
    return cublasLtMatmul(
        cuda->products->lt, plan->description, &one, cuda_lane((const char *)operands->a, lanes.stride, lane),
        plan->a, cuda_lane((const char *)operands->b, lanes.stride, lane), plan->b, &addend, d, plan->d, d,
        plan->d, &plan->algorithm, cuda->products->workspace, CUDA_PRODUCT_WORKSPACE_BYTES, cuda->stream);
}

bool cuda_product_run(struct cuda_device *cuda, struct lanes lanes, const struct cuda_product *product,
                      const struct cuda_operands *operands)
{
    struct cuda_plan_key key = {
        .product = *product,
        .lanes = lanes.count,
        .stride = lanes.count > 1 ? (int64_t)lanes.stride : 0,
        .stride_d = lanes.count > 1 ? (int64_t)operands->stride_d : 0,
        .align_a = alignment_of(operands->a),
        .align_b = alignment_of(operands->b),
        .align_d = alignment_of(operands->d),
        .align_bias = operands->bias ? alignment_of(operands->bias) : 0,
    };
    struct cuda_plan *plan = plan_of(cuda, &key, operands->bias);

    if (!plan)
        return true; /* noted */
    if (!plan->found && product->epilogue != CUDA_EPILOGUE_NONE)
        return false;
    if (!plan->found) {
        cuda_product_plain(cuda, lanes, product, operands);
        return true;
    }
    for (int64_t l = 0; l < (plan->batched ? 1 : lanes.count); l++)
        cuda_note_product(cuda, run_lane(cuda, plan, lanes, operands, l), product);
    return true;
}
