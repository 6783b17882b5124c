/* Products against float64, within the bound of the format; narrow formats by hand. */
#include "sheet.h"

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

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_narrow_formats_by_hand, start_fresh),
        cmocka_unit_test_setup(test_gemm, start_fresh),
        cmocka_unit_test_setup(test_inputs_are_rounded, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
