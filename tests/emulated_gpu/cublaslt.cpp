/* cuBLASLt: descriptions, one plan a product, and the product itself. */
#include <cstring>

#include "matmul.h"

struct cublasLtContext {
    int device;
};
struct cublasLtMatmulDescription {
    cublasComputeType_t compute;
    cudaDataType scale_type;
    int32_t pointer_mode, transa, transb, transc;
    uint32_t epilogue;
    void *bias;
    int64_t bias_batch_stride;
    void *aux;
    int64_t aux_ld, aux_batch_stride;
    int32_t aux_type, bias_type; /* -1: as the result */
};
struct cublasLtLayout {
    cudaDataType type;
    int32_t order;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batches;
    int64_t batch_stride;
};
struct cublasLtPreference {
    uint64_t workspace;
    uint32_t alignment_a, alignment_b, alignment_c, alignment_d; /* of the pointers, bytes */
};

using namespace emulated;

/* In cublasLtMatmulAlgo_t.data[0]; [1] is the workspace that the plan needs, [2] to [5] what A, B, C and D
 * must be aligned to. */
constexpr uint64_t PLAN_MARK = 0x656d756c61746564;
/* Sums as long as this are "split", so that plans with a workspace exist. */
constexpr uint64_t SPLIT_FROM = 512;
constexpr size_t SPLIT_WORKSPACE = 64 << 10;
constexpr uint64_t LEAST_ALIGNMENT = 4;

template <class T> static cublasStatus_t take(T *field, const void *value, size_t bytes)
{
    if (!value || bytes != sizeof *field)
        return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static matrix matrix_of(const cublasLtLayout &layout, const void *data, int32_t operation)
{
    bool column = layout.order == CUBLASLT_ORDER_COL;
    matrix made = {(void *)data,           layout.type,
                   (int64_t)layout.rows,   (int64_t)layout.columns,
                   column ? 1 : layout.ld, column ? layout.ld : 1,
                   layout.batch_stride};
    return operation == CUBLAS_OP_N ? made : made.transposed();
}

static bool layout_valid(const cublasLtLayout &layout)
{
    uint64_t least = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
    return layout.rows > 0 && layout.columns > 0 && layout.ld >= (int64_t)least && layout.batches > 0;
}

/* The description, filled in for these operands; what is not emulated, or the library would refuse, is. */
static cublasStatus_t plan(const cublasLtMatmulDescription &of, const cublasLtLayout &a,
                           const cublasLtLayout &b, const cublasLtLayout &c, const cublasLtLayout &d,
                           matmul *product)
{
    *product = {};
    if (!layout_valid(a) || !layout_valid(b) || !layout_valid(c) || !layout_valid(d))
        return CUBLAS_STATUS_INVALID_VALUE;
    product->a = matrix_of(a, nullptr, of.transa);
    product->b = matrix_of(b, nullptr, of.transb);
    product->c = matrix_of(c, nullptr, CUBLAS_OP_N);
    product->d = matrix_of(d, nullptr, CUBLAS_OP_N);
    product->batches = d.batches;
    if (product->a.columns != product->b.rows || product->a.rows != product->d.rows ||
        product->b.columns != product->d.columns || product->c.rows != product->d.rows ||
        product->c.columns != product->d.columns || a.batches != d.batches || b.batches != d.batches ||
        c.batches != d.batches)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (of.transc != CUBLAS_OP_N || of.scale_type != CUDA_R_32F ||
        of.pointer_mode != CUBLASLT_POINTER_MODE_HOST || a.type != b.type || c.type != d.type ||
        type_bytes(a.type) == 0 || (d.type != a.type && d.type != CUDA_R_32F) ||
        !matmul_rounding(a.type, of.compute, false, &product->inputs))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    product->epilogue = (int)of.epilogue;
    product->bias = of.bias;
    product->bias_type = of.bias_type < 0 ? d.type : (cudaDataType)of.bias_type;
    product->bias_batch_step = of.bias_batch_stride;
    product->aux = of.aux;
    product->aux_type = of.aux_type < 0 ? d.type : (cudaDataType)of.aux_type;
    product->aux_ld = of.aux_ld;
    product->aux_batch_step = of.aux_batch_stride;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t epilogue_check(const cublasLtMatmulDescription &of, const matmul &product,
                                     bool pointers_known)
{
    uint32_t epilogue = of.epilogue;
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT)
        return CUBLAS_STATUS_SUCCESS;
    if (product.d.row_step != 1) /* epilogues work along columns */
        return CUBLAS_STATUS_NOT_SUPPORTED;
    bool bias_gradient = epilogue & (16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
    if (bias_gradient && product.batches > 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (pointers_known && (bias_gradient || epilogue & CUBLASLT_EPILOGUE_BIAS) && !of.bias)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (epilogue & 128) {
        bool bits = epilogue & (CUBLASLT_EPILOGUE_RELU | 8);
        if (pointers_known && !of.aux)
            return CUBLAS_STATUS_INVALID_VALUE;
        if (of.aux_ld < product.d.rows || of.aux_ld % (bits ? 128 : 8) != 0)
            return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* What all columns (or rows) and batches of an operand are aligned to, if its first element is to `first`. */
static bool aligned(const cublasLtLayout &of, uint64_t first)
{
    uint64_t element = type_bytes(of.type), all = first | (uint64_t)of.ld * element;
    if (of.batches > 1)
        all |= (uint64_t)of.batch_stride * element;
    return element != 2 || all % LEAST_ALIGNMENT == 0; /* 16-bit elements are moved in pairs */
}

/* Split sums with a bias are for one batch only. */
static bool split_fits(const matmul &product)
{
    return product.batches == 1 || !(product.epilogue & CUBLASLT_EPILOGUE_BIAS);
}

static void plan_write(const matmul &product, uint64_t workspace_limit,
                       cublasLtMatmulHeuristicResult_t *result)
{
    *result = {};
    bool split = (uint64_t)product.a.columns >= SPLIT_FROM && workspace_limit >= SPLIT_WORKSPACE &&
                 split_fits(product);
    result->workspaceSize = split ? SPLIT_WORKSPACE : 0;
    result->algo.data[0] = PLAN_MARK;
    result->algo.data[1] = result->workspaceSize;
    result->state = CUBLAS_STATUS_SUCCESS;
    result->wavesCount = 1;
}

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    int device;
    if (cudaGetDevice(&device) != cudaSuccess ||
        call(CALL_ANYWHERE, [] { return cudaSuccess; }) != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext{device};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description, cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type)
{
    *description = new cublasLtMatmulDescription{compute_type,
                                                 scale_type,
                                                 CUBLASLT_POINTER_MODE_HOST,
                                                 CUBLAS_OP_N,
                                                 CUBLAS_OP_N,
                                                 CUBLAS_OP_N,
                                                 CUBLASLT_EPILOGUE_DEFAULT,
                                                 nullptr,
                                                 0,
                                                 nullptr,
                                                 0,
                                                 0,
                                                 -1,
                                                 -1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    delete description;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
        return take(&of->compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
        return take(&of->scale_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return take(&of->pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&of->transa, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&of->transb, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSC:
        return take(&of->transc, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&of->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&of->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
        return take(&of->bias_batch_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return take(&of->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return take(&of->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
        return take(&of->aux_batch_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
        return take(&of->aux_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return take(&of->bias_type, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    *layout = new cublasLtLayout{type, CUBLASLT_ORDER_COL, rows, columns, ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
        return take(&of->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
        return take(&of->order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return take(&of->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
        return take(&of->columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
        return take(&of->ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return take(&of->batches, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return take(&of->batch_stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new cublasLtPreference{0, 256, 256, 256, 256};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return take(&preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return take(&preference->alignment_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return take(&preference->alignment_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return take(&preference->alignment_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return take(&preference->alignment_d, value, bytes);
    default:
        return CUBLAS_STATUS_SUCCESS; /* there is one plan anyway */
    }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *returned)
{
    *returned = 0;
    if (!handle || requested < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    matmul product;
    cublasStatus_t status = plan(*description, *a, *b, *c, *d, &product);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = epilogue_check(*description, product, false);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (!aligned(*a, preference->alignment_a) || !aligned(*b, preference->alignment_b) ||
        !aligned(*c, preference->alignment_c) || !aligned(*d, preference->alignment_d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    plan_write(product, preference->workspace, &results[0]);
    const uint32_t alignments[] = {preference->alignment_a, preference->alignment_b, preference->alignment_c,
                                   preference->alignment_d};
    for (int i = 0; i < 4; i++)
        results[0].algo.data[2 + i] = alignments[i];
    *returned = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    if (!handle || algorithm->data[0] != PLAN_MARK)
        return CUBLAS_STATUS_INVALID_VALUE;
    matmul product;
    cublasStatus_t status = plan(*description, *a, *b, *c, *d, &product);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = epilogue_check(*description, product, false);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (algorithm->data[1] > 0 && !split_fits(product))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    plan_write(product, algorithm->data[1], result);
    for (int i = 2; i < 6; i++)
        result->algo.data[i] = algorithm->data[i];
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream)
{
    if (!handle || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    matmul product;
    cublasStatus_t status = plan(*description, *a_layout, *b_layout, *c_layout, *d_layout, &product);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = epilogue_check(*description, product, true);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    size_t needed = algorithm ? (size_t)algorithm->data[1] : 0;
    if (algorithm && algorithm->data[0] != PLAN_MARK)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (needed > workspace_bytes || (uintptr_t)workspace % 256 != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    const void *const operands[] = {a, b, *(const float *)beta != 0 ? c : nullptr, d};
    for (int i = 0; algorithm && i < 4; i++)
        if (algorithm->data[2 + i] != 0 && (uintptr_t)operands[i] % algorithm->data[2 + i] != 0)
            return CUBLAS_STATUS_INVALID_VALUE; /* planned for better alignment */
    if ((needed > 0 && !split_fits(product)) || !aligned(*a_layout, (uintptr_t)a) ||
        !aligned(*b_layout, (uintptr_t)b) || !aligned(*c_layout, (uintptr_t)c) ||
        !aligned(*d_layout, (uintptr_t)d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    product.a.data = (void *)a;
    product.b.data = (void *)b;
    product.c.data = (void *)c;
    product.d.data = d;
    product.alpha = *(const float *)alpha;
    product.beta = *(const float *)beta;
    product.workspace = workspace;
    product.workspace_bytes = needed;
    return matmul_queue(product, stream, "cublaslt_matmul");
}
}
