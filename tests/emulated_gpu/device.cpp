/* Devices: how many, what they are, and resetting one. */
#include "world.h"

#include <cstdio>
#include <cstring>

namespace emulated
{
constexpr int MULTIPROCESSORS = 132, THREADS_PER_MULTIPROCESSOR = 2048;
constexpr int DRIVER_VERSION = 13000;

static bool is_device(int device)
{
    return device >= 0 && device < (int)the_world().devices.size();
}

/* Calls that say what there is work on a broken device too, though not without any. */
template <class Body> static cudaError_t ask(Body body)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    cudaError_t error = call_begin(CALL_ANYWHERE);
    bool absent = error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
    return remember(absent ? error : body());
}

static int attribute_of(cudaDeviceAttr attribute, int device)
{
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
        return 1024;
    case cudaDevAttrMaxBlockDimZ:
        return 64;
    case cudaDevAttrMaxGridDimX:
        return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return 227 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return 228 << 10;
    case cudaDevAttrWarpSize:
        return 32;
    case cudaDevAttrMaxRegistersPerBlock:
        return 65536;
    case cudaDevAttrClockRate:
        return 1980000;
    case cudaDevAttrMemoryClockRate:
        return 3201000;
    case cudaDevAttrGlobalMemoryBusWidth:
        return 6144;
    case cudaDevAttrL2CacheSize:
        return 50 << 20;
    case cudaDevAttrMultiProcessorCount:
        return MULTIPROCESSORS;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return THREADS_PER_MULTIPROCESSOR;
    case cudaDevAttrAsyncEngineCount:
        return 3;
    case cudaDevAttrPciBusId:
        return device + 1;
    case cudaDevAttrComputeCapabilityMajor:
        return the_world().set.major;
    case cudaDevAttrComputeCapabilityMinor:
        return the_world().set.minor;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
        return 1;
    default:
        return 0;
    }
}

static void properties_of(int device, cudaDeviceProp *of)
{
    *of = {};
    snprintf(of->name, sizeof of->name, "Emulated GPU");
    for (int i = 0; i < 16; i++)
        of->uuid.bytes[i] = (char)(i == 15 ? device : 0xe0 + i);
    of->totalGlobalMem = (size_t)the_world().set.memory;
    auto at = [&](cudaDeviceAttr attribute) { return attribute_of(attribute, device); };
    of->sharedMemPerBlock = (size_t)at(cudaDevAttrMaxSharedMemoryPerBlock);
    of->sharedMemPerBlockOptin = (size_t)at(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    of->sharedMemPerMultiprocessor = (size_t)at(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    of->regsPerBlock = at(cudaDevAttrMaxRegistersPerBlock);
    of->warpSize = at(cudaDevAttrWarpSize);
    of->maxThreadsPerBlock = at(cudaDevAttrMaxThreadsPerBlock);
    for (int i = 0; i < 3; i++) {
        of->maxThreadsDim[i] = at((cudaDeviceAttr)(cudaDevAttrMaxBlockDimX + i));
        of->maxGridSize[i] = at((cudaDeviceAttr)(cudaDevAttrMaxGridDimX + i));
    }
    of->totalConstMem = 64 << 10;
    of->major = the_world().set.major;
    of->minor = the_world().set.minor;
    of->multiProcessorCount = at(cudaDevAttrMultiProcessorCount);
    of->maxThreadsPerMultiProcessor = at(cudaDevAttrMaxThreadsPerMultiProcessor);
    of->pciBusID = at(cudaDevAttrPciBusId);
    of->asyncEngineCount = at(cudaDevAttrAsyncEngineCount);
    of->memoryBusWidth = at(cudaDevAttrGlobalMemoryBusWidth);
    of->l2CacheSize = at(cudaDevAttrL2CacheSize);
    of->canMapHostMemory = of->concurrentKernels = of->ECCEnabled = of->unifiedAddressing = 1;
    of->streamPrioritiesSupported = of->hostRegisterSupported = of->memoryPoolsSupported = 1;
}

static cudaError_t device_reset(int device)
{
    device_state &state = *the_world().devices[(size_t)device];
    if (state.lost)
        return cudaErrorDevicesUnavailable;
    if (state.sticky == cudaSuccess)
        run_device(device);
    else {
        state.sticky = cudaErrorContextIsDestroyed; /* so that what is queued ends without running */
        run_device(device);
    }
    memory_release_all(device);
    state.streams.clear();
    state.legacy.last = state.per_thread.last = nullptr;
    state.peers.clear();
    state.default_pool->reserved = state.default_pool->used = state.default_pool->threshold = 0;
    state.pool = state.default_pool;
    state.sticky = cudaSuccess;
    return cudaSuccess;
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    return ask([&] {
        *count = (int)the_world().devices.size();
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device)
{
    return ask([&] {
        if (!is_device(device))
            return cudaErrorInvalidDevice;
        current_device() = device;
        return the_world().devices[(size_t)device]->lost ? cudaErrorDevicesUnavailable : cudaSuccess;
    });
}

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int)
{
    return ask([&] { return is_device(device) ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaGetDevice(int *device)
{
    return ask([&] {
        *device = current_device();
        return cudaSuccess;
    });
}

static unsigned device_flags;

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    return call(CALL_ANYWHERE, [&] {
        device_flags = flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    return call(CALL_ANYWHERE, [&] {
        *flags = device_flags | cudaDeviceMapHost;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    return ask([&] {
        if (!is_device(device))
            return cudaErrorInvalidDevice;
        properties_of(device, properties);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    return ask([&] {
        if (!is_device(device))
            return cudaErrorInvalidDevice;
        *value = attribute_of(attribute, device);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int length, int device)
{
    return ask([&] {
        if (!is_device(device))
            return cudaErrorInvalidDevice;
        int written = snprintf(bus_id, (size_t)length, "0000:%02x:00.0", device + 1);
        return written < length ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    return ask([&] {
        unsigned domain, bus;
        if (sscanf(bus_id, "%x:%x:", &domain, &bus) != 2 || !is_device((int)bus - 1))
            return cudaErrorInvalidDevice;
        *device = (int)bus - 1;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return call(CALL_ANYWHERE, [&] {
        *least = 0;
        *greatest = -5;
        return cudaSuccess;
    });
}

static size_t limits[3] = {1024, 1 << 20, 8 << 20};

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    return call(CALL_ANYWHERE, [&] {
        if ((unsigned)limit > cudaLimitMallocHeapSize)
            return cudaErrorUnsupportedLimit;
        limits[limit] = value;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    return call(CALL_ANYWHERE, [&] {
        if ((unsigned)limit > cudaLimitMallocHeapSize)
            return cudaErrorUnsupportedLimit;
        *value = limits[limit];
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceReset(void)
{
    return ask([&] { return device_reset(current_device()); });
}

cudaError_t cudaDeviceSynchronize(void)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        for (const auto &each : the_world().captures)
            if (each->origin->device == current_device()) {
                captures_invalidate();
                return cudaErrorStreamCaptureUnsupported;
            }
        run_device(current_device());
        return device_error_now(current_device());
    });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return ask([&] {
        if (!is_device(device) || !is_device(peer))
            return cudaErrorInvalidDevice;
        *can = device != peer;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    return call(CALL_ANYWHERE, [&] {
        if (!is_device(peer) || peer == current_device())
            return cudaErrorInvalidDevice;
        if (flags != 0)
            return cudaErrorInvalidValue;
        bool fresh = the_world().devices[(size_t)current_device()]->peers.insert(peer).second;
        return fresh ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return call(CALL_ANYWHERE, [&] {
        bool was = the_world().devices[(size_t)current_device()]->peers.erase(peer) != 0;
        return was ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer)
{
    return ask([&] {
        if (!is_device(device) || !is_device(peer) || device == peer)
            return cudaErrorInvalidDevice;
        *value = attribute == cudaDevP2PAttrAccessSupported;
        return cudaSuccess;
    });
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
}
