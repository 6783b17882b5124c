/* What kernels are written with: qualifiers, built-in variables, barriers, shuffles. The threads of a block
 * are fibers of one OS thread; a barrier or a shuffle is where they take turns. */
#ifndef EMULATED_GPU_DEVICE_CODE_H
#define EMULATED_GPU_DEVICE_CODE_H

#include <cstddef>
#include <cstring>

#include "emulated/vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

/* Blocks run one after the other, so that one copy serves them all. It lies in a section of its own, which is
 * filled with NaN before each block; not so under AddressSanitizer, which guards only what lies elsewhere,
 * and not within templates compiled by GCC, which ignores the attribute there. */
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __shared__ static
#endif
#endif
#ifndef __shared__
#define __shared__ static __attribute__((section("emulated_shared")))
#endif

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulated
{
enum warp_operation {
    WARP_SYNC,
    WARP_SHUFFLE, /* from lane `argument` of the segment */
    WARP_SHUFFLE_UP,
    WARP_SHUFFLE_DOWN,
    WARP_SHUFFLE_XOR,
    WARP_BALLOT
};

/* Waits for the lanes of `mask`; the 8 bytes another lane brought, or the ballot. */
unsigned long long warp_exchange(warp_operation operation, unsigned mask, unsigned long long value,
                                 int argument, int width);
/* Waits for the whole block; sum over it of `value`. */
int block_barrier(int value);
unsigned active_mask();

/* The block's dynamic shared memory, 16-byte aligned and guarded at its end. */
void *block_shared();

[[noreturn]] void kernel_trap();

template <class T>
static inline T shuffle(warp_operation operation, unsigned mask, T value, int argument, int width)
{
    static_assert(sizeof(T) <= 8, "shuffles move 4 or 8 bytes");
    unsigned long long bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = warp_exchange(operation, mask, bits, argument, width);
    std::memcpy(static_cast<void *>(&value), &bits, sizeof(T));
    return value;
}
} // namespace emulated

static inline void __syncthreads()
{
    emulated::block_barrier(0);
}
static inline int __syncthreads_count(int predicate)
{
    return emulated::block_barrier(predicate != 0);
}
static inline int __syncthreads_or(int predicate)
{
    return emulated::block_barrier(predicate != 0) != 0;
}
static inline int __syncthreads_and(int predicate)
{
    return emulated::block_barrier(predicate == 0) == 0;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    emulated::warp_exchange(emulated::WARP_SYNC, mask, 0, 0, 32);
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return emulated::shuffle(emulated::WARP_SHUFFLE, mask, value, lane, width);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    return emulated::shuffle(emulated::WARP_SHUFFLE_UP, mask, value, (int)delta, width);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    return emulated::shuffle(emulated::WARP_SHUFFLE_DOWN, mask, value, (int)delta, width);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32)
{
    return emulated::shuffle(emulated::WARP_SHUFFLE_XOR, mask, value, lanes, width);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return (unsigned)emulated::warp_exchange(emulated::WARP_BALLOT, mask, predicate != 0, 0, 32);
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}
static inline unsigned __activemask()
{
    return emulated::active_mask();
}
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}
[[noreturn]] static inline void __trap()
{
    emulated::kernel_trap();
}

#endif
