/* libnvidia-ml.so.1: what the settings and the faults say about each device. It sees the environment of its
 * own process and the file of RUNG_EMULATED_STATE; what another process does on a device it does not see. */
#include "nvml.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>
#include <ctime>

#include "settings.h"

struct nvmlDevice_st {
    int number;
    double throttled_since = -1; /* seconds; -1: not now */
    double throttled = 0;        /* until the last change */
};

namespace
{
using emulated::fault;
using emulated::fault_kind;

constexpr unsigned IDLE_CELSIUS = 35, SLOWDOWN_CELSIUS = 90, SHUTDOWN_CELSIUS = 95, MEMORY_CELSIUS = 95,
                   HIGHEST_CELSIUS = 87;
constexpr unsigned IDLE_WATTS = 80, LIMIT_WATTS = 700;
constexpr unsigned CLOCK = 1980, THROTTLED_CLOCK = 1200, MEMORY_CLOCK = 3201;
/* Without `reasons=`: hardware slowdown for heat. */
constexpr unsigned long long THROTTLE_REASONS =
    nvmlClocksThrottleReasonHwSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown;
constexpr unsigned long long ALL_REASONS = 0x1ff;

struct library {
    std::mutex lock;
    int users = 0;
    emulated::settings set;
    emulated::fault_list faults;
    std::vector<std::unique_ptr<nvmlDevice_st>> devices;
};

library &the_library()
{
    static library only; /* gone when this library is unloaded */
    return only;
}

double seconds_now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* The first fault of that kind planted on the device, or NULL. */
const fault *find(fault_kind kind, int device)
{
    for (const fault &each : the_library().faults.all)
        if (each.kind == kind && (each.device < 0 || each.device == device))
            return &each;
    return nullptr;
}

long long value_of(fault_kind kind, int device, long long otherwise)
{
    const fault *found = find(kind, device);
    return found ? found->value : otherwise;
}

bool is_lost(int device)
{
    const fault *found = find(emulated::FAULT_LOST, device);
    return found && found->launch < 0;
}

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

nvmlReturn_t text_out(char *to, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

unsigned long long reasons_of(int device)
{
    const fault *found = find(emulated::FAULT_THROTTLE, device);
    if (!found)
        return 0;
    return found->reasons < 0 ? THROTTLE_REASONS : (unsigned long long)found->reasons;
}

/* Seconds throttled since the library was loaded, as far as it was asked. */
double throttled_seconds(nvmlDevice_t device)
{
    bool now = reasons_of(device->number) & ~(unsigned long long)nvmlClocksThrottleReasonGpuIdle;
    if (now && device->throttled_since < 0)
        device->throttled_since = seconds_now();
    if (!now && device->throttled_since >= 0) {
        device->throttled += seconds_now() - device->throttled_since;
        device->throttled_since = -1;
    }
    return device->throttled + (now ? seconds_now() - device->throttled_since : 0);
}

void uuid_of(int device, char *text, size_t size)
{
    snprintf(text, size, "GPU-e0e1e2e3-e4e5-e6e7-e8e9-eaebecedee%02x", (unsigned)device);
}

void bus_id_of(int device, char *text, size_t size)
{
    snprintf(text, size, "00000000:%02X:00.0", (unsigned)device + 1);
}
} // namespace

struct nvmlEventSet_st {
    std::vector<std::pair<nvmlDevice_t, unsigned long long>> watched;
    std::vector<std::pair<int, long long>> told; /* device and XID */
};

extern "C" {
nvmlReturn_t nvmlInit_v2(void)
{
    library &all = the_library();
    std::lock_guard<std::mutex> guard(all.lock);
    if (all.users == 0) {
        all.set = emulated::settings_read();
        all.faults.reset(all.set);
        if (find(emulated::FAULT_NO_DEVICE, -1))
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
    bool old = find(emulated::FAULT_OLD_DRIVER, -1);
    return text_out(version, length, old ? "470.256.02" : "580.65.06");
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return text_out(version, length, "13.580.65.06");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = find(emulated::FAULT_OLD_DRIVER, -1) ? 11040 : 13000;
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

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    return about(device, [&] {
        memory->total = the_library().set.memory;
        memory->used = (unsigned long long)value_of(emulated::FAULT_MEMORY_USED, device->number, 0);
        memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    return about(device, [&] {
        utilization->gpu = (unsigned)value_of(emulated::FAULT_UTILIZATION, device->number, 0);
        utilization->memory = utilization->gpu / 2;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned int *celsius)
{
    return about(device, [&] {
        *celsius = (unsigned)value_of(emulated::FAULT_TEMPERATURE, device->number, IDLE_CELSIUS);
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                               unsigned int *celsius)
{
    return about(device, [&] {
        const unsigned of[] = {SHUTDOWN_CELSIUS, SLOWDOWN_CELSIUS, MEMORY_CELSIUS, HIGHEST_CELSIUS};
        if ((unsigned)threshold > NVML_TEMPERATURE_THRESHOLD_GPU_MAX)
            return NVML_ERROR_NOT_SUPPORTED;
        *celsius = of[threshold];
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    return about(device, [&] {
        *milliwatts = 1000 * (unsigned)value_of(emulated::FAULT_POWER, device->number, IDLE_WATTS);
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
    return about(device, [&] {
        *milliwatts = 1000 * LIMIT_WATTS;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
    return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz)
{
    return about(device, [&] {
        unsigned processor = reasons_of(device->number) ? THROTTLED_CLOCK : CLOCK;
        *megahertz = type == NVML_CLOCK_MEM ? MEMORY_CLOCK : processor;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz)
{
    return about(device, [&] {
        *megahertz = type == NVML_CLOCK_MEM ? MEMORY_CLOCK : CLOCK;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    return about(device, [&] {
        *state = NVML_PSTATE_0;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return about(device, [&] {
        *reasons = reasons_of(device->number);
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return about(device, [&] {
        *reasons = ALL_REASONS;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return nvmlDeviceGetSupportedClocksThrottleReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy,
                                          nvmlViolationTime_t *time)
{
    return about(device, [&] {
        bool power = reasons_of(device->number) & nvmlClocksThrottleReasonSwPowerCap;
        bool asked = policy == (power ? NVML_PERF_POLICY_POWER : NVML_PERF_POLICY_THERMAL);
        double seconds = throttled_seconds(device);
        time->referenceTime = (unsigned long long)(seconds_now() * 1e6);
        time->violationTime = asked ? (unsigned long long)(seconds * 1e9) : 0;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    return about(device, [&] {
        *current = *pending = NVML_FEATURE_ENABLED;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t, unsigned long long *count)
{
    return about(device, [&] {
        const fault *found = find(emulated::FAULT_ECC, device->number);
        bool counted = found && type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
        *count = !counted ? 0 : found->count < 0 ? 1 : (unsigned long long)found->count;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                       unsigned int *uncorrectable, unsigned int *pending,
                                       unsigned int *failed)
{
    return about(device, [&] {
        bool ecc = find(emulated::FAULT_ECC, device->number) != nullptr;
        *correctable = *failed = 0;
        *uncorrectable = *pending = ecc; /* the row is replaced at the next reset */
        return NVML_SUCCESS;
    });
}

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
            if (each.kind != emulated::FAULT_XID || !(types & nvmlEventTypeXidCriticalError) ||
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
