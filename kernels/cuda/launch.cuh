/* The one way kernels are launched and get dynamic shared memory: on the device as usual, and in a build with
 * RUNG_EMULATED_GPU as plain C++ on the host (tests/emulated_gpu). */
#ifndef RUNG_KERNELS_CUDA_LAUNCH_CUH
#define RUNG_KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

/* CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...): at least one argument; a kernel with
 * a comma in its template arguments goes in parentheses. A fault is told by cudaGetLastError.
 *
 * CUDA_SHARED(type, name): declares `type *name`, the block's dynamic shared memory, aligned to 16 bytes. */
#ifdef RUNG_EMULATED_GPU
#define CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                          \
    ::emulated::launch(#kernel, grid, block, shared_bytes, stream, kernel, __VA_ARGS__)
#define CUDA_SHARED(type, name) type *name = static_cast<type *>(::emulated::block_shared())
#else
#define CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                          \
    kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define CUDA_SHARED(type, name)                                                                              \
    extern __shared__ __align__(16) unsigned char rung_dynamic_shared[];                                     \
    type *name = reinterpret_cast<type *>(rung_dynamic_shared)
#endif

#endif
