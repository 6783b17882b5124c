/* The emulated NVML: how a device is. */
#include "nvml_library.h"

using namespace emulated;

constexpr unsigned IDLE_CELSIUS = 35, SLOWDOWN_CELSIUS = 90, SHUTDOWN_CELSIUS = 95, MEMORY_CELSIUS = 95,
                   HIGHEST_CELSIUS = 87;
constexpr unsigned IDLE_WATTS = 80, LIMIT_WATTS = 700;
constexpr unsigned CLOCK = 1980, THROTTLED_CLOCK = 1200, MEMORY_CLOCK = 3201;
/* Without `reasons=`: hardware slowdown for heat. */
constexpr unsigned long long THROTTLE_REASONS =
    nvmlClocksThrottleReasonHwSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown;
constexpr unsigned long long ALL_REASONS = 0x1ff;

static long long value_of(fault_kind kind, int device, long long otherwise)
{
    const fault *found = find(kind, device);
    return found ? found->value : otherwise;
}

static unsigned long long reasons_of(int device)
{
    const fault *found = find(FAULT_THROTTLE, device);
    if (!found)
        return 0;
    return found->reasons < 0 ? THROTTLE_REASONS : (unsigned long long)found->reasons;
}

/* Seconds throttled since the library was loaded, as far as it was asked. */
static double throttled_seconds(nvmlDevice_t device)
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

extern "C" {
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    return about(device, [&] {
        memory->total = the_library().set.memory;
        memory->used = (unsigned long long)value_of(FAULT_MEMORY_USED, device->number, 0);
        memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    return about(device, [&] {
        utilization->gpu = (unsigned)value_of(FAULT_UTILIZATION, device->number, 0);
        utilization->memory = utilization->gpu / 2;
        return NVML_SUCCESS;
    });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t, unsigned int *celsius)
{
    return about(device, [&] {
        *celsius = (unsigned)value_of(FAULT_TEMPERATURE, device->number, IDLE_CELSIUS);
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
        *milliwatts = 1000 * (unsigned)value_of(FAULT_POWER, device->number, IDLE_WATTS);
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
        const fault *found = find(FAULT_ECC, device->number);
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
        bool ecc = find(FAULT_ECC, device->number) != nullptr;
        *correctable = *failed = 0;
        *uncorrectable = *pending = ecc; /* the row is replaced at the next reset */
        return NVML_SUCCESS;
    });
}
}
