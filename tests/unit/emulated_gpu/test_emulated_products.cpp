/* Products and their epilogues against float64, within the bound of the format; narrow formats by hand. */
#include "fixture.h"

#include <cmath>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/emulated_gpu/random.h"

static void test_narrow_formats_by_hand(void **)
{
    /* bf16 has 8 bits of precision: 1 + 2^-8 is a tie and goes to even. */
    assert_true(__bfloat162float(__float2bfloat16(1.00390625f)) == 1.0f);
    assert_true(__bfloat162float(__float2bfloat16(1.01171875f)) == 1.015625f);
    assert_true(__bfloat162float(__float2bfloat16(-3.0f)) == -3.0f);
    assert_true(std::isinf(__bfloat162float(__float2bfloat16(3.4e38f))));
    assert_true(std::isnan(__bfloat162float(__float2bfloat16(NAN))));
    /* fp16: 11 bits, greatest 65504, least 2^-24. */
    assert_true(__half2float(__float2half(1.00048828125f)) == 1.0f);
    assert_true(__half2float(__float2half(1.00146484375f)) == 1.001953125f);
    assert_true(__half2float(__float2half(65519.0f)) == 65504.0f);
    assert_true(std::isinf(__half2float(__float2half(65520.0f))));
    assert_true(__half2float(__float2half(5.9604645e-8f)) == 5.9604644775390625e-8f);
    assert_true(__half2float(__float2half(2.9802322e-8f)) == 0.0f); /* half the least: to even */
    assert_true(__half2float(__float2half(-6.1e-5f)) == -1023 * 5.9604644775390625e-8f);
    assert_true(std::isnan(__half2float(__float2half(NAN))));
    assert_int_equal(__half_as_ushort(__float2half(-2.0f)), 0xc000);
    assert_int_equal(__bfloat16_as_ushort(__float2bfloat16(-2.0f)), 0xc000);
    for (unsigned bits = 0; bits < 0x10000; bits++) { /* there and back */
        float x = __half2float(__ushort_as_half((unsigned short)bits));
        if (!std::isnan(x))
            assert_int_equal(__half_as_ushort(__float2half(x)), bits);
    }
}

/* A matrix on both sides. Column major unless `by_rows`. */
struct sheet {
    int64_t rows, columns, batches;
    cudaDataType type;
    bool by_rows;
    std::vector<double> values; /* as stored */
    char *device = nullptr;
    size_t bytes() const
    {
        return values.size() * (type == CUDA_R_32F ? 4 : 2);
    }
    double &at(int64_t batch, int64_t i, int64_t j)
    {
        int64_t place = by_rows ? i * columns + j : j * rows + i;
        return values[(size_t)(batch * rows * columns + place)];
    }
    sheet(int64_t r, int64_t c, int64_t n, cudaDataType t, bool rowwise, emulated::random &dice)
        : rows(r), columns(c), batches(n), type(t), by_rows(rowwise), values((size_t)(r * c * n))
    {
        for (double &each : values)
            each = stored((float)((double)dice.below(20001) / 10000 - 1));
        assert_cuda(cudaMalloc(&device, bytes()));
        send();
    }
    sheet(const sheet &) = delete;
    ~sheet()
    {
        cudaFree(device);
    }
    float stored(float x) const
    {
        return type == CUDA_R_32F ? x : type == CUDA_R_16F ? (float)__half(x) : (float)__nv_bfloat16(x);
    }
    void send()
    {
        std::vector<char> raw(bytes());
        for (size_t i = 0; i < values.size(); i++) {
            float x = (float)values[i];
            __half half(x);
            __nv_bfloat16 brain(x);
            if (type == CUDA_R_32F)
                memcpy(&raw[i * 4], &x, 4);
            else
                memcpy(&raw[i * 2], type == CUDA_R_16F ? (void *)&half : (void *)&brain, 2);
        }
        assert_cuda(cudaMemcpy(device, raw.data(), bytes(), cudaMemcpyHostToDevice));
    }
    void receive()
    {
        std::vector<char> raw(bytes());
        assert_cuda(cudaMemcpy(raw.data(), device, bytes(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < values.size(); i++) {
            float x;
            unsigned short bits;
            if (type == CUDA_R_32F) {
                memcpy(&x, &raw[i * 4], 4);
            } else {
                memcpy(&bits, &raw[i * 2], 2);
                x = type == CUDA_R_16F ? (float)__ushort_as_half(bits) : (float)__ushort_as_bfloat16(bits);
            }
            values[i] = (double)x;
        }
    }
};

/* Of the inputs' format: how far a product may be off, as a share of sum |a| |b|. */
static double unit_of(cublasComputeType_t compute)
{
    switch (compute) {
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_FAST_16F:
        return 0x1p-11;
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        return 0x1p-8;
    default:
        return 0;
    }
}
static double stored_unit(cudaDataType type)
{
    return type == CUDA_R_32F ? 0x1p-24 : type == CUDA_R_16F ? 0x1p-11 : 0x1p-8;
}

struct bounded {
    double value, slack;
};
static bounded product_of(sheet &a, bool ta, sheet &b, bool tb, int64_t batch, int64_t i, int64_t j,
                          cublasComputeType_t compute)
{
    int64_t inner = ta ? a.rows : a.columns;
    bounded sum = {0, 0};
    for (int64_t l = 0; l < inner; l++) {
        double x =
            (ta ? a.at(batch, l, i) : a.at(batch, i, l)) * (tb ? b.at(batch, j, l) : b.at(batch, l, j));
        sum.value += x;
        sum.slack += fabs(x);
    }
    sum.slack *= (double)inner * 0x1p-24 + 4 * unit_of(compute);
    return sum;
}

static void assert_near(double got, bounded expected, cudaDataType type, const char *what, int64_t i,
                        int64_t j)
{
    double slack = expected.slack + 2 * stored_unit(type) * (fabs(expected.value) + expected.slack) + 1e-7;
    if (!(fabs(got - expected.value) <= slack))
        fail_msg("%s: (%ld, %ld) is %.9g, expected %.9g within %.3g", what, (long)i, (long)j, got,
                 expected.value, slack);
}

static void check_gemm(cublasHandle_t handle, int m, int n, int k, bool ta, bool tb, cudaDataType input,
                       cudaDataType output, cublasComputeType_t compute, float beta, int batches,
                       emulated::random &dice)
{
    sheet a(ta ? k : m, ta ? m : k, batches, input, false, dice),
        b(tb ? n : k, tb ? k : n, batches, input, false, dice);
    sheet c(m, n, batches, output, false, dice);
    std::vector<double> before = c.values;
    float alpha = 0.5f;
    assert_int_equal(cublasGemmStridedBatchedEx(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                                                tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, a.device,
                                                input, (int)a.rows, a.rows * a.columns, b.device, input,
                                                (int)b.rows, b.rows * b.columns, &beta, c.device, output, m,
                                                (long long)m * n, batches, compute, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_SUCCESS);
    c.receive();
    for (int64_t batch = 0; batch < batches; batch++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                bounded expected = product_of(a, ta, b, tb, batch, i, j, compute);
                expected.value =
                    0.5 * expected.value + (beta != 0 ? beta * before[(size_t)((batch * n + j) * m + i)] : 0);
                assert_near(c.at(batch, i, j), expected, output, "gemm", i, j);
            }
}

static void test_gemm(void **)
{
    emulated::random dice = {17};
    cublasHandle_t handle;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    const struct {
        cudaDataType input, output;
        cublasComputeType_t compute;
    } kinds[] = {
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF},
        {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
        {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
        {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F},
    };
    for (const auto &kind : kinds)
        for (int which = 0; which < 4; which++) {
            check_gemm(handle, 1, 1, 1, which & 1, which & 2, kind.input, kind.output, kind.compute, 0, 1,
                       dice);
            check_gemm(handle, 17, 5, 33, which & 1, which & 2, kind.input, kind.output, kind.compute, 1, 3,
                       dice);
            check_gemm(handle, 64, 40, 600, which & 1, which & 2, kind.input, kind.output, kind.compute, 0, 1,
                       dice);
        }
    assert_int_equal(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

/* tf32 keeps 10 bits of the mantissa: 1 + 2^-11 becomes 1. */
static void test_inputs_are_rounded(void **)
{
    cublasHandle_t handle;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    device_floats a(std::vector<float>{1 + 0x1p-11f}), b(std::vector<float>{1}), c(1);
    float one = 1, zero = 0;
    auto product = [&](cublasComputeType_t compute) {
        assert_int_equal(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data, CUDA_R_32F, 1,
                                      b.data, CUDA_R_32F, 1, &zero, c.data, CUDA_R_32F, 1, compute,
                                      CUBLAS_GEMM_DEFAULT),
                         CUBLAS_STATUS_SUCCESS);
        return c.get()[0];
    };
    assert_true(product(CUBLAS_COMPUTE_32F) == 1 + 0x1p-11f);
    assert_true(product(CUBLAS_COMPUTE_32F_FAST_TF32) == 1);
    assert_int_equal(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
    assert_true(product(CUBLAS_COMPUTE_32F) == 1);
    cublasDestroy(handle);
}

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
        cmocka_unit_test_setup(test_narrow_formats_by_hand, start_fresh),
        cmocka_unit_test_setup(test_gemm, start_fresh),
        cmocka_unit_test_setup(test_inputs_are_rounded, start_fresh),
        cmocka_unit_test_setup(test_matmul_orders_and_batches, start_fresh),
        cmocka_unit_test_setup(test_epilogues_forward, start_fresh),
        cmocka_unit_test_setup(test_epilogues_backward, start_fresh),
        cmocka_unit_test_setup(test_bias_gradients_of_inputs, start_fresh),
        cmocka_unit_test_setup(test_what_is_refused, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
