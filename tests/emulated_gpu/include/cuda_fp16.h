/* fp16: values are held in 16 bits, arithmetic is fp32 rounded once, as the device does for + - * /. */
#ifndef EMULATED_GPU_CUDA_FP16_H
#define EMULATED_GPU_CUDA_FP16_H

#include <cmath>

#include "emulated/narrow_float.h"
#include "emulated/vector_types.h"

struct __half_raw {
    unsigned short x;
};

struct __half {
  protected:
    unsigned short x;

  public:
    __half() = default;
    __half(float value) : x(emulated::float_to_fp16(value))
    {
    }
    __half(double value) : x(emulated::float_to_fp16((float)value))
    {
    }
    __half(int value) : x(emulated::float_to_fp16((float)value))
    {
    }
    constexpr __half(__half_raw raw) : x(raw.x)
    {
    }
    operator __half_raw() const
    {
        return __half_raw{x};
    }
    operator float() const
    {
        return emulated::fp16_to_float(x);
    }
    __half &operator+=(__half other)
    {
        return *this = __half((float)*this + (float)other);
    }
    __half &operator-=(__half other)
    {
        return *this = __half((float)*this - (float)other);
    }
    __half &operator*=(__half other)
    {
        return *this = __half((float)*this * (float)other);
    }
    __half &operator/=(__half other)
    {
        return *this = __half((float)*this / (float)other);
    }
};

struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    constexpr __half2(__half low, __half high) : x(low), y(high)
    {
    }
};

typedef __half half;
typedef __half2 half2;

static inline __half operator+(__half a, __half b)
{
    return __half((float)a + (float)b);
}
static inline __half operator-(__half a, __half b)
{
    return __half((float)a - (float)b);
}
static inline __half operator*(__half a, __half b)
{
    return __half((float)a * (float)b);
}
static inline __half operator/(__half a, __half b)
{
    return __half((float)a / (float)b);
}
static inline bool operator==(__half a, __half b)
{
    return (float)a == (float)b;
}
static inline bool operator!=(__half a, __half b)
{
    return (float)a != (float)b;
}
static inline bool operator<(__half a, __half b)
{
    return (float)a < (float)b;
}
static inline bool operator<=(__half a, __half b)
{
    return (float)a <= (float)b;
}
static inline bool operator>(__half a, __half b)
{
    return (float)a > (float)b;
}
static inline bool operator>=(__half a, __half b)
{
    return (float)a >= (float)b;
}
static inline __half operator-(__half a)
{
    return __half(__half_raw{(unsigned short)(((__half_raw)a).x ^ 0x8000)});
}

static inline __half __float2half(float x)
{
    return __half(x);
}
static inline __half __float2half_rn(float x)
{
    return __half(x);
}
static inline __half __double2half(double x)
{
    return __half(x);
}
static inline float __half2float(__half x)
{
    return (float)x;
}
static inline unsigned short __half_as_ushort(__half x)
{
    return ((__half_raw)x).x;
}
static inline __half __ushort_as_half(unsigned short bits)
{
    return __half(__half_raw{bits});
}
static inline __half2 __floats2half2_rn(float x, float y)
{
    return __half2(__half(x), __half(y));
}
static inline __half2 __float22half2_rn(float2 v)
{
    return __half2(__half(v.x), __half(v.y));
}
static inline __half2 __half2half2(__half x)
{
    return __half2(x, x);
}
static inline __half2 __halves2half2(__half x, __half y)
{
    return __half2(x, y);
}
static inline __half2 make_half2(__half x, __half y)
{
    return __half2(x, y);
}
static inline float2 __half22float2(__half2 v)
{
    return make_float2((float)v.x, (float)v.y);
}
static inline float __low2float(__half2 v)
{
    return (float)v.x;
}
static inline float __high2float(__half2 v)
{
    return (float)v.y;
}
static inline bool __hisnan(__half x)
{
    return std::isnan((float)x);
}
static inline int __hisinf(__half x)
{
    return !std::isinf((float)x) ? 0 : (float)x > 0 ? 1 : -1;
}
static inline __half __hadd(__half a, __half b)
{
    return a + b;
}
static inline __half __hsub(__half a, __half b)
{
    return a - b;
}
static inline __half __hmul(__half a, __half b)
{
    return a * b;
}
static inline __half __hfma(__half a, __half b, __half c)
{
    return __half(fmaf((float)a, (float)b, (float)c));
}

#endif
