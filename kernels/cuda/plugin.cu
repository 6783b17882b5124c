/* What the plugin exports: how many devices there are, what they are, and the way to one. */
#include "kernels/cuda/core.cuh"

#include "kernels/plugin.h"

#include <stdio.h>

/* The driver's and the runtime's version, as "12.4". */
static void write_version(char text[16], int version)
{
    snprintf(text, 16, "%d.%d", version / 1000 % 100, version % 1000 / 10);
}

/* Why there is no device, in words that say what to do. */
static int unusable(struct error *err, cudaError_t code)
{
    char driver_text[16], runtime_text[16];
    int driver = 0, runtime = 0;

    (void)cudaGetLastError();
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    write_version(driver_text, driver);
    write_version(runtime_text, runtime);
    if (code == cudaErrorInsufficientDriver && driver == 0)
        return error_set(err, ERROR_RESOURCE,
                         "there is no NVIDIA driver (libcuda.so.1); install one that knows CUDA %s, or, in a "
                         "container, start it with its GPUs",
                         runtime_text);
    if (code == cudaErrorInsufficientDriver)
        return error_set(
            err, ERROR_RESOURCE,
            "the NVIDIA driver is too old: it knows CUDA %s, this build needs %s; update the driver",
            driver_text, runtime_text);
    if (code == cudaErrorNoDevice)
        return error_set(err, ERROR_RESOURCE,
                         "the NVIDIA driver sees no GPU (is CUDA_VISIBLE_DEVICES empty?)");
    return error_set(err, ERROR_RESOURCE, "the GPUs cannot be used: %s: %s", cudaGetErrorName(code),
                     cudaGetErrorString(code));
}

static int plugin_count(struct error *err)
{
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);

    if (code == cudaSuccess && count == 0)
        code = cudaErrorNoDevice;
    return code == cudaSuccess ? count : unusable(err, code);
}

static int check_number(int number, struct error *err)
{
    int count = plugin_count(err);

    if (count < 0)
        return error_prefix(err, CUDA_KIND ":%d", number);
    if (number < 0 || number >= count)
        return error_set(err, ERROR_RESOURCE, "there is no device " CUDA_KIND ":%d, only %d (from 0 on)",
                         number, count);
    return 0;
}

static int plugin_describe(int number, struct device_description_of *description, struct error *err)
{
    struct cudaDeviceProp properties;
    cudaError_t code;

    if (check_number(number, err) != 0)
        return -1;
    code = cudaGetDeviceProperties(&properties, number);
    if (code != cudaSuccess)
        return cuda_error(err, number, code, "asking for its properties");
    *description = {};
    snprintf(description->id, sizeof description->id, CUDA_KIND ":%d", number);
    snprintf(description->name, sizeof description->name, "%.63s", properties.name);
    description->memory_bytes = properties.totalGlobalMem;
    description->major = properties.major;
    description->minor = properties.minor;
    description->bf16 = properties.major >= 8;
    return 0;
}

static struct device *plugin_create(int number, struct error *err)
{
    return check_number(number, err) == 0 ? cuda_create(number, err) : NULL;
}

extern "C" __attribute__((visibility("default"))) const struct device_plugin *rung_device_plugin(void)
{
    static const struct device_plugin plugin = {
        .version = DEVICE_PLUGIN_VERSION,
        .kind = CUDA_KIND,
        .count = plugin_count,
        .describe = plugin_describe,
        .create = plugin_create,
    };
    return &plugin;
}
