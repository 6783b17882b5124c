/* Between host and device, through pinned memory: the host's memory is free when a call returns, and the
 * stream never waits for the host. */
#include "kernels/cuda/core.cuh"

#include <stdlib.h>
#include <string.h>

/* Uploads fill one slot after the other; a slot is used again when the copies out of it have been made. Four
 * of a MiB keep a PCIe 5 link busy while the next is being filled, and hold thousands of small copies. */
enum { SLOTS = 4 };
#define SLOT_BYTES ((size_t)1 << 20)
/* Of results on their way to the host; a synchronize is due when they are full. */
#define RESULT_BYTES ((size_t)64 << 10)
enum { RESULTS = 256 };

struct cuda_staging {
    char *pinned;              /* (SLOTS, SLOT_BYTES), then RESULT_BYTES */
    cudaEvent_t copied[SLOTS]; /* recorded when a slot was left full */
    bool left[SLOTS];
    int slot;
    size_t filled; /* of the slot in use */
    struct {
        void *host;
        size_t offset, bytes;
    } results[RESULTS];
    int result_count;
    size_t result_bytes;
};

struct cuda_staging *cuda_staging_create(int number, struct error *err)
{
    struct cuda_staging *staging = (struct cuda_staging *)calloc(1, sizeof *staging);
    cudaError_t code;

    if (!staging) {
        error_set(err, ERROR_MEMORY, "no memory for a device");
        return NULL;
    }
    code = cudaMallocHost((void **)&staging->pinned, SLOTS * SLOT_BYTES + RESULT_BYTES);
    for (int i = 0; i < SLOTS && code == cudaSuccess; i++)
        code = cudaEventCreateWithFlags(&staging->copied[i], cudaEventDisableTiming);
    if (code == cudaSuccess)
        return staging;
    cuda_error(err, number, code, "its pinned memory");
    cuda_staging_destroy(staging);
    return NULL;
}

void cuda_staging_destroy(struct cuda_staging *staging)
{
    if (!staging)
        return;
    for (int i = 0; i < SLOTS; i++)
        if (staging->copied[i])
            (void)cudaEventDestroy(staging->copied[i]);
    if (staging->pinned)
        (void)cudaFreeHost(staging->pinned);
    free(staging);
}

/* Leaves the full slot, and waits until the next can be filled. */
static cudaError_t next_slot(struct cuda_staging *staging, cudaStream_t stream)
{
    cudaError_t code = cudaEventRecord(staging->copied[staging->slot], stream);

    if (code != cudaSuccess)
        return code;
    staging->left[staging->slot] = true;
    staging->slot = (staging->slot + 1) % SLOTS;
    staging->filled = 0;
    if (!staging->left[staging->slot])
        return cudaSuccess;
    return cudaEventSynchronize(staging->copied[staging->slot]);
}

extern "C" void cuda_upload(struct device *device, void *memory, const void *host, size_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);
    struct cuda_staging *staging = cuda->pool->staging;
    cudaError_t code = cudaSuccess;

    if (cuda->recording) {
        cuda_fail(cuda, ERROR_INTERNAL, "an upload in a recording");
        return;
    }
    for (size_t done = 0, part; done < bytes && code == cudaSuccess; done += part) {
        if (staging->filled >= SLOT_BYTES)
            code = next_slot(staging, cuda->stream);
        part = bytes - done < SLOT_BYTES - staging->filled ? bytes - done : SLOT_BYTES - staging->filled;
        if (code == cudaSuccess) {
            char *from = staging->pinned + (size_t)staging->slot * SLOT_BYTES + staging->filled;
            memcpy(from, (const char *)host + done, part);
            code = cudaMemcpyAsync((char *)memory + done, from, part, cudaMemcpyHostToDevice, cuda->stream);
        }
        staging->filled += (part + 15) / 16 * 16; /* each copy aligned at its source */
    }
    cuda_note(cuda, code, "copying to the device");
}

extern "C" void cuda_download(struct device *device, void *host, const void *memory, size_t bytes)
{
    struct cuda_device *cuda = cuda_of(device);
    cudaError_t code;

    if (cuda->recording) {
        cuda_fail(cuda, ERROR_INTERNAL, "a download in a recording");
        return;
    }
    code = bytes ? cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, cuda->stream) : cudaSuccess;
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(cuda->stream);
    cuda_note(cuda, code, "copying from the device");
    if (code != cudaSuccess)
        memset(host, 0, bytes); /* told by synchronize; until then at least the same in every run */
}

void cuda_deliver(struct cuda_device *cuda, void *host, const void *memory, size_t bytes)
{
    struct cuda_staging *staging = cuda->pool->staging;
    size_t offset;

    if (bytes > RESULT_BYTES) {
        cuda_download(&cuda->device, host, memory, bytes);
        return;
    }
    if (staging->result_count == RESULTS || staging->result_bytes + bytes > RESULT_BYTES) {
        cudaError_t code = cudaStreamSynchronize(cuda->stream);
        cuda_note(cuda, code, "its work");
        cuda_staging_hand_over(staging, code == cudaSuccess);
    }
    offset = staging->result_bytes;
    staging->results[staging->result_count].host = host;
    staging->results[staging->result_count].offset = offset;
    staging->results[staging->result_count++].bytes = bytes;
    staging->result_bytes += (bytes + 15) / 16 * 16;
    cuda_note(cuda,
              cudaMemcpyAsync(staging->pinned + SLOTS * SLOT_BYTES + offset, memory, bytes,
                              cudaMemcpyDeviceToHost, cuda->stream),
              "copying a result from the device");
}

void cuda_staging_hand_over(struct cuda_staging *staging, bool complete)
{
    const char *results = staging->pinned + SLOTS * SLOT_BYTES;

    for (int i = 0; i < staging->result_count; i++) {
        if (complete)
            memcpy(staging->results[i].host, results + staging->results[i].offset, staging->results[i].bytes);
        else
            memset(staging->results[i].host, 0, staging->results[i].bytes);
    }
    staging->result_count = 0;
    staging->result_bytes = 0;
}
