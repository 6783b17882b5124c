/* cuBLAS: handles and the gemm calls. */
#include <unordered_set>

#include "matmul.h"

struct cublasContext {
    cudaStream_t stream;
    cublasMath_t math;
    void *workspace;
    size_t workspace_bytes;
};

using namespace emulated;

/* Of the caller's workspace, this much is scribbled over: enough to show that something else lives there. */
constexpr size_t SCRIBBLED = 4096;

static matrix column_major(const void *data, cudaDataType type, int64_t rows, int64_t columns, int64_t ld,
                           int64_t batch_step, cublasOperation_t operation)
{
    matrix made = {(void *)data, type, rows, columns, 1, ld, batch_step};
    if (operation == CUBLAS_OP_N)
        return made;
    made.rows = columns;
    made.columns = rows;
    return made.transposed();
}

static int at_least(int x)
{
    return x > 1 ? x : 1;
}

static bool output_fits(cudaDataType input, cudaDataType output)
{
    return output == input || output == CUDA_R_32F;
}

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    int device;
    if (cudaGetDevice(&device) != cudaSuccess ||
        call(CALL_ANYWHERE, [] { return cudaSuccess; }) != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{nullptr, CUBLAS_DEFAULT_MATH, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->workspace = nullptr; /* goes back to the library's own */
    handle->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if ((uintptr_t)workspace % 256 != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t mode)
{
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                          const void *a, cudaDataType a_type, int lda, long long stride_a,
                                          const void *b, cudaDataType b_type, int ldb, long long stride_b,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batch_count,
                                          cublasComputeType_t compute_type, cublasGemmAlgo_t)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batch_count < 0 || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    int a_rows = transa == CUBLAS_OP_N ? m : k, b_rows = transb == CUBLAS_OP_N ? k : n;
    if (lda < at_least(a_rows) || ldb < at_least(b_rows) || ldc < at_least(m))
        return CUBLAS_STATUS_INVALID_VALUE;
    matmul product = {};
    bool tf32 = handle->math == CUBLAS_TF32_TENSOR_OP_MATH;
    if (a_type != b_type || type_bytes(a_type) == 0 || !output_fits(a_type, c_type) ||
        !matmul_rounding(a_type, compute_type, tf32, &product.inputs))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m == 0 || n == 0 || batch_count == 0)
        return CUBLAS_STATUS_SUCCESS;
    product.a = column_major(a, a_type, m, k, lda, stride_a, transa);
    product.b = column_major(b, b_type, k, n, ldb, stride_b, transb);
    product.c = product.d = column_major(c, c_type, m, n, ldc, stride_c, CUBLAS_OP_N);
    product.batches = batch_count;
    product.alpha = *(const float *)alpha;
    product.beta = *(const float *)beta;
    product.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    product.workspace = handle->workspace;
    product.workspace_bytes = handle->workspace_bytes < SCRIBBLED ? handle->workspace_bytes : SCRIBBLED;
    return matmul_queue(product, handle->stream, "cublas_gemm");
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,
                            const void *b, cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute_type,
                            cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type,
                                      ldb, 0, beta, c, c_type, ldc, 0, 1, compute_type, algorithm);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                              int m, int n, int k, const float *alpha, const float *a, int lda,
                              const float *b, int ldb, const float *beta, float *c, int ldc)
{
    return cublasSgemmStridedBatched(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c,
                                     ldc, 0, 1);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k, const float *alpha,
                                         const float *a, int lda, long long stride_a, const float *b, int ldb,
                                         long long stride_b, const float *beta, float *c, int ldc,
                                         long long stride_c, int batch_count)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, CUDA_R_32F, lda, stride_a, b,
                                      CUDA_R_32F, ldb, stride_b, beta, c, CUDA_R_32F, ldc, stride_c,
                                      batch_count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "CUBLAS_STATUS_UNKNOWN";
    }
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return cublasGetStatusName(status);
}
}
