/* Dropout: which elements are kept is a function of key, step, stream and position (kernels/device.h). */
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/operations.h"

/* Philox 4x32-10: the words of base/random.h, bit for bit. Constants and rounds of Salmon et al., SC'11,
 * section 3.3 and its table 2. */
#define PHILOX_ROUNDS 10

struct philox {
    uint32_t word[4];
};

__device__ static inline philox philox4x32(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
    const uint32_t m0 = 0xd2511f53u, m1 = 0xcd9e8d57u;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint32_t left = __umulhi(m0, c0), right = __umulhi(m1, c2);
        uint32_t odd1 = m1 * c2, odd3 = m0 * c0;
        c0 = right ^ c1 ^ k0;
        c2 = left ^ c3 ^ k1;
        c1 = odd1;
        c3 = odd3;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return {{c0, c1, c2, c3}};
}

/* 16 neighbouring counters decide on 128 elements; each has 4 words of 2 halves for elements 16 apart. A
 * thread takes one counter, so 16 threads share each 64 bytes that they read. */
#define GROUP_ELEMENTS 128
#define GROUP_COUNTERS 16
#define COUNTER_ELEMENTS (GROUP_ELEMENTS / GROUP_COUNTERS)

/* Elements of the effective batch that are here: first .. first + count - 1. */
template <typename T>
__global__ void dropout_kernel(T *y, unsigned char *mask, int64_t first, int64_t count, uint32_t stream,
                               const struct lane_state *state, size_t stride)
{
    const struct lane_state *own = cuda_lane(state, stride, blockIdx.y);
    T *to = cuda_lane(y, stride, blockIdx.y);                  // (count)
    unsigned char *kept = cuda_lane(mask, stride, blockIdx.y); // (count)
    const cuda_dropout_numbers numbers = cuda_dropout_of(own);
    const int64_t counters = GROUP_COUNTERS * ((first + count - 1) / GROUP_ELEMENTS + 1);
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    int64_t counter =
        GROUP_COUNTERS * (first / GROUP_ELEMENTS) + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; counter < counters; counter += threads) {
        const philox draw = philox4x32(own->key, (uint32_t)counter, 0, (uint32_t)own->step, stream);
        const int64_t at = counter / GROUP_COUNTERS * GROUP_ELEMENTS + counter % GROUP_COUNTERS - first;
        for (int k = 0; k < COUNTER_ELEMENTS; k++) {
            const int64_t i = at + k * GROUP_COUNTERS;
            const uint32_t word = draw.word[k / 2], half = k % 2 ? word >> 16 : word & 0xffff;
            if (i < 0 || i >= count)
                continue;
            const bool keep = half >= numbers.threshold;
            kept[i] = keep;
            cuda_set(&to[i], keep ? cuda_to_float(to[i]) * numbers.factor : 0);
        }
    }
}

extern "C" void cuda_dropout(struct device *device, struct lanes lanes, void *y, unsigned char *mask,
                             int64_t first_row, int64_t rows, int64_t columns, uint32_t stream,
                             const struct lane_state *state)
{
    struct cuda_device *cuda = cuda_of(device);
    int64_t first = first_row * columns, count = rows * columns;

    if (count <= 0)
        return;
    int64_t groups = (first + count - 1) / GROUP_ELEMENTS + 1 - first / GROUP_ELEMENTS;
    dim3 grid = cuda_each_grid(cuda, lanes, groups * GROUP_COUNTERS, CUDA_EACH_THREADS);
    cuda_with_stored(lanes.precision, [&](auto stored) {
        typedef decltype(stored) T;
        CUDA_LAUNCH(dropout_kernel<T>, grid, CUDA_EACH_THREADS, 0, cuda->stream, (T *)y, mask, first, count,
                    stream, state, lanes.stride);
    });
    cuda_note(cuda, cudaGetLastError(), "dropout");
}
