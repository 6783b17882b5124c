/* Philox 4x32-10 on the device: the words of base/random.h, bit for bit. Constants and rounds of Salmon et
 * al., SC'11, section 3.3 and its table 2. */
#ifndef RUNG_KERNELS_CUDA_PHILOX_CUH
#define RUNG_KERNELS_CUDA_PHILOX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#define CUDA_PHILOX_ROUNDS 10

struct cuda_philox {
    uint32_t word[4];
};

__device__ static inline cuda_philox cuda_philox4x32(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2,
                                                     uint32_t c3)
{
    const uint32_t m0 = 0xd2511f53u, m1 = 0xcd9e8d57u;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < CUDA_PHILOX_ROUNDS; round++) {
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

#endif
