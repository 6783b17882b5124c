/* Plans: which of cuBLASLt's algorithms does a product. */
#include "kernels/cuda/product.cuh"

static cublasStatus_t describe(struct cuda_plan *plan, const void *bias)
{
    const struct cuda_product *product = &plan->key.product;
    cublasOperation_t a = product->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = product->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue =
        product->epilogue == CUDA_EPILOGUE_RELU_BIAS ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    cublasStatus_t status =
        cublasLtMatmulDescCreate(&plan->description, cuda_compute_type(product->precision), CUDA_R_32F);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulDescSetAttribute(plan->description, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulDescSetAttribute(plan->description, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    if (status != CUBLAS_STATUS_SUCCESS || product->epilogue == CUDA_EPILOGUE_NONE)
        return status;
    status = cublasLtMatmulDescSetAttribute(plan->description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                            sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulDescSetAttribute(plan->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                                sizeof bias);
    return status;
}

static cublasStatus_t lay_out(struct cuda_plan *plan)
{
    const struct cuda_product *p = &plan->key.product;
    cudaDataType_t stored = cuda_stored_type(p->precision);
    int64_t a_rows = p->transpose_a ? p->k : p->m, a_columns = p->transpose_a ? p->m : p->k;
    int64_t b_rows = p->transpose_b ? p->n : p->k, b_columns = p->transpose_b ? p->k : p->n;
    cublasStatus_t status =
        cublasLtMatrixLayoutCreate(&plan->a, stored, (uint64_t)a_rows, (uint64_t)a_columns, a_rows);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatrixLayoutCreate(&plan->b, stored, (uint64_t)b_rows, (uint64_t)b_columns, b_rows);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatrixLayoutCreate(&plan->d, p->real_result ? CUDA_R_32F : stored, (uint64_t)p->m,
                                            (uint64_t)p->n, p->m);
    return status;
}

static cublasStatus_t prefer(cublasLtMatmulPreference_t preference, const struct cuda_plan_key *key)
{
    uint64_t workspace = CUDA_PRODUCT_WORKSPACE_BYTES;
    /* Split sums are added in one order by every scheme, but in float32 by each only if the result is real.
     */
    uint32_t reductions =
        key->product.real_result ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t a = (uint32_t)key->align_a, b = (uint32_t)key->align_b, d = (uint32_t)key->align_d;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t size;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &d, sizeof d},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &d, sizeof d},
    };

    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(preference, wishes[i].attribute,
                                                                     wishes[i].value, wishes[i].size);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* The first algorithm that cuBLASLt's heuristic names for one lane. */
static cublasStatus_t choose(struct cuda_products *products, struct cuda_plan *plan)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    status = prefer(preference, &plan->key);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(products->lt, plan->description, plan->a, plan->b, plan->d,
                                                plan->d, preference, 1, &result, &found);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    plan->found = status == CUBLAS_STATUS_SUCCESS && found == 1 && result.state == CUBLAS_STATUS_SUCCESS;
    if (plan->found)
        plan->algorithm = result.algo;
    /* "Not supported" is an answer, and so is a value that it does not like in this combination. */
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
        status = CUBLAS_STATUS_SUCCESS;
    return status;
}

static cublasStatus_t set_batch(cublasLtMatrixLayout_t layout, int32_t count, int64_t stride_bytes,
                                int64_t element_size)
{
    int64_t stride = stride_bytes / element_size;
    cublasStatus_t status =
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                  &stride, sizeof stride);
    return status;
}

static cublasStatus_t set_lanes(struct cuda_plan *plan, int64_t lanes, int64_t stride, int64_t stride_d)
{
    const struct cuda_product *product = &plan->key.product;
    int64_t stored = (int64_t)device_stored_size((enum device_precision)product->precision);
    int64_t result = product->real_result ? (int64_t)sizeof(real) : stored;
    int64_t bias_stride = stride / (int64_t)sizeof(real);
    cublasStatus_t status = set_batch(plan->a, (int32_t)lanes, stride, stored);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_batch(plan->b, (int32_t)lanes, stride, stored);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_batch(plan->d, (int32_t)lanes, stride_d, result);
    if (status == CUBLAS_STATUS_SUCCESS && product->epilogue != CUDA_EPILOGUE_NONE)
        status = cublasLtMatmulDescSetAttribute(plan->description, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                                                &bias_stride, sizeof bias_stride);
    return status;
}

/* All lanes in one call where the algorithm chosen for one can do that; else a call for each. */
static cublasStatus_t batch(struct cuda_products *products, struct cuda_plan *plan)
{
    cublasLtMatmulHeuristicResult_t result;
    cublasStatus_t status = set_lanes(plan, plan->key.lanes, plan->key.stride, plan->key.stride_d);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoCheck(products->lt, plan->description, plan->a, plan->b, plan->d, plan->d,
                                         &plan->algorithm, &result);
    plan->batched = status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= CUDA_PRODUCT_WORKSPACE_BYTES;
    return plan->batched ? CUBLAS_STATUS_SUCCESS : set_lanes(plan, 1, 0, 0);
}

cublasStatus_t cuda_plan_make(struct cuda_products *products, struct cuda_plan *plan, const void *bias)
{
    cublasStatus_t status = describe(plan, bias);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out(plan);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choose(products, plan);
    if (status == CUBLAS_STATUS_SUCCESS && plan->found && plan->key.lanes > 1)
        status = batch(products, plan);
    return status;
}

void cuda_plan_release(struct cuda_plan *plan)
{
    if (plan->d)
        (void)cublasLtMatrixLayoutDestroy(plan->d);
    if (plan->b)
        (void)cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->a)
        (void)cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->description)
        (void)cublasLtMatmulDescDestroy(plan->description);
}
