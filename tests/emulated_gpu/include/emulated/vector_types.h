/* CUDA's small vectors. Alignment is that of the device, where an access of 16 bytes must be aligned to 16:
 * the undefined-behaviour sanitizer then finds what would fault there. */
#ifndef EMULATED_GPU_VECTOR_TYPES_H
#define EMULATED_GPU_VECTOR_TYPES_H

#define EMULATED_VECTOR(element, name, size)                                                                 \
    struct alignas(2 * size) name##2                                                                         \
    {                                                                                                        \
        element x, y;                                                                                        \
    };                                                                                                       \
    struct name##3                                                                                           \
    {                                                                                                        \
        element x, y, z;                                                                                     \
    };                                                                                                       \
    struct alignas(4 * size < 16 ? 4 * size : 16) name##4                                                    \
    {                                                                                                        \
        element x, y, z, w;                                                                                  \
    };                                                                                                       \
    static inline name##2 make_##name##2(element x, element y)                                               \
    {                                                                                                        \
        return name##2 {x, y};                                                                               \
    }                                                                                                        \
    static inline name##3 make_##name##3(element x, element y, element z)                                    \
    {                                                                                                        \
        return name##3 {x, y, z};                                                                            \
    }                                                                                                        \
    static inline name##4 make_##name##4(element x, element y, element z, element w)                         \
    {                                                                                                        \
        return name##4 {x, y, z, w};                                                                         \
    }

EMULATED_VECTOR(signed char, char, 1)
EMULATED_VECTOR(unsigned char, uchar, 1)
EMULATED_VECTOR(short, short, 2)
EMULATED_VECTOR(unsigned short, ushort, 2)
EMULATED_VECTOR(int, int, 4)
EMULATED_VECTOR(unsigned int, uint, 4)
EMULATED_VECTOR(long long, longlong, 8)
EMULATED_VECTOR(unsigned long long, ulonglong, 8)
EMULATED_VECTOR(float, float, 4)
EMULATED_VECTOR(double, double, 8)
#undef EMULATED_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
    constexpr operator uint3() const
    {
        return uint3{x, y, z};
    }
};

#endif
