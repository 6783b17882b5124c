/* Launching a kernel: what the device would refuse, and what is found when it has run. */
#include "world.h"

#include "block.h"

namespace emulated
{
constexpr unsigned MOST_THREADS = 1024, MOST_BLOCK_Z = 64, MOST_GRID_YZ = 65535, MOST_GRID_X = 0x7fffffff;
constexpr size_t SHARED_DEFAULT = 48 << 10, SHARED_OPT_IN = 227 << 10;

/* Dynamic shared memory that kernels have asked for (cudaFuncSetAttribute). */
static std::map<const void *, size_t> &opted_in()
{
    static auto *only = new std::map<const void *, size_t>();
    return *only;
}

static size_t shared_limit(const void *kernel)
{
    auto found = opted_in().find(kernel);
    return found == opted_in().end() ? SHARED_DEFAULT : found->second;
}

static cudaError_t shape_check(const launch_shape &shape)
{
    dim3 grid = shape.grid, block = shape.block;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > MOST_THREADS || block.z > MOST_BLOCK_Z ||
        grid.x > MOST_GRID_X || grid.y > MOST_GRID_YZ || grid.z > MOST_GRID_YZ)
        return cudaErrorInvalidConfiguration;
    return shape.shared_bytes > shared_limit(shape.function) ? cudaErrorInvalidValue : cudaSuccess;
}

static const char *end_text(kernel_end end)
{
    switch (end) {
    case KERNEL_DIVERGED:
        return "divergent barrier";
    case KERNEL_FAULT:
        return "fault";
    case KERNEL_TRAP:
        return "trap";
    case KERNEL_SHARED:
        return "wrote behind its dynamic shared memory";
    case KERNEL_MASK:
        return "warp operation without the caller in its mask";
    default:
        return "done";
    }
}

cudaError_t launch_fault(int device, const char *name)
{
    world &all = the_world();
    int64_t launch = (int64_t)++all.devices[(size_t)device]->launches;
    all.faults.refresh();
    for (fault &each : all.faults.all) {
        if (each.device >= 0 && each.device != device)
            continue;
        if (each.kind == FAULT_ASYNCHRONOUS) {
            bool named = each.kernel.empty() || std::string(name).find(each.kernel) != std::string::npos;
            if (named && ++each.seen == (each.count < 0 ? 1 : each.count))
                return cudaErrorLaunchFailure;
        }
        if (each.launch < 0 || each.launch != launch)
            continue;
        if (each.kind == FAULT_STICKY)
            return cudaErrorIllegalAddress;
        if (each.kind == FAULT_LOST)
            return cudaErrorDevicesUnavailable;
        if (each.kind == FAULT_ECC)
            return cudaErrorECCUncorrectable;
    }
    return cudaSuccess;
}

static progress kernel_work(const launch_shape &shape, const std::function<void()> &thread, int device)
{
    cudaError_t planted = launch_fault(device, shape.kernel);
    if (planted != cudaSuccess) {
        device_fail(device, planted);
        return WORK_DONE;
    }
    uint64_t seed = the_world().set.seed ? the_world().dice.next() | 1 : 0;
    kernel_result result = kernel_run(shape, thread, seed);
    if (result.end != KERNEL_DONE) {
        std::string touched =
            result.end == KERNEL_FAULT ? ", touching " + memory_describe(result.address) : "";
        report("kernel %s: %s: %s%s", shape.kernel, end_text(result.end), result.where.c_str(),
               touched.c_str());
        device_fail(device, result.end == KERNEL_FAULT || result.end == KERNEL_SHARED
                                ? cudaErrorIllegalAddress
                                : cudaErrorLaunchFailure);
    }
    if (guards_check(device, shape.kernel))
        device_fail(device, cudaErrorIllegalAddress);
    return WORK_DONE;
}

void launch_call(const launch_shape &shape, cudaStream_t handle, std::function<void()> thread)
{
    call(CALL_ANYWHERE, [&] {
        stream_state *stream;
        cudaError_t error = shape_check(shape);
        if (error == cudaSuccess)
            error = stream_find(handle, &stream);
        if (error != cudaSuccess)
            return error;
        if (stream->device != current_device())
            return cudaErrorInvalidResourceHandle;
        int device = stream->device;
        return stream_add(stream, cudaGraphNodeTypeKernel, [shape, thread = std::move(thread), device] {
            return kernel_work(shape, thread, device);
        });
    });
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    return call(CALL_ANYWHERE, [&] {
        if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
            return cudaSuccess;
        if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
            (size_t)value > SHARED_OPT_IN)
            return cudaErrorInvalidValue;
        opted_in()[kernel] = (size_t)value;
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    return call(CALL_ANYWHERE, [&] {
        *attributes = {};
        attributes->maxThreadsPerBlock = MOST_THREADS;
        attributes->numRegs = 32;
        attributes->ptxVersion = attributes->binaryVersion =
            the_world().set.major * 10 + the_world().set.minor;
        attributes->maxDynamicSharedSizeBytes = (int)shared_limit(kernel);
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int block_size,
                                                          size_t shared_bytes)
{
    return call(CALL_ANYWHERE, [&] {
        if (block_size <= 0 || (unsigned)block_size > MOST_THREADS)
            return cudaErrorInvalidValue;
        size_t by_threads = 2048 / (size_t)block_size;
        size_t by_shared = shared_bytes ? SHARED_OPT_IN / shared_bytes : by_threads;
        *blocks = (int)(by_threads < by_shared ? by_threads : by_shared);
        return cudaSuccess;
    });
}
}
