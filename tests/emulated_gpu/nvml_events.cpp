/* The emulated NVML: events. */
#include <ctime>

#include "nvml_library.h"

using namespace emulated;

struct nvmlEventSet_st {
    std::vector<std::pair<nvmlDevice_t, unsigned long long>> watched;
    std::vector<std::pair<int, long long>> told; /* device and XID */
};

extern "C" {
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    *set = new nvmlEventSet_st();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    delete set;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    return about(device, [&] {
        *types = nvmlEventTypeXidCriticalError;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    return about(device, [&] {
        set->watched.push_back({device, types});
        return NVML_SUCCESS;
    });
}

/* An XID that this set has not been told of. Those of a lost device are told too. */
static bool next_event(nvmlEventSet_t set, nvmlEventData_t *event)
{
    library &all = the_library();
    std::lock_guard<std::mutex> guard(all.lock);
    all.faults.refresh();
    for (const auto &[device, types] : set->watched)
        for (const fault &each : all.faults.all) {
            if (each.kind != FAULT_XID || !(types & nvmlEventTypeXidCriticalError) ||
                (each.device >= 0 && each.device != device->number))
                continue;
            std::pair<int, long long> found = {device->number, each.value};
            bool told = false;
            for (const auto &other : set->told)
                told = told || other == found;
            if (told)
                continue;
            set->told.push_back(found);
            *event = {device, nvmlEventTypeXidCriticalError, (unsigned long long)each.value, 0xffffffff,
                      0xffffffff};
            return true;
        }
    return false;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event, unsigned int timeout_ms)
{
    /* The file is looked at this often. */
    constexpr long STEP_NANOSECONDS = 10000000;
    double end = seconds_now() + timeout_ms / 1000.0;
    while (!next_event(set, event)) {
        if (seconds_now() >= end)
            return NVML_ERROR_TIMEOUT;
        struct timespec step = {0, STEP_NANOSECONDS};
        nanosleep(&step, nullptr);
    }
    return NVML_SUCCESS;
}
}
