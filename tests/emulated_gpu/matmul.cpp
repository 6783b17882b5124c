#include "matmul.h"

#include <cmath>

#include "block.h"

namespace emulated
{
bool matmul_rounding(cudaDataType type, cublasComputeType_t compute, bool tf32_allowed, rounding *inputs)
{
    *inputs = ROUND_NOT; /* 16-bit inputs are what they are */
    if (type != CUDA_R_32F)
        return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
    switch (compute) {
    case CUBLAS_COMPUTE_32F:
        *inputs = tf32_allowed ? ROUND_TF32 : ROUND_NOT;
        return true;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
        return true;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        *inputs = ROUND_TF32;
        return true;
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        *inputs = ROUND_BF16;
        return true;
    case CUBLAS_COMPUTE_32F_FAST_16F:
        *inputs = ROUND_FP16;
        return true;
    default:
        return false;
    }
}

constexpr float SQRT_2_OVER_PI = 0.79788456080286536f, CUBIC = 0.044715f;

static float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)));
}

static float gelu_slope(float x)
{
    float t = tanhf(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
}

/* The bit of element (row, column) in relu's mask: columns of ld bits. */
static unsigned char *mask_byte(const matmul &of, char *aux, int64_t row, int64_t column)
{
    return (unsigned char *)aux + (column * of.aux_ld + row) / 8;
}

/* What the epilogue makes of one result; writes its aux value where it has one. */
static float finish(const matmul &of, float x, char *aux, int64_t row, int64_t column)
{
    int64_t at = column * of.aux_ld + row;
    switch (of.epilogue &
            ~(CUBLASLT_EPILOGUE_BIAS | 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB)) {
    case CUBLASLT_EPILOGUE_RELU_AUX: {
        unsigned char *byte = mask_byte(of, aux, row, column), bit = (unsigned char)(1 << row % 8);
        *byte = (unsigned char)(x > 0 ? *byte | bit : *byte & ~bit);
        return x > 0 ? x : 0;
    }
    case CUBLASLT_EPILOGUE_RELU:
        return x > 0 ? x : 0;
    case CUBLASLT_EPILOGUE_DRELU:
        return *mask_byte(of, aux, row, column) >> row % 8 & 1 ? x : 0;
    case CUBLASLT_EPILOGUE_GELU_AUX:
        element_set(aux, of.aux_type, at, x);
        return gelu(x);
    case CUBLASLT_EPILOGUE_GELU:
        return gelu(x);
    case CUBLASLT_EPILOGUE_DGELU:
        return x * gelu_slope(element_get(aux, of.aux_type, at));
    default:
        return x;
    }
}

static bool adds_bias(int epilogue)
{
    return epilogue & CUBLASLT_EPILOGUE_BIAS;
}

/* dRELU and dGELU with bias gradient, BGRADA and BGRADB write to the bias pointer. */
static bool bias_gradient(int epilogue)
{
    return epilogue & (16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
}

static int64_t bias_length(const matmul &of)
{
    return of.epilogue & CUBLASLT_EPILOGUE_BGRADB ? of.d.columns : of.d.rows;
}

static void input_sums(const matmul &of, const matrix &input, bool over_columns, char *bias)
{
    for (int64_t i = 0; i < bias_length(of); i++) {
        float sum = 0;
        for (int64_t l = 0; l < of.a.columns; l++)
            sum += round_to(over_columns ? matrix_get(input, i, l) : matrix_get(input, l, i), of.inputs);
        element_set(bias, of.bias_type, i, sum);
    }
}

static void run_batch(const matmul &of, int64_t batch, std::vector<float> &sums)
{
    matrix a = of.a.of_batch(batch), b = of.b.of_batch(batch), c = of.c.of_batch(batch),
           d = of.d.of_batch(batch);
    char *bias = (char *)of.bias + batch * of.bias_batch_step * (int64_t)type_bytes(of.bias_type);
    bool bits = (of.epilogue & CUBLASLT_EPILOGUE_RELU) || (of.epilogue & 8);
    int64_t aux_step = bits ? of.aux_batch_step / 8 : of.aux_batch_step * (int64_t)type_bytes(of.aux_type);
    char *aux = (char *)of.aux + batch * aux_step;
    std::vector<float> row_sums;
    bool result_gradient = of.epilogue & 16;
    if (result_gradient)
        row_sums.assign((size_t)d.rows, 0);
    product_sums(sums.data(), a, b, of.inputs);
    for (int64_t j = 0; j < d.columns; j++)
        for (int64_t i = 0; i < d.rows; i++) {
            float x = of.alpha * sums[(size_t)(j * d.rows + i)];
            if (of.beta != 0)
                x += of.beta * matrix_get(c, i, j);
            if (adds_bias(of.epilogue))
                x += element_get(bias, of.bias_type, i);
            x = finish(of, x, aux, i, j);
            matrix_set(d, i, j, x);
            if (result_gradient)
                row_sums[(size_t)i] += x;
        }
    for (int64_t i = 0; result_gradient && i < d.rows; i++)
        element_set(bias, of.bias_type, i, row_sums[(size_t)i]);
    if (of.epilogue & CUBLASLT_EPILOGUE_BGRADA)
        input_sums(of, a, true, bias);
    if (of.epilogue & CUBLASLT_EPILOGUE_BGRADB)
        input_sums(of, b, false, bias);
}

static bool is_there(const char *name, const char *what, const void *data, size_t bytes, int device)
{
    if (bytes == 0 || memory_on_device(data, bytes, device))
        return true;
    report("%s: %s takes %zu bytes on device %d: not there: %s", name, what, bytes, device,
           memory_describe(data).c_str());
    return false;
}

static size_t vector_bytes(int64_t length, int64_t step, int64_t batches, cudaDataType type)
{
    return (size_t)(length + (batches - 1) * step) * type_bytes(type);
}

static bool operands_are_there(const matmul &of, int device, const char *name)
{
    bool there = is_there(name, "A", of.a.data, of.a.extent(of.batches), device) &&
                 is_there(name, "B", of.b.data, of.b.extent(of.batches), device) &&
                 is_there(name, "D", of.d.data, of.d.extent(of.batches), device) &&
                 is_there(name, "workspace", of.workspace, of.workspace_bytes, device);
    if (there && of.beta != 0)
        there = is_there(name, "C", of.c.data, of.c.extent(of.batches), device);
    if (there && (adds_bias(of.epilogue) || bias_gradient(of.epilogue)))
        there = is_there(name, "bias", of.bias,
                         vector_bytes(bias_length(of), of.bias_batch_step, of.batches, of.bias_type), device);
    if (there && of.epilogue & 128) {
        bool bits = (of.epilogue & CUBLASLT_EPILOGUE_RELU) || (of.epilogue & 8);
        int64_t elements = of.aux_ld * of.d.columns + (of.batches - 1) * of.aux_batch_step;
        there = is_there(name, "aux", of.aux,
                         bits ? (size_t)elements / 8 : (size_t)elements * type_bytes(of.aux_type), device);
    }
    return there;
}

static progress matmul_work(const matmul &of, int device, const char *name)
{
    cudaError_t planted = launch_fault(device, name);
    if (planted == cudaSuccess && !operands_are_there(of, device, name))
        planted = cudaErrorIllegalAddress;
    if (planted != cudaSuccess) {
        device_fail(device, planted);
        return WORK_DONE;
    }
    std::vector<float> sums((size_t)(of.d.rows * of.d.columns));
    for (int64_t batch = 0; batch < of.batches; batch++)
        run_batch(of, batch, sums);
    pattern_fill(of.workspace, of.workspace_bytes, FRESH_PATTERN);
    return WORK_DONE;
}

cublasStatus_t matmul_queue(const matmul &product, cudaStream_t handle, const char *name)
{
    cudaError_t error = call(CALL_ANYWHERE, [&] {
        stream_state *stream;
        cudaError_t found = stream_find(handle, &stream);
        if (found != cudaSuccess)
            return found;
        int device = stream->device;
        return stream_add(stream, cudaGraphNodeTypeKernel,
                          [product, device, name] { return matmul_work(product, device, name); });
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
} // namespace emulated
