/* Arithmetic intrinsics. Those that are approximate on the device are exact here: within the device's error
 * bound, not bit for bit the same. */
#ifndef EMULATED_GPU_DEVICE_FUNCTIONS_H
#define EMULATED_GPU_DEVICE_FUNCTIONS_H

#include <cmath>
#include <cstdint>
#include <cstring>

/* The C library declares these names for itself, with C linkage: hence macros. */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) sincosf(x, s, c)

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
static inline float __frsqrt_rn(float x)
{
    return (float)(1.0 / sqrt((double)x));
}
static inline float __saturatef(float x)
{
    return x > 0 ? (x < 1 ? x : 1) : 0; /* NaN gives 0 */
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __fdiv_rn(float x, float y)
{
    return x / y;
}
static inline float __frcp_rn(float x)
{
    return 1.0f / x;
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
/* These are never contracted into a fused multiply-add. */
static inline float __fadd_rn(float x, float y)
{
    volatile float sum = x + y;
    return sum;
}
static inline float __fsub_rn(float x, float y)
{
    volatile float difference = x - y;
    return difference;
}
static inline float __fmul_rn(float x, float y)
{
    volatile float product = x * y;
    return product;
}
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
static inline double __dadd_rn(double x, double y)
{
    volatile double sum = x + y;
    return sum;
}
static inline double __dmul_rn(double x, double y)
{
    volatile double product = x * y;
    return product;
}
static inline double __ddiv_rn(double x, double y)
{
    return x / y;
}
static inline double __dsqrt_rn(double x)
{
    return sqrt(x);
}
static inline double __fma_rn(double x, double y, double z)
{
    return fma(x, y, z);
}

/* Conversions: to integers they saturate and NaN gives 0, as on the device. */
template <class I, class F> static inline I emulated_to_integer(F x, I least, I greatest)
{
    if (x != x)
        return 0;
    if (x <= (F)least)
        return least;
    return x >= (F)greatest ? greatest : (I)x;
}
static inline int __float2int_rn(float x)
{
    return emulated_to_integer<int>(nearbyintf(x), INT32_MIN, INT32_MAX);
}
static inline int __float2int_rz(float x)
{
    return emulated_to_integer<int>(truncf(x), INT32_MIN, INT32_MAX);
}
static inline int __float2int_rd(float x)
{
    return emulated_to_integer<int>(floorf(x), INT32_MIN, INT32_MAX);
}
static inline unsigned __float2uint_rn(float x)
{
    return emulated_to_integer<unsigned>(nearbyintf(x), 0, UINT32_MAX);
}
static inline unsigned __float2uint_rz(float x)
{
    return emulated_to_integer<unsigned>(truncf(x), 0, UINT32_MAX);
}
static inline int __double2int_rn(double x)
{
    return emulated_to_integer<int>(nearbyint(x), INT32_MIN, INT32_MAX);
}
static inline long long __double2ll_rn(double x)
{
    return emulated_to_integer<long long>(nearbyint(x), INT64_MIN, INT64_MAX);
}
static inline float __double2float_rn(double x)
{
    return (float)x;
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}
static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
static inline double __int2double_rn(int x)
{
    return x;
}
static inline double __ll2double_rn(long long x)
{
    return (double)x;
}

/* Bits. */
template <class To, class From> static inline To emulated_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "same size");
    To bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline int __float_as_int(float x)
{
    return emulated_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return emulated_bits<unsigned>(x);
}
static inline float __int_as_float(int x)
{
    return emulated_bits<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return emulated_bits<float>(x);
}
static inline long long __double_as_longlong(double x)
{
    return emulated_bits<long long>(x);
}
static inline double __longlong_as_double(long long x)
{
    return emulated_bits<double>(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline unsigned __brev(unsigned x)
{
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; bit++)
        reversed |= (x >> bit & 1) << (31 - bit);
    return reversed;
}
static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((unsigned long long)x * y >> 32);
}
static inline int __mulhi(int x, int y)
{
    return (int)((long long)x * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}

template <class T> static inline T __ldg(const T *pointer)
{
    return *pointer;
}
template <class T> static inline T __ldcs(const T *pointer)
{
    return *pointer;
}
template <class T> static inline void __stcs(T *pointer, T value)
{
    *pointer = value;
}

/* CUDA's overloads of min and max in the global namespace. NaN is ignored, as by fmin and fmax. */
#define EMULATED_MIN_MAX(type)                                                                               \
    static inline type min(type x, type y)                                                                   \
    {                                                                                                        \
        return y < x ? y : x;                                                                                \
    }                                                                                                        \
    static inline type max(type x, type y)                                                                   \
    {                                                                                                        \
        return x < y ? y : x;                                                                                \
    }
EMULATED_MIN_MAX(int)
EMULATED_MIN_MAX(unsigned int)
EMULATED_MIN_MAX(long)
EMULATED_MIN_MAX(unsigned long)
EMULATED_MIN_MAX(long long)
EMULATED_MIN_MAX(unsigned long long)
#undef EMULATED_MIN_MAX
static inline float min(float x, float y)
{
    return fminf(x, y);
}
static inline float max(float x, float y)
{
    return fmaxf(x, y);
}
static inline double min(double x, double y)
{
    return fmin(x, y);
}
static inline double max(double x, double y)
{
    return fmax(x, y);
}
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

#endif
