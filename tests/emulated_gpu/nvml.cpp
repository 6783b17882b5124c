/* libnvidia-ml.so.1: what the settings and the faults say about each device. It sees the environment of its
 * own process and the file of RUNG_EMULATED_STATE; what another process does on a device it does not see. */
#include <chrono>
#include <cstdio>
#include <cstring>

#include "nvml_library.h"

namespace emulated
{
library &the_library()
{
    static library only; /* gone when this library is unloaded */
    return only;
}

double seconds_now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const fault *find(fault_kind kind, int device)
{
    for (const fault &each : the_library().faults.all)
        if (each.kind == kind && (each.device < 0 || each.device == device))
            return &each;
    return nullptr;
}

bool is_lost(int device)
{
    const fault *found = find(FAULT_LOST, device);
    return found && found->launch < 0;
}
} // namespace emulated

using namespace emulated;

static nvmlReturn_t text_out(char *to, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

static void uuid_of(int device, char *text, size_t size)
{
    snprintf(text, size, "GPU-e0e1e2e3-e4e5-e6e7-e8e9-eaebecedee%02x", (unsigned)device);
}

static void bus_id_of(int device, char *text, size_t size)
{
    snprintf(text, size, "00000000:%02X:00.0", (unsigned)device + 1);
}

extern "C" {
nvmlReturn_t nvmlInit_v2(void)
{
    library &all = the_library();
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.users == 0) {
        all.set = settings_read();
        all.faults.reset(all.set);
        if (find(FAULT_NO_DEVICE, -1))
            return NVML_ERROR_DRIVER_NOT_LOADED;
        all.devices.clear();
        for (int i = 0; i < all.set.devices; i++) {
            all.devices.push_back(std::make_unique<nvmlDevice_st>());
            all.devices.back()->number = i;
        }
    }
    all.users++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
    library &all = the_library();
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.users == 0)
        return NVML_ERROR_UNINITIALIZED;
    all.users--;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "success";
    case NVML_ERROR_UNINITIALIZED:
        return "not initialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "invalid argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "not supported";
    case NVML_ERROR_NOT_FOUND:
        return "not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "insufficient size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "driver not loaded";
    case NVML_ERROR_TIMEOUT:
        return "timeout";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "unknown error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    bool old = find(FAULT_OLD_DRIVER, -1);
    return text_out(version, length, old ? "470.256.02" : "580.65.06");
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return text_out(version, length, "13.580.65.06");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = find(FAULT_OLD_DRIVER, -1) ? 11040 : 13000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    std::lock_guard<std::mutex> guard(the_library().lock);
    if (the_library().users == 0)
        return NVML_ERROR_UNINITIALIZED;
    *count = (unsigned)the_library().devices.size();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    std::lock_guard<std::mutex> guard(the_library().lock);
    if (the_library().users == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= the_library().devices.size())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = the_library().devices[index].get();
    return NVML_SUCCESS;
}

/* The device of which `write` makes that text. */
static nvmlReturn_t find_by(const char *text, void (*write)(int, char *, size_t), nvmlDevice_t *device)
{
    std::lock_guard<std::mutex> guard(the_library().lock);
    for (auto &each : the_library().devices) {
        char own[NVML_DEVICE_UUID_BUFFER_SIZE];
        write(each->number, own, sizeof own);
        if (strcmp(text, own) == 0) {
            *device = each.get();
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return find_by(uuid, uuid_of, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    unsigned domain, bus;
    if (sscanf(bus_id, "%x:%x:", &domain, &bus) != 2 || bus == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device) == NVML_SUCCESS ? NVML_SUCCESS
                                                                          : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    *index = (unsigned)device->number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    return about(device, [&] { return text_out(name, length, "Emulated GPU"); });
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    return about(device, [&] {
        char text[NVML_DEVICE_UUID_BUFFER_SIZE];
        uuid_of(device->number, text, sizeof text);
        return text_out(uuid, length, text);
    });
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return about(device, [&] {
        *info = {};
        info->bus = (unsigned)device->number + 1;
        bus_id_of(device->number, info->busId, sizeof info->busId);
        snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", info->bus & 0xff);
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    return about(device, [&] {
        *major = the_library().set.major;
        *minor = the_library().set.minor;
        return NVML_SUCCESS;
    });
}
}
