/* Pinned host memory, and what a pointer points to. */
#include "world.h"

#include <cstdlib>

#include "block.h"

namespace emulated
{
bool memory_pinned(const void *pointer, size_t bytes)
{
    auto &pinned = the_world().pinned;
    auto behind = pinned.upper_bound((uintptr_t)pointer);
    if (behind == pinned.begin())
        return false;
    const auto &[begin, size] = *std::prev(behind);
    return (uintptr_t)pointer + bytes <= begin + size.first;
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        *pointer = nullptr;
        if (allocation_fails(size, -1))
            return cudaErrorMemoryAllocation;
        void *memory = aligned_alloc(page_bytes(), (size + page_bytes() - 1) / page_bytes() * page_bytes());
        if (!memory)
            return cudaErrorMemoryAllocation;
        pattern_fill(memory, size, FRESH_PATTERN);
        the_world().pinned[(uintptr_t)memory] = {size, true};
        *pointer = memory;
        return cudaSuccess;
    });
}

cudaError_t cudaMallocHost(void **pointer, size_t size)
{
    return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

static cudaError_t host_forget(void *pointer, bool ours)
{
    auto found = the_world().pinned.find((uintptr_t)pointer);
    if (found == the_world().pinned.end() || found->second.second != ours)
        return ours ? cudaErrorInvalidValue : cudaErrorHostMemoryNotRegistered;
    /* Queued copies may still use it. */
    for (size_t i = 0; i < the_world().devices.size(); i++)
        run_device((int)i);
    the_world().pinned.erase(found);
    if (ours)
        free(pointer);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer)
{
    return call(CALL_NOT_IN_CAPTURE, [&] { return pointer ? host_forget(pointer, true) : cudaSuccess; });
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        if (memory_pinned(pointer, 1))
            return cudaErrorHostMemoryAlreadyRegistered;
        the_world().pinned[(uintptr_t)pointer] = {size, false};
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void *pointer)
{
    return call(CALL_NOT_IN_CAPTURE, [&] { return host_forget(pointer, false); });
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned int)
{
    return call(CALL_ANYWHERE, [&] {
        if (!memory_pinned(host_pointer, 1))
            return cudaErrorInvalidValue;
        *device_pointer = host_pointer;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    return call(CALL_ANYWHERE, [&] {
        const allocation *found = allocation_find(pointer, 1);
        *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, (void *)pointer};
        if (found)
            *attributes = {cudaMemoryTypeDevice, found->device, (void *)pointer, nullptr};
        else if (memory_pinned(pointer, 1))
            *attributes = {cudaMemoryTypeHost, current_device(), (void *)pointer, (void *)pointer};
        return cudaSuccess;
    });
}
}
