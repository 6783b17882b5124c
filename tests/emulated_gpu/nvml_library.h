/* What the parts of the emulated NVML share. */
#ifndef EMULATED_GPU_NVML_LIBRARY_H
#define EMULATED_GPU_NVML_LIBRARY_H

#include <memory>
#include <mutex>
#include <vector>

/* All that the library shows. */
#pragma GCC visibility push(default)
#include "nvml.h"
#pragma GCC visibility pop
#include "settings.h"

struct nvmlDevice_st {
    int number;
    double throttled_since = -1; /* seconds; -1: not now */
    double throttled = 0;        /* until the last change */
};

namespace emulated
{
struct library {
    std::mutex lock;
    int users = 0;
    settings set;
    fault_list faults;
    std::vector<std::unique_ptr<nvmlDevice_st>> devices;
};
library &the_library();

double seconds_now();
/* The first fault of that kind planted on the device, or NULL. */
const fault *find(fault_kind kind, int device);
bool is_lost(int device);

/* Every call about a device: under the lock, with the faults as they are now. */
template <class Body> nvmlReturn_t about(nvmlDevice_t device, Body body)
{
    library &all = the_library();
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.users == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (!device)
        return NVML_ERROR_INVALID_ARGUMENT;
    all.faults.refresh();
    if (is_lost(device->number))
        return NVML_ERROR_GPU_IS_LOST;
    return body();
}
} // namespace emulated

#endif
