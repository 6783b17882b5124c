/* The typed forms of calls that take untyped pointers. */
#ifndef EMULATED_GPU_RUNTIME_TEMPLATES_H
#define EMULATED_GPU_RUNTIME_TEMPLATES_H

#include "cuda_runtime_api.h"

template <class T> static inline cudaError_t cudaMalloc(T **pointer, size_t size)
{
    return cudaMalloc((void **)(void *)pointer, size);
}
template <class T> static inline cudaError_t cudaMallocHost(T **pointer, size_t size, unsigned flags = 0)
{
    return cudaHostAlloc((void **)(void *)pointer, size, flags);
}
template <class T> static inline cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned flags)
{
    return cudaHostAlloc((void **)(void *)pointer, size, flags);
}
template <class T> static inline cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t stream)
{
    return cudaMallocAsync((void **)(void *)pointer, size, stream);
}
template <class T>
static inline cudaError_t cudaMallocFromPoolAsync(T **pointer, size_t size, cudaMemPool_t pool,
                                                  cudaStream_t stream)
{
    return cudaMallocFromPoolAsync((void **)(void *)pointer, size, pool, stream);
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *source, size_t count,
                                             size_t offset = 0,
                                             enum cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return cudaMemcpyToSymbol((const void *)&symbol, source, count, offset, kind);
}
template <class R, class... P>
static inline cudaError_t cudaFuncSetAttribute(R (*kernel)(P...), enum cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}
template <class R, class... P>
static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, R (*kernel)(P...))
{
    return cudaFuncGetAttributes(attributes, (const void *)kernel);
}
template <class R, class... P>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, R (*kernel)(P...),
                                                                        int block_size, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, block_size,
                                                         shared_bytes);
}

#endif
