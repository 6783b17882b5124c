/* Products that cuBLASLt has no plan for, such as some of 16-bit operands aligned to 2 bytes, by cuBLAS. */
#include "kernels/cuda/product.cuh"

static cublasStatus_t open_plain(struct cuda_device *cuda)
{
    struct cuda_products *products = cuda->products;
    cublasStatus_t status;

    if (products->plain)
        return CUBLAS_STATUS_SUCCESS;
    status = cublasCreate(&products->plain);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetStream(products->plain, cuda->stream);
    if (status == CUBLAS_STATUS_SUCCESS) /* its own would be allocated, which no recording can hold */
        status = cublasSetWorkspace(products->plain, products->workspace, CUDA_PRODUCT_WORKSPACE_BYTES);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetMathMode(
            products->plain,
            (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    return status;
}

void cuda_product_plain(struct cuda_device *cuda, struct lanes lanes, const struct cuda_product *product,
                        const struct cuda_operands *operands)
{
    const float one = 1, addend = product->accumulate ? 1 : 0;
    cudaDataType_t stored = cuda_stored_type(product->precision);
    cublasStatus_t status = open_plain(cuda);

    for (int64_t l = 0; l < lanes.count && status == CUBLAS_STATUS_SUCCESS; l++)
        status = cublasGemmEx(
            cuda->products->plain, product->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
            product->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, (int)product->m, (int)product->n,
            (int)product->k, &one, cuda_lane((const char *)operands->a, lanes.stride, l), stored,
            (int)(product->transpose_a ? product->k : product->m),
            cuda_lane((const char *)operands->b, lanes.stride, l), stored,
            (int)(product->transpose_b ? product->n : product->k), &addend,
            cuda_lane((char *)operands->d, operands->stride_d, l), product->real_result ? CUDA_R_32F : stored,
            (int)product->m, cuda_compute_type(product->precision), CUBLAS_GEMM_DEFAULT);
    cuda_note_product(cuda, status, product);
}
