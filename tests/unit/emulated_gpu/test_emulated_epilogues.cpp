/* cuBLASLt: layouts, epilogues there and back, and what it refuses, against float64. */
#include "sheet.h"

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double gelu_slope(double x)
{
    double h = 1e-6;
    return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

struct light { /* one cuBLASLt product D = epilogue(A B) */
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
    light(sheet &sa, sheet &sb, sheet &sd)
    {
        assert_int_equal(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
        cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        a = layout(sa);
        b = layout(sb);
        d = layout(sd);
        cublasLtMatmulPreferenceCreate(&preference);
    }
    ~light()
    {
        cublasLtMatmulPreferenceDestroy(preference);
        for (cublasLtMatrixLayout_t each : {a, b, d})
            cublasLtMatrixLayoutDestroy(each);
        cublasLtMatmulDescDestroy(description);
        cublasLtDestroy(handle);
    }
    static cublasLtMatrixLayout_t layout(sheet &of)
    {
        cublasLtMatrixLayout_t made;
        cublasLtMatrixLayoutCreate(&made, of.type, (uint64_t)of.rows, (uint64_t)of.columns,
                                   of.by_rows ? of.columns : of.rows);
        int32_t order = of.by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL, batches = (int32_t)of.batches;
        int64_t stride = of.rows * of.columns;
        cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order);
        cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
        cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof stride);
        return made;
    }
    template <class T> void set(cublasLtMatmulDescAttributes_t attribute, T value)
    {
        assert_int_equal(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
                         CUBLAS_STATUS_SUCCESS);
    }
    cublasStatus_t run(sheet &sa, sheet &sb, sheet &sd)
    {
        uint64_t most = 1 << 20;
        cublasLtMatmulHeuristicResult_t plan;
        int found;
        float one = 1, zero = 0;
        char *workspace;
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                             sizeof most);
        cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, d, d, preference, 1, &plan, &found);
        if (status != CUBLAS_STATUS_SUCCESS)
            return status;
        assert_int_equal(found, 1);
        assert_true(plan.workspaceSize <= most);
        assert_cuda(cudaMalloc(&workspace, most));
        status = cublasLtMatmul(handle, description, &one, sa.device, a, sb.device, b, &zero, sd.device, d,
                                sd.device, d, &plan.algo, workspace, most, nullptr);
        assert_cuda(cudaFree(workspace));
        sd.receive();
        return status;
    }
};

static void test_matmul_orders_and_batches(void **)
{
    emulated::random dice = {5};
    for (int orders = 0; orders < 8; orders++) {
        sheet a(9, 21, 2, CUDA_R_32F, orders & 1, dice), b(21, 6, 2, CUDA_R_32F, orders & 2, dice),
            d(9, 6, 2, CUDA_R_32F, orders & 4, dice);
        light with(a, b, d);
        assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_SUCCESS);
        for (int64_t batch = 0; batch < 2; batch++)
            for (int64_t i = 0; i < 9; i++)
                for (int64_t j = 0; j < 6; j++)
                    assert_near(d.at(batch, i, j),
                                product_of(a, false, b, false, batch, i, j, CUBLAS_COMPUTE_32F), CUDA_R_32F,
                                "matmul", i, j);
    }
}

static void test_epilogues_forward(void **)
{
    emulated::random dice = {6};
    for (uint32_t epilogue : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS,
                              CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}) {
        sheet a(16, 700, 2, CUDA_R_32F, false, dice), b(700, 6, 2, CUDA_R_32F, false, dice),
            d(16, 6, 2, CUDA_R_32F, false, dice), bias(16, 1, 2, CUDA_R_32F, false, dice),
            aux(16, 6, 2, CUDA_R_32F, false, dice);
        light with(a, b, d);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        with.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)bias.device);
        with.set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, (int64_t)16);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)aux.device);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)16);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, (int64_t)96);
        assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_SUCCESS);
        aux.receive();
        for (int64_t batch = 0; batch < 2; batch++)
            for (int64_t i = 0; i < 16; i++)
                for (int64_t j = 0; j < 6; j++) {
                    bounded x = product_of(a, false, b, false, batch, i, j, CUBLAS_COMPUTE_32F);
                    if (epilogue & CUBLASLT_EPILOGUE_BIAS)
                        x.value += bias.at(batch, i, 0);
                    if (epilogue & 128)
                        assert_near(aux.at(batch, i, j), x, CUDA_R_32F, "aux", i, j);
                    if (epilogue & CUBLASLT_EPILOGUE_RELU)
                        x.value = x.value > 0 ? x.value : 0;
                    if (epilogue & CUBLASLT_EPILOGUE_GELU)
                        x.value = gelu(x.value);
                    assert_near(d.at(batch, i, j), x, CUDA_R_32F, "epilogue", i, j);
                }
    }
}

static void test_epilogues_backward(void **)
{
    emulated::random dice = {7};
    sheet a(128, 9, 1, CUDA_R_32F, false, dice), b(9, 6, 1, CUDA_R_32F, false, dice),
        d(128, 6, 1, CUDA_R_32F, false, dice), bias(128, 1, 1, CUDA_R_32F, false, dice),
        aux(128, 6, 1, CUDA_R_32F, false, dice);
    for (uint32_t epilogue : {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD}) {
        light with(a, b, d);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        with.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)bias.device);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)aux.device);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)128);
        assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_SUCCESS);
        bias.receive();
        for (int64_t i = 0; i < 128; i++) {
            bounded sum = {0, 1e-6};
            for (int64_t j = 0; j < 6; j++) {
                bounded x = product_of(a, false, b, false, 0, i, j, CUBLAS_COMPUTE_32F);
                x.value *= gelu_slope(aux.at(0, i, j));
                x.slack += 1e-6;
                assert_near(d.at(0, i, j), x, CUDA_R_32F, "dgelu", i, j);
                sum.value += x.value;
                sum.slack += x.slack;
            }
            if (epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)
                assert_near(bias.at(0, i, 0), sum, CUDA_R_32F, "bias gradient", i, 0);
        }
    }
    /* relu's mask there, and back: what was below zero passes nothing. */
    char *mask;
    assert_cuda(cudaMalloc(&mask, 128 / 8 * 6));
    light forward(a, b, d);
    for (uint32_t epilogue : {CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_DRELU}) {
        forward.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        forward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)mask);
        forward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)128);
        assert_int_equal(forward.run(a, b, d), CUBLAS_STATUS_SUCCESS);
        for (int64_t i = 0; i < 128; i++)
            for (int64_t j = 0; j < 6; j++) {
                bounded x = product_of(a, false, b, false, 0, i, j, CUBLAS_COMPUTE_32F);
                x.value = x.value > 0 ? x.value : 0;
                assert_near(d.at(0, i, j), x, CUDA_R_32F, "relu and back", i, j);
            }
    }
    assert_cuda(cudaFree(mask));
}

static void test_bias_gradients_of_inputs(void **)
{
    emulated::random dice = {8};
    sheet a(6, 40, 1, CUDA_R_16BF, false, dice), b(40, 7, 1, CUDA_R_16BF, false, dice),
        d(6, 7, 1, CUDA_R_16BF, false, dice);
    for (uint32_t epilogue : {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
        bool of_a = epilogue == CUBLASLT_EPILOGUE_BGRADA;
        sheet bias(of_a ? 6 : 7, 1, 1, CUDA_R_32F, false, dice);
        light with(a, b, d);
        with.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        with.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)bias.device);
        with.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int32_t)CUDA_R_32F);
        assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_SUCCESS);
        bias.receive();
        for (int64_t i = 0; i < bias.rows; i++) {
            bounded sum = {0, 1e-5};
            for (int64_t l = 0; l < 40; l++)
                sum.value += of_a ? a.at(0, i, l) : b.at(0, l, i);
            assert_near(bias.at(0, i, 0), sum, CUDA_R_32F, "sum over k", i, 0);
        }
    }
}

/* A plan made for operands aligned to 256 bytes, the default, is none for others. */
static void test_plans_keep_to_their_alignment(void **)
{
    emulated::random dice = {10};
    sheet a(8, 9, 1, CUDA_R_32F, false, dice), b(8, 8, 1, CUDA_R_32F, false, dice),
        d(8, 8, 1, CUDA_R_32F, false, dice);
    a.columns = 8; /* room for one more element in front */
    light with(a, b, d);
    assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_SUCCESS);
    a.device += 4;
    assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    uint32_t alignment = 4;
    assert_int_equal(cublasLtMatmulPreferenceSetAttribute(with.preference,
                                                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                          &alignment, sizeof alignment),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_SUCCESS);
    a.device -= 4;
}

static void test_what_is_refused(void **)
{
    emulated::random dice = {9};
    sheet a(8, 8, 1, CUDA_R_32F, false, dice), b(8, 8, 1, CUDA_R_32F, false, dice),
        d(8, 8, 1, CUDA_R_32F, true, dice);
    light with(a, b, d);
    with.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_RELU);
    assert_int_equal(with.run(a, b, d), CUBLAS_STATUS_NOT_SUPPORTED); /* rows, with an epilogue */
    sheet low(8, 8, 1, CUDA_R_16F, false, dice), columns(8, 8, 1, CUDA_R_32F, false, dice);
    light mixed(a, low, columns);
    assert_int_equal(mixed.run(a, low, columns), CUBLAS_STATUS_NOT_SUPPORTED);
    light aux(a, b, columns);
    aux.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_RELU_AUX);
    aux.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)8);
    assert_int_equal(aux.run(a, b, columns), CUBLAS_STATUS_NOT_SUPPORTED); /* a mask has 128 bits a column */
    sheet odd(7, 8, 1, CUDA_R_16F, false, dice), odd_d(7, 8, 1, CUDA_R_16F, false, dice);
    light pairs(odd, low, odd_d); /* columns of seven 16-bit elements: not aligned to four bytes */
    assert_int_equal(pairs.run(odd, low, odd_d), CUBLAS_STATUS_NOT_SUPPORTED);
    /* Operands that are not there are found when the product runs. */
    cublasHandle_t handle;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    float one = 1, zero = 0;
    assert_int_equal(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 9, 8, &one, (float *)a.device, 8,
                                 (float *)b.device, 8, &zero, (float *)columns.device, 8),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_non_null(strstr(emulated_last_report(), "cublas_gemm: B takes 288 bytes"));
    cublasDestroy(handle);
    emulated_reset();
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_matmul_orders_and_batches, start_fresh),
        cmocka_unit_test_setup(test_epilogues_forward, start_fresh),
        cmocka_unit_test_setup(test_epilogues_backward, start_fresh),
        cmocka_unit_test_setup(test_bias_gradients_of_inputs, start_fresh),
        cmocka_unit_test_setup(test_plans_keep_to_their_alignment, start_fresh),
        cmocka_unit_test_setup(test_what_is_refused, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
