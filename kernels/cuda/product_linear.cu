/* The linear layer's products. Row-major matrices are column-major transposes, so each product is written as
 * its transpose: y^T = w^T x^T. */
#include "kernels/cuda/product.cuh"

static bool is_real(enum device_precision precision)
{
    return precision == DEVICE_FP32 || precision == DEVICE_TF32;
}

/* d (m, n) = a (m, k) b (k, n), with a real result. */
static struct cuda_product product_of(struct lanes lanes, int64_t m, int64_t n, int64_t k)
{
    struct cuda_product product = {};

    product.m = m;
    product.n = n;
    product.k = k;
    product.precision = lanes.precision;
    product.real_result = true;
    return product;
}

static struct cuda_operands operands_of(struct lanes lanes, void *d, const void *a, const void *b)
{
    return {d, lanes.stride, a, b, NULL};
}

/* y real. Bias and relu are added by the product itself. cuBLASLt's gelu is left out: how precise its tanh is
 * stands nowhere. */
static void forward_real(struct cuda_device *cuda, struct lanes lanes, struct cuda_product product,
                         struct cuda_operands operands, void *before, const real *bias,
                         enum device_activation f, bool wide)
{
    if (!before && (f == DEVICE_IDENTITY || f == DEVICE_RELU)) {
        product.epilogue = f == DEVICE_RELU ? CUDA_EPILOGUE_RELU_BIAS : CUDA_EPILOGUE_BIAS;
        operands.bias = bias;
        if (cuda_product_run(cuda, lanes, &product, &operands))
            return;
        product.epilogue = CUDA_EPILOGUE_NONE;
        operands.bias = NULL;
    }
    cuda_product_run(cuda, lanes, &product, &operands);
    cuda_bias_activation(cuda, lanes, operands.d, before, (const real *)operands.d, lanes.stride, bias,
                         product.n, product.m, f, wide);
}

/* y of 16 bits. cuBLASLt wants a bias of its result's type, and ours is real; and what is rounded to 16 bits
 * before the bias is added loses more than it may. So the product goes to the workspace, in pieces that stay
 * in the device's cache. How many rows are a piece must not depend on how many lanes there are. */
static void forward_narrow(struct cuda_device *cuda, struct lanes lanes, struct cuda_product product,
                           struct cuda_operands operands, void *before, const real *bias,
                           enum device_activation f)
{
    const int64_t rows = product.n, outputs = product.m, inputs = product.k;
    const int64_t most = (int64_t)(CUDA_WORKSPACE_BYTES / ((size_t)outputs * sizeof(real)));
    const int64_t piece = rows < most ? rows : most;
    const size_t size = device_stored_size(lanes.precision);
    size_t stride = (size_t)(piece * outputs) * sizeof(real);
    int64_t lanes_most;

    if (piece == 0) {
        cuda_fail(cuda, ERROR_INTERNAL, "a layer of %lld outputs", (long long)outputs);
        return;
    }
    stride = (stride + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    lanes_most = stride < CUDA_WORKSPACE_BYTES ? (int64_t)(CUDA_WORKSPACE_BYTES / stride) : 1;
    for (int64_t lane = 0; lane < lanes.count; lane += lanes_most) {
        struct lanes some = lanes;
        some.count = lanes.count - lane < lanes_most ? lanes.count - lane : lanes_most;
        for (int64_t row = 0; row < rows; row += piece) {
            size_t offset = (size_t)lane * lanes.stride, at = (size_t)(row * outputs) * size;
            struct cuda_operands part = {cuda->workspace, stride, (const char *)operands.a + offset,
                                         (const char *)operands.b + offset + (size_t)(row * inputs) * size,
                                         NULL};
            product.n = rows - row < piece ? rows - row : piece;
            cuda_product_run(cuda, some, &product, &part);
            cuda_bias_activation(cuda, some, (char *)operands.d + offset + at,
                                 before ? (char *)before + offset + at : NULL, (real *)cuda->workspace,
                                 stride, cuda_lane(bias, lanes.stride, lane), product.n, outputs, f, false);
        }
    }
}

extern "C" void cuda_linear_forward(struct device *device, struct lanes lanes, void *y, void *before,
                                    const void *x, const void *weight, const real *bias, int64_t rows,
                                    int64_t inputs, int64_t outputs, enum device_activation f, bool wide)
{
    struct cuda_product product = product_of(lanes, outputs, rows, inputs);
    struct cuda_operands operands = operands_of(lanes, y, weight, x);

    if (wide || is_real(lanes.precision))
        forward_real(cuda_of(device), lanes, product, operands, before, bias, f, wide);
    else
        forward_narrow(cuda_of(device), lanes, product, operands, before, bias, f);
}

extern "C" void cuda_linear_backward_data(struct device *device, struct lanes lanes, void *dx, const void *dy,
                                          const void *weight, int64_t rows, int64_t inputs, int64_t outputs)
{
    struct cuda_product product = product_of(lanes, inputs, rows, outputs);
    struct cuda_operands operands = operands_of(lanes, dx, weight, dy);

    product.transpose_a = true;
    product.real_result = is_real(lanes.precision);
    cuda_product_run(cuda_of(device), lanes, &product, &operands);
}

extern "C" void cuda_linear_backward_parameters(struct device *device, struct lanes lanes, real *dweight,
                                                real *dbias, const void *x, const void *dy, int64_t rows,
                                                int64_t inputs, int64_t outputs, bool accumulate)
{
    struct cuda_device *cuda = cuda_of(device);
    struct cuda_product product = product_of(lanes, outputs, inputs, rows);
    struct cuda_operands operands = operands_of(lanes, dweight, dy, x);

    product.transpose_b = true;
    product.accumulate = accumulate;
    cuda_product_run(cuda, lanes, &product, &operands);
    if (dbias)
        cuda_column_sums(cuda, lanes, dbias, dy, rows, outputs, accumulate);
}
