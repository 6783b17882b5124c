#include "world.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "faults.h"

namespace emulated
{
static void world_fill(world &fresh)
{
    fresh.set = settings_read();
    fresh.faults.reset(fresh.set);
    fresh.dice.state = fresh.set.seed;
    fresh.devices.clear();
    for (int i = 0; i < fresh.set.devices; i++) {
        auto device = std::make_unique<device_state>();
        device->legacy = {i, fresh.streams_made++, true, 0, 0, nullptr, nullptr, {}};
        device->per_thread = {i, fresh.streams_made++, true, 0, 0, nullptr, nullptr, {}};
        device->default_pool = device->pool = new CUmemPoolHandle_st{i};
        fresh.devices.push_back(std::move(device));
    }
}

/* Never destroyed: other objects' destructors may still free device memory. */
world &the_world()
{
    static world *only = [] {
        world *made = new world();
        world_fill(*made);
        return made;
    }();
    return *only;
}

int &current_device()
{
    static thread_local int device;
    return device;
}

uint64_t thread_number()
{
    static std::atomic<uint64_t> count;
    static thread_local uint64_t number = ++count;
    return number;
}

void report(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    the_world().report = text;
    fprintf(stderr, "emulated GPU (seed %llu): %s\n", (unsigned long long)the_world().set.seed, text);
}

static cudaError_t &last_error()
{
    static thread_local cudaError_t error;
    return error;
}

cudaError_t remember(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error() = error;
    return error;
}

cudaError_t device_error_now(int device)
{
    const device_state &state = *the_world().devices[(size_t)device];
    return state.lost ? cudaErrorDevicesUnavailable : state.sticky;
}

bool device_broken(int device)
{
    return device_error_now(device) != cudaSuccess;
}

void device_fail(int device, cudaError_t error)
{
    device_state &state = *the_world().devices[(size_t)device];
    if (error == cudaErrorDevicesUnavailable)
        state.lost = true;
    if (state.sticky == cudaSuccess)
        state.sticky = error;
}

/* Conditions that hold from the beginning, or since the state file changed. */
static cudaError_t standing_faults()
{
    world &all = the_world();
    all.faults.refresh();
    for (const fault &each : all.faults.all) {
        if (each.kind == FAULT_NO_DEVICE)
            return cudaErrorNoDevice;
        if (each.kind == FAULT_OLD_DRIVER)
            return cudaErrorInsufficientDriver;
        if (each.kind == FAULT_LOST && each.launch < 0)
            for (int i = 0; i < (int)all.devices.size(); i++)
                if (each.device < 0 || each.device == i)
                    all.devices[(size_t)i]->lost = true;
    }
    return all.devices.empty() ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t call_begin(call_kind kind)
{
    world &all = the_world();
    if (all.executing)
        return cudaErrorNotPermitted; /* from a host function in a stream */
    cudaError_t error = standing_faults();
    if (error == cudaSuccess)
        error = device_error_now(current_device());
    if (error == cudaSuccess && kind == CALL_NOT_IN_CAPTURE && capture_forbids()) {
        captures_invalidate();
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error;
}

static void queues_drop()
{
    world &all = the_world();
    all.ready.clear();
    all.pending = 0;
    all.captures.clear();
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last_error() = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    if (!the_world().devices.empty() && device_broken(current_device()))
        return device_error_now(current_device());
    return last_error();
}

void emulated_reset(void)
{
    world &all = the_world();
    std::lock_guard<std::recursive_mutex> guard(all.lock);
    queues_drop();
    memory_release_all(-1);
    for (auto &device : all.devices)
        delete device->default_pool;
    all.allocation_calls = 0;
    all.report.clear();
    world_fill(all);
    current_device() = 0;
    last_error() = cudaSuccess;
}

void emulated_set_seed(unsigned long long seed)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    the_world().set.seed = the_world().dice.state = seed;
}

int emulated_set_faults(const char *list)
{
    world &all = the_world();
    std::lock_guard<std::recursive_mutex> guard(all.lock);
    if (!all.faults.replace(list))
        return -1;
    all.allocation_calls = 0;
    for (auto &device : all.devices)
        device->launches = 0;
    return 0;
}

const char *emulated_last_report(void)
{
    return the_world().report.c_str();
}

size_t emulated_memory_used(int device)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    return the_world().devices[(size_t)device]->used;
}

size_t emulated_allocation_count(int device)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    return the_world().devices[(size_t)device]->allocations;
}

unsigned long long emulated_launch_count(int device)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    return the_world().devices[(size_t)device]->launches;
}
}
