/* The linear layer's products. Row-major matrices are column-major transposes, so each product is written as
 * its transpose: y^T = w^T x^T. */
#include "kernels/cuda/product.cuh"

static bool is_real(enum device_precision precision)
{
    return precision == DEVICE_FP32 || precision == DEVICE_TF32;
}

/* d (m, n) = a (m, k) b (k, n), as stored. */
static struct cuda_product product_of(struct lanes lanes, int64_t m, int64_t n, int64_t k)
{
    struct cuda_product product = {};

    product.m = m;
    product.n = n;
    product.k = k;
    product.precision = lanes.precision;
    return product;
}

/* Bias, and relu, are added by the product itself where the result is real: cuBLASLt wants a bias of the
 * result's type, and ours is real. Its gelu is left out: how precise its tanh is stands nowhere. */
extern "C" void cuda_linear_forward(struct device *device, struct lanes lanes, void *y, void *before,
                                    const void *x, const void *weight, const real *bias, int64_t rows,
                                    int64_t inputs, int64_t outputs, enum device_activation f, bool wide)
{
    struct cuda_device *cuda = cuda_of(device);
    bool real_result = wide || is_real(lanes.precision);
    struct cuda_product product = product_of(lanes, outputs, rows, inputs);

    product.real_result = real_result;
    if (real_result && !before && (f == DEVICE_IDENTITY || f == DEVICE_RELU)) {
        product.epilogue = f == DEVICE_RELU ? CUDA_EPILOGUE_RELU_BIAS : CUDA_EPILOGUE_BIAS;
        if (cuda_product_run(cuda, lanes, &product, y, weight, x, bias))
            return;
        product.epilogue = CUDA_EPILOGUE_NONE;
    }
    cuda_product_run(cuda, lanes, &product, y, weight, x, NULL);
    cuda_bias_activation(cuda, lanes, y, before, bias, rows, outputs, f, wide);
}

extern "C" void cuda_linear_backward_data(struct device *device, struct lanes lanes, void *dx, const void *dy,
                                          const void *weight, int64_t rows, int64_t inputs, int64_t outputs)
{
    struct cuda_product product = product_of(lanes, inputs, rows, outputs);

    product.transpose_a = true;
    product.real_result = is_real(lanes.precision);
    cuda_product_run(cuda_of(device), lanes, &product, dx, weight, dy, NULL);
}

extern "C" void cuda_linear_backward_parameters(struct device *device, struct lanes lanes, real *dweight,
                                                real *dbias, const void *x, const void *dy, int64_t rows,
                                                int64_t inputs, int64_t outputs, bool accumulate)
{
    struct cuda_device *cuda = cuda_of(device);
    struct cuda_product product = product_of(lanes, outputs, inputs, rows);

    product.transpose_b = true;
    product.real_result = true;
    product.accumulate = accumulate;
    cuda_product_run(cuda, lanes, &product, dweight, dy, x, NULL);
    cuda_column_sums(cuda, lanes, dbias, dy, rows, outputs, accumulate);
}
