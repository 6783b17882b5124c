/* Device memory: blocks from the driver's pool, in the order of the stream; data shared by all lanes. */
#include "kernels/cuda/core.cuh"

#include <stdlib.h>

struct cuda_share {
    const void *host;
    size_t bytes;
    void *memory;
    int64_t users;
    struct cuda_share *next;
};

int cuda_pool_create(struct cuda_device *cuda, struct error *err)
{
    uint64_t keep =
        UINT64_MAX; /* what one trial gives back is the next one's: it never returns to the driver */
    int pools = 0;
    cudaError_t code;

    cuda->pool = (struct cuda_pool *)calloc(1, sizeof *cuda->pool);
    if (!cuda->pool)
        return error_set(err, ERROR_MEMORY, "no memory for a device");
    code = cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, cuda->number);
    if (code == cudaSuccess && !pools)
        return error_set(err, ERROR_RESOURCE, CUDA_KIND ":%d: its driver has no memory pools", cuda->number);
    if (code == cudaSuccess)
        code = cudaDeviceGetDefaultMemPool(&cuda->pool->pool, cuda->number);
    if (code == cudaSuccess)
        code = cudaMemPoolSetAttribute(cuda->pool->pool, cudaMemPoolAttrReleaseThreshold, &keep);
    if (code != cudaSuccess)
        return cuda_error(err, cuda->number, code, "its memory pool");
    cuda->pool->staging = cuda_staging_create(cuda->number, err);
    return cuda->pool->staging ? 0 : -1;
}

void cuda_pool_destroy(struct cuda_device *cuda)
{
    if (!cuda->pool)
        return;
    while (cuda->pool->shares) {
        struct cuda_share *share = cuda->pool->shares;
        cuda->pool->shares = share->next;
        (void)cudaFreeAsync(share->memory, cuda->stream);
        free(share);
    }
    if (cuda->pool->pool && cudaStreamSynchronize(cuda->stream) == cudaSuccess)
        (void)cudaMemPoolTrimTo(cuda->pool->pool, 0); /* for the machine's other processes */
    cuda_staging_destroy(cuda->pool->staging);
    free(cuda->pool);
    cuda->pool = NULL;
}

/* What the pool holds for nobody goes back to the driver, in case it lies in pieces that fit nobody. */
static cudaError_t allocate_again(struct cuda_device *cuda, void **memory, size_t bytes)
{
    cudaError_t code;

    (void)cudaGetLastError();
    code = cudaStreamSynchronize(cuda->stream);
    if (code == cudaSuccess)
        code = cudaMemPoolTrimTo(cuda->pool->pool, 0);
    return code == cudaSuccess ? cudaMallocAsync(memory, bytes, cuda->stream) : code;
}

static int refuse(struct device *device, size_t bytes, struct error *err)
{
    size_t available, total;

    (void)cudaGetLastError();
    cuda_memory(device, &available, &total);
    return error_set(err, ERROR_MEMORY, CUDA_KIND ":%d: no memory for %zu bytes: %zu of its %zu are free",
                     cuda_of(device)->number, bytes, available, total);
}

/* Not yet zeroed. */
static int take(struct device *device, void **memory, size_t bytes, struct error *err)
{
    struct cuda_device *cuda = cuda_of(device);
    size_t rounded = (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    cudaError_t code;

    if (cuda->recording)
        return error_set(err, ERROR_INTERNAL, CUDA_KIND ":%d: memory allocated in a recording", cuda->number);
    if (rounded < bytes)
        return refuse(device, bytes, err);
    code = cudaMallocAsync(memory, rounded ? rounded : DEVICE_ALIGNMENT, cuda->stream);
    if (code == cudaErrorMemoryAllocation)
        code = allocate_again(cuda, memory, rounded ? rounded : DEVICE_ALIGNMENT);
    if (code == cudaErrorMemoryAllocation)
        return refuse(device, bytes, err);
    if (code != cudaSuccess) {
        cuda->unusable |= cuda_is_lost(code);
        return cuda_error(err, cuda->number, code, "allocating memory");
    }
    return 0;
}

extern "C" int cuda_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    struct cuda_device *cuda = cuda_of(device);
    void *taken;

    if (take(device, &taken, bytes, err) != 0)
        return -1;
    cuda_note(cuda, cudaMemsetAsync(taken, 0, bytes, cuda->stream), "zeroing new memory");
    *memory = taken;
    return 0;
}

extern "C" void cuda_release(struct device *device, void *memory)
{
    struct cuda_device *cuda = cuda_of(device);

    if (memory)
        cuda_note(cuda, cudaFreeAsync(memory, cuda->stream), "releasing memory");
}

extern "C" int cuda_share(struct device *device, const void **memory, const void *host, size_t bytes,
                          struct error *err)
{
    struct cuda_device *cuda = cuda_of(device);
    struct cuda_share *share = cuda->pool->shares;

    while (share && (share->host != host || share->bytes != bytes))
        share = share->next;
    if (!share) {
        share = (struct cuda_share *)calloc(1, sizeof *share);
        if (!share)
            return error_set(err, ERROR_MEMORY, "no memory for %zu bytes", sizeof *share);
        if (take(device, &share->memory, bytes, err) != 0) {
            free(share);
            return -1;
        }
        share->host = host;
        share->bytes = bytes;
        share->next = cuda->pool->shares;
        cuda->pool->shares = share;
        cuda_upload(device, share->memory, host, bytes);
    }
    share->users++;
    *memory = share->memory;
    return 0;
}

extern "C" void cuda_unshare(struct device *device, const void *memory)
{
    struct cuda_device *cuda = cuda_of(device);
    struct cuda_share **link = &cuda->pool->shares, *share;

    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    share = *link;
    if (!share || --share->users > 0)
        return;
    *link = share->next;
    cuda_release(device, share->memory);
    free(share);
}

/* Pitched copies reach no further than this from row to row. */
#define PITCH_MOST ((size_t)INT32_MAX)

extern "C" void cuda_copy(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);
    const char *what = "copying on the device";

    if (bytes == 0)
        return;
    if (lanes.count > 1 && lanes.stride <= PITCH_MOST) {
        cuda_note(cuda,
                  cudaMemcpy2DAsync(to, lanes.stride, from, lanes.stride, bytes, (size_t)lanes.count,
                                    cudaMemcpyDeviceToDevice, cuda->stream),
                  what);
        return;
    }
    for (int64_t l = 0; l < lanes.count; l++)
        cuda_note(cuda,
                  cudaMemcpyAsync(cuda_lane((char *)to, lanes.stride, l),
                                  cuda_lane((const char *)from, lanes.stride, l), bytes,
                                  cudaMemcpyDeviceToDevice, cuda->stream),
                  what);
}

extern "C" void cuda_zero(struct device *device, struct lanes lanes, void *memory, size_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);

    if (bytes == 0)
        return;
    if (lanes.count > 1 && lanes.stride <= PITCH_MOST) {
        cuda_note(cuda, cudaMemset2DAsync(memory, lanes.stride, 0, bytes, (size_t)lanes.count, cuda->stream),
                  "zeroing");
        return;
    }
    for (int64_t l = 0; l < lanes.count; l++)
        cuda_note(cuda, cudaMemsetAsync(cuda_lane((char *)memory, lanes.stride, l), 0, bytes, cuda->stream),
                  "zeroing");
}

extern "C" void cuda_memory(struct device *device, size_t *available, size_t *total)
{
    struct cuda_device *cuda = cuda_of(device);
    uint64_t reserved = 0, used = 0;
    cudaError_t code = cudaStreamSynchronize(cuda->stream); /* what is being released counts as free */

    *available = *total = 0;
    if (code == cudaSuccess)
        code = cudaMemGetInfo(available, total);
    if (code == cudaSuccess)
        code = cudaMemPoolGetAttribute(cuda->pool->pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    if (code == cudaSuccess)
        code = cudaMemPoolGetAttribute(cuda->pool->pool, cudaMemPoolAttrUsedMemCurrent, &used);
    cuda_note(cuda, code, "asking for its free memory");
    if (reserved > used)
        *available += (size_t)(reserved - used);
}

extern "C" int cuda_synchronize(struct device *device, struct error *err)
{
    struct cuda_device *cuda = cuda_of(device);
    cudaError_t code;

    if (cuda->recording)
        return error_set(err, ERROR_INTERNAL, CUDA_KIND ":%d: waited for in a recording", cuda->number);
    code = cudaStreamSynchronize(cuda->stream);
    cuda_note(cuda, code, "its work");
    cuda_staging_hand_over(cuda->pool->staging, code == cudaSuccess);
    if (cuda->failure.code == ERROR_NONE)
        return 0;
    error_set(err, cuda->failure.code, "%s", cuda->failure.message);
    if (!cuda->unusable) /* what is lost stays lost, and is said each time */
        cuda->failure.code = ERROR_NONE;
    return -1;
}
