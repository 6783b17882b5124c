/* The CUDA backend's table, and how its devices begin and end. */
#include "kernels/cuda/core.cuh"

#include <stdio.h>
#include <stdlib.h>

static const struct device_operations operations = {
    .destroy = cuda_destroy,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .share = cuda_share,
    .unshare = cuda_unshare,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .zero = cuda_zero,
    .memory = cuda_memory,
    .synchronize = cuda_synchronize,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .forget = cuda_forget,
    .step_begin = cuda_step_begin,
    .step_end = cuda_step_end,
    .gather = cuda_gather,
    .gather_real = cuda_gather_real,
    .gather_integers = cuda_gather_integers,
    .embedding_forward = cuda_embedding_forward,
    .embedding_backward = cuda_embedding_backward,
    .linear_forward = cuda_linear_forward,
    .linear_backward_data = cuda_linear_backward_data,
    .linear_backward_parameters = cuda_linear_backward_parameters,
    .activation = cuda_activation,
    .add = cuda_add,
    .dropout = cuda_dropout,
    .activation_backward = cuda_activation_backward,
    .activation_backward_bias = cuda_activation_backward_bias,
    .layer_norm = cuda_layer_norm,
    .layer_norm_backward = cuda_layer_norm_backward,
    .batch_norm = cuda_batch_norm,
    .batch_norm_apply = cuda_batch_norm_apply,
    .batch_norm_backward = cuda_batch_norm_backward,
    .softmax_cross_entropy = cuda_softmax_cross_entropy,
    .binary_cross_entropy = cuda_binary_cross_entropy,
    .squared_error = cuda_squared_error,
    .huber_error = cuda_huber_error,
    .measure_gradient = cuda_measure_gradient,
    .update = cuda_update,
    .store = cuda_store,
    .finite = cuda_finite,
};

/* The oldest capability with bf16 and tf32, and with kernels in the plugin. */
enum { MAJOR_LEAST = 8 };

static int describe(struct cuda_device *cuda, struct error *err)
{
    struct cudaDeviceProp properties;
    cudaError_t code = cudaGetDeviceProperties(&properties, cuda->number);

    if (code != cudaSuccess)
        return cuda_error(err, cuda->number, code, "asking for its properties");
    if (properties.major < MAJOR_LEAST)
        return error_set(err, ERROR_RESOURCE,
                         CUDA_KIND
                         ":%d: %s has compute capability %d.%d; %d.0 is the oldest that is supported",
                         cuda->number, properties.name, properties.major, properties.minor, MAJOR_LEAST);
#ifdef RUNG_EMULATED_GPU
    snprintf(cuda->device.name, sizeof cuda->device.name, "emulated");
#else
    snprintf(cuda->device.name, sizeof cuda->device.name, "cuda/%.50s", properties.name);
#endif
    cuda->multiprocessors = properties.multiProcessorCount;
    cuda->device.operations = &operations;
    cuda->device.evaluation_rows = DEVICE_EVALUATION_ROWS_GPU;
    for (int precision = DEVICE_FP32; precision <= DEVICE_FP16; precision++)
        cuda->device.precisions[precision] = true;
    return 0;
}

/* The context comes with the first call that needs one. */
static int open_device(struct cuda_device *cuda, struct error *err)
{
    cudaError_t code = cudaSetDevice(cuda->number);

    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaMalloc(&cuda->workspace, CUDA_WORKSPACE_BYTES);
    if (code == cudaErrorDevicesUnavailable) {
        (void)cudaGetLastError();
        return error_set(err, ERROR_RESOURCE,
                         CUDA_KIND ":%d: beginning to use it: %s: another process may have it to itself "
                                   "(its compute mode: nvidia-smi -q -d COMPUTE), or it needs a reset",
                         cuda->number, cudaGetErrorName(code));
    }
    if (code != cudaSuccess)
        return cuda_error(err, cuda->number, code, "beginning to use it");
    return cuda_pool_create(cuda, err) == 0 && cuda_products_create(cuda, err) == 0 ? 0 : -1;
}

struct device *cuda_create(int number, struct error *err)
{
    struct cuda_device *cuda = (struct cuda_device *)calloc(1, sizeof *cuda);

    if (!cuda) {
        error_set(err, ERROR_MEMORY, "no memory for a device");
        return NULL;
    }
    cuda->number = number;
    if (describe(cuda, err) == 0 && open_device(cuda, err) == 0)
        return &cuda->device;
    cuda_destroy(&cuda->device);
    return NULL;
}

extern "C" void cuda_destroy(struct device *device)
{
    struct cuda_device *cuda = (struct cuda_device *)device;

    if (!cuda)
        return;
    (void)cudaSetDevice(cuda->number);
    if (cuda->stream)
        (void)cudaStreamSynchronize(cuda->stream);
    cuda_products_destroy(cuda);
    cuda_pool_destroy(cuda);
    if (cuda->workspace)
        (void)cudaFree(cuda->workspace);
    if (cuda->stream)
        (void)cudaStreamDestroy(cuda->stream);
    (void)cudaGetLastError();
    free(cuda);
}
