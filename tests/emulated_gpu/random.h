/* Cheap random numbers for orders (SplitMix64, Steele et al. 2014). */
#ifndef EMULATED_GPU_RANDOM_H
#define EMULATED_GPU_RANDOM_H

#include <cstdint>

namespace emulated
{
struct random {
    uint64_t state;
    uint64_t next()
    {
        uint64_t x = state += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
    }
    /* In [0, n), n < 2^32. */
    uint32_t below(uint32_t n)
    {
        return (uint32_t)((next() >> 32) * n >> 32);
    }
};
} // namespace emulated

#endif
