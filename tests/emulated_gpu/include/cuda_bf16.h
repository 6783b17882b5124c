/* bf16: values are held in 16 bits, arithmetic is fp32 rounded once, as the device does for + - * /. */
#ifndef EMULATED_GPU_CUDA_BF16_H
#define EMULATED_GPU_CUDA_BF16_H

#include <cmath>

#include "emulated/narrow_float.h"
#include "emulated/vector_types.h"

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct __nv_bfloat16 {
  protected:
    unsigned short x;

  public:
    __nv_bfloat16() = default;
    __nv_bfloat16(float value) : x(emulated::float_to_bf16(value))
    {
    }
    __nv_bfloat16(double value) : x(emulated::float_to_bf16((float)value))
    {
    }
    __nv_bfloat16(int value) : x(emulated::float_to_bf16((float)value))
    {
    }
    constexpr __nv_bfloat16(__nv_bfloat16_raw raw) : x(raw.x)
    {
    }
    operator __nv_bfloat16_raw() const
    {
        return __nv_bfloat16_raw{x};
    }
    operator float() const
    {
        return emulated::bf16_to_float(x);
    }
    __nv_bfloat16 &operator+=(__nv_bfloat16 other)
    {
        return *this = __nv_bfloat16((float)*this + (float)other);
    }
    __nv_bfloat16 &operator-=(__nv_bfloat16 other)
    {
        return *this = __nv_bfloat16((float)*this - (float)other);
    }
    __nv_bfloat16 &operator*=(__nv_bfloat16 other)
    {
        return *this = __nv_bfloat16((float)*this * (float)other);
    }
    __nv_bfloat16 &operator/=(__nv_bfloat16 other)
    {
        return *this = __nv_bfloat16((float)*this / (float)other);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    constexpr __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high)
    {
    }
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 operator+(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a + (float)b);
}
static inline __nv_bfloat16 operator-(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a - (float)b);
}
static inline __nv_bfloat16 operator*(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a * (float)b);
}
static inline __nv_bfloat16 operator/(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a / (float)b);
}
static inline bool operator==(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return (float)a == (float)b;
}
static inline bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return (float)a != (float)b;
}
static inline bool operator<(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return (float)a < (float)b;
}
static inline bool operator<=(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return (float)a <= (float)b;
}
static inline bool operator>(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return (float)a > (float)b;
}
static inline bool operator>=(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return (float)a >= (float)b;
}
static inline __nv_bfloat16 operator-(__nv_bfloat16 a)
{
    return __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)(((__nv_bfloat16_raw)a).x ^ 0x8000)});
}

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    return __nv_bfloat16(x);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return __nv_bfloat16(x);
}
static inline __nv_bfloat16 __double2bfloat16(double x)
{
    return __nv_bfloat16(x);
}
static inline float __bfloat162float(__nv_bfloat16 x)
{
    return (float)x;
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return ((__nv_bfloat16_raw)x).x;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y));
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return __nv_bfloat162(__nv_bfloat16(v.x), __nv_bfloat16(v.y));
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x)
{
    return __nv_bfloat162(x, x);
}
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162(x, y);
}
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162(x, y);
}
static inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return make_float2((float)v.x, (float)v.y);
}
static inline float __low2float(__nv_bfloat162 v)
{
    return (float)v.x;
}
static inline float __high2float(__nv_bfloat162 v)
{
    return (float)v.y;
}
static inline bool __hisnan(__nv_bfloat16 x)
{
    return std::isnan((float)x);
}
static inline int __hisinf(__nv_bfloat16 x)
{
    return !std::isinf((float)x) ? 0 : (float)x > 0 ? 1 : -1;
}
static inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a + b;
}
static inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a - b;
}
static inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a * b;
}
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    return __nv_bfloat16(fmaf((float)a, (float)b, (float)c));
}

#endif
