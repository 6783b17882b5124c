/* The emulated NVML, loaded as monitoring loads it, and the file that changes while it is loaded. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <nvml.h>

static void *library;
static char state_path[] = "/tmp/emulated_nvml_XXXXXX";

#define CALL(name) ((__typeof__(name) *)find(#name))

static void *find(const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fail_msg("%s is missing", name);
    return found;
}

static void write_state(const char *text)
{
    FILE *file = fopen(state_path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static nvmlDevice_t device_number(unsigned number)
{
    nvmlDevice_t device = NULL;
    assert_int_equal(CALL(nvmlDeviceGetHandleByIndex_v2)(number, &device), NVML_SUCCESS);
    return device;
}

static int load(void **state)
{
    (void)state;
    int file = mkstemp(state_path);
    if (file < 0)
        return -1;
    close(file);
    setenv("RUNG_EMULATED_STATE", state_path, 1);
    setenv("RUNG_EMULATED_DEVICES", "2", 1);
    setenv("RUNG_EMULATED_MEMORY", "64M", 1);
    library = dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL);
    return library && CALL(nvmlInit_v2)() == NVML_SUCCESS ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    unlink(state_path);
    return CALL(nvmlShutdown)() == NVML_SUCCESS ? dlclose(library) : -1;
}

static void test_devices(void **state)
{
    (void)state;
    unsigned count, index;
    char text[96];
    nvmlDevice_t device;
    nvmlMemory_t memory;
    nvmlPciInfo_t pci;
    assert_int_equal(CALL(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
    assert_int_equal(count, 2);
    assert_int_equal(CALL(nvmlDeviceGetHandleByIndex_v2)(2, &device), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(CALL(nvmlDeviceGetName)(device_number(1), text, sizeof text), NVML_SUCCESS);
    assert_string_equal(text, "Emulated GPU");
    assert_int_equal(CALL(nvmlDeviceGetName)(device_number(1), text, 5), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(CALL(nvmlDeviceGetMemoryInfo)(device_number(0), &memory), NVML_SUCCESS);
    assert_int_equal(memory.total, 64 << 20);
    assert_int_equal(memory.free + memory.used, memory.total);
    assert_int_equal(CALL(nvmlDeviceGetUUID)(device_number(1), text, sizeof text), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetHandleByUUID)(text, &device), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetIndex)(device, &index), NVML_SUCCESS);
    assert_int_equal(index, 1);
    assert_int_equal(CALL(nvmlDeviceGetPciInfo_v3)(device_number(1), &pci), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &device), NVML_SUCCESS);
    assert_ptr_equal(device, device_number(1));
}

static void test_the_state_changes(void **state)
{
    (void)state;
    unsigned celsius, slowdown, now, best;
    unsigned long long reasons, errors;
    nvmlViolationTime_t time;
    write_state("temperature:95:device=1 throttle:reasons=0x40:device=1\necc:count=3:device=1");
    assert_int_equal(CALL(nvmlDeviceGetTemperature)(device_number(1), NVML_TEMPERATURE_GPU, &celsius), 0);
    assert_int_equal(celsius, 95);
    assert_int_equal(CALL(nvmlDeviceGetTemperatureThreshold)(device_number(1),
                                                             NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &slowdown),
                     NVML_SUCCESS);
    assert_true(celsius > slowdown);
    assert_int_equal(CALL(nvmlDeviceGetTemperature)(device_number(0), NVML_TEMPERATURE_GPU, &celsius), 0);
    assert_true(celsius < slowdown);
    assert_int_equal(CALL(nvmlDeviceGetCurrentClocksThrottleReasons)(device_number(1), &reasons), 0);
    assert_int_equal(reasons, nvmlClocksThrottleReasonHwThermalSlowdown);
    assert_int_equal(CALL(nvmlDeviceGetClockInfo)(device_number(1), NVML_CLOCK_SM, &now), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetMaxClockInfo)(device_number(1), NVML_CLOCK_SM, &best), NVML_SUCCESS);
    assert_true(now < best);
    assert_int_equal(CALL(nvmlDeviceGetTotalEccErrors)(device_number(1), NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                                       NVML_VOLATILE_ECC, &errors),
                     NVML_SUCCESS);
    assert_int_equal(errors, 3);
    assert_int_equal(CALL(nvmlDeviceGetViolationStatus)(device_number(1), NVML_PERF_POLICY_THERMAL, &time),
                     0);
    unsigned long long before = time.violationTime;
    usleep(2000);
    assert_int_equal(CALL(nvmlDeviceGetViolationStatus)(device_number(1), NVML_PERF_POLICY_THERMAL, &time),
                     0);
    assert_true(time.violationTime >= before + 2000000);
    write_state(""); /* cooled down */
    assert_int_equal(CALL(nvmlDeviceGetCurrentClocksThrottleReasons)(device_number(1), &reasons), 0);
    assert_int_equal(reasons, 0);
    assert_int_equal(CALL(nvmlDeviceGetViolationStatus)(device_number(1), NVML_PERF_POLICY_THERMAL, &time),
                     0);
    before = time.violationTime;
    usleep(2000);
    assert_int_equal(CALL(nvmlDeviceGetViolationStatus)(device_number(1), NVML_PERF_POLICY_THERMAL, &time),
                     0);
    assert_int_equal(time.violationTime, before);
}

static void test_events_and_loss(void **state)
{
    (void)state;
    nvmlEventSet_t set;
    nvmlEventData_t event;
    unsigned watts;
    assert_int_equal(CALL(nvmlEventSetCreate)(&set), NVML_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(CALL(nvmlDeviceRegisterEvents)(device_number(i), nvmlEventTypeXidCriticalError, set),
                         0);
    assert_int_equal(CALL(nvmlEventSetWait_v2)(set, &event, 0), NVML_ERROR_TIMEOUT);
    write_state("xid:79:device=1 lost:device=1");
    assert_int_equal(CALL(nvmlEventSetWait_v2)(set, &event, 1000), NVML_SUCCESS);
    assert_ptr_equal(event.device, device_number(1));
    assert_int_equal(event.eventType, nvmlEventTypeXidCriticalError);
    assert_int_equal(event.eventData, 79);
    assert_int_equal(CALL(nvmlEventSetWait_v2)(set, &event, 20), NVML_ERROR_TIMEOUT); /* told once */
    assert_int_equal(CALL(nvmlDeviceGetPowerUsage)(device_number(1), &watts), NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(CALL(nvmlDeviceGetPowerUsage)(device_number(0), &watts), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlEventSetFree)(set), NVML_SUCCESS);
    write_state("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_the_state_changes),
        cmocka_unit_test(test_events_and_loss),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
