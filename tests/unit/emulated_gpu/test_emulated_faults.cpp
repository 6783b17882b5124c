/* Planted faults: each kind, each at its place and device, from the list, the environment and the file. */
#include "fixture.h"

#include <cublas_v2.h>

#include "tests/emulated_gpu/settings.h"

__global__ static void victim(float *x)
{
    *x += 1;
}

__global__ static void bystander(float *x)
{
    *x += 1;
}

static cudaError_t launches(int count, float *x)
{
    for (int i = 0; i < count; i++)
        CUDA_LAUNCH(bystander, 1, 1, 0, nullptr, x);
    cudaError_t error = cudaGetLastError();
    return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

static float *one_float()
{
    float *x;
    assert_cuda(cudaMalloc(&x, sizeof *x));
    assert_cuda(cudaMemset(x, 0, sizeof *x));
    return x;
}

static void test_allocations_fail_at_their_turn(void **)
{
    assert_int_equal(emulated_set_faults("allocation:3:count=2"), 0);
    const bool fails[] = {false, false, true, true, false};
    for (int i = 0; i < 5; i++) {
        void *pointer;
        cudaError_t error = i % 2 ? cudaMallocHost(&pointer, 8) : cudaMalloc(&pointer, 8);
        assert_int_equal(error, fails[i] ? cudaErrorMemoryAllocation : cudaSuccess);
        if (error == cudaSuccess)
            assert_cuda(i % 2 ? cudaFreeHost(pointer) : cudaFree(pointer));
    }
    assert_int_equal(emulated_set_faults("allocation_above:1K:device=1"), 0);
    void *pointer;
    assert_cuda(cudaMalloc(&pointer, 1025));
    assert_cuda(cudaSetDevice(1));
    assert_int_equal(cudaMalloc(&pointer, 1025), cudaErrorMemoryAllocation);
    assert_cuda(cudaMalloc(&pointer, 1024));
    assert_cuda(cudaSetDevice(0));
}

static void test_an_asynchronous_error_comes_later(void **)
{
    float *x = one_float();
    assert_int_equal(emulated_set_faults("asynchronous:kernel=victim:count=2"), 0);
    for (int i = 0; i < 3; i++) {
        CUDA_LAUNCH(bystander, 1, 1, 0, nullptr, x);
        CUDA_LAUNCH(victim, 1, 1, 0, nullptr, x);
        assert_cuda(cudaGetLastError());
    }
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure); /* sticky */
    assert_int_equal(emulated_launch_count(0), 4);                /* nothing ran behind it */
    void *pointer;
    assert_int_equal(cudaMalloc(&pointer, 4), cudaErrorLaunchFailure);
    cublasHandle_t handle;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_NOT_INITIALIZED);
    assert_cuda(cudaDeviceReset());
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure); /* of this thread: outlives the reset */
    assert_cuda(launches(2, one_float()));
}

static void test_sticky_and_ecc_errors(void **)
{
    assert_int_equal(emulated_set_faults("sticky:launch=4"), 0);
    float *x = one_float();
    assert_cuda(launches(3, x));
    assert_int_equal(launches(1, x), cudaErrorIllegalAddress);
    assert_int_equal(launches(1, x), cudaErrorIllegalAddress);
    assert_cuda(cudaSetDevice(1)); /* the other devices go on */
    cudaGetLastError();
    assert_cuda(launches(3, one_float()));
    assert_cuda(cudaSetDevice(0));
    assert_cuda(cudaDeviceReset());
    cudaGetLastError();
    assert_int_equal(emulated_set_faults("ecc:launch=1:device=0"), 0);
    assert_int_equal(launches(1, one_float()), cudaErrorECCUncorrectable);
}

static void test_a_lost_device_stays_lost(void **)
{
    assert_int_equal(emulated_set_faults("lost:launch=2:device=0"), 0);
    float *x = one_float();
    assert_int_equal(launches(2, x), cudaErrorDevicesUnavailable);
    assert_int_equal(cudaFree(x), cudaErrorDevicesUnavailable);
    assert_int_equal(cudaDeviceReset(), cudaErrorDevicesUnavailable);
    assert_int_equal(cudaSetDevice(0), cudaErrorDevicesUnavailable);
    assert_int_equal(cudaGetLastError(), cudaErrorDevicesUnavailable);
    assert_cuda(cudaSetDevice(1));
    assert_cuda(launches(1, one_float()));
}

static void test_no_device_and_an_old_driver(void **)
{
    int count = 7;
    assert_int_equal(emulated_set_faults("no_device"), 0);
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    assert_int_equal(count, 0);
    assert_int_equal(emulated_set_faults("old_driver"), 0);
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    assert_int_equal(emulated_set_faults(""), 0);
    assert_cuda(cudaGetDeviceCount(&count));
    assert_int_equal(count, 4);
}

static void test_lists_are_read_or_refused(void **)
{
    for (const char *good : {"", "lost", "throttle, ecc;xid:79", "allocation:5:count=3:device=1",
                             "allocation_above:1M", "throttle:reasons=0x40", "rank_hangs:rank=1:call=5"})
        if (emulated_set_faults(good) != 0)
            fail_msg("refused: %s", good);
    assert_int_equal(emulated_set_faults("sticky:launch=1:device=0"), 0);
    for (const char *bad : {"allocation", "lots", "allocation:x", "allocation:-1", "xid", "lost:launch",
                            "lost:lunch=3", "asynchronous:kernel=", "allocation:5 allocation:"})
        if (emulated_set_faults(bad) == 0)
            fail_msg("accepted: %s", bad);
    assert_int_equal(launches(1, one_float()), cudaErrorIllegalAddress); /* the last good list holds */
}

static void test_the_environment_and_the_file(void **)
{
    char path[] = "/tmp/emulated_state_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    setenv("RUNG_EMULATED_DEVICES", "2", 1);
    setenv("RUNG_EMULATED_MEMORY", "3M", 1);
    setenv("RUNG_EMULATED_CAPABILITY", "8.6", 1);
    setenv("RUNG_EMULATED_FAULTS", "allocation:1", 1);
    setenv("RUNG_EMULATED_STATE", path, 1);
    emulated_reset();
    int count;
    struct cudaDeviceProp properties;
    assert_cuda(cudaGetDeviceCount(&count));
    assert_int_equal(count, 2);
    assert_cuda(cudaGetDeviceProperties(&properties, 1));
    assert_string_equal(properties.name, "Emulated GPU");
    assert_int_equal(properties.totalGlobalMem, 3 << 20);
    assert_int_equal(properties.major * 10 + properties.minor, 86);
    void *pointer;
    assert_int_equal(cudaMalloc(&pointer, 8), cudaErrorMemoryAllocation);
    assert_cuda(cudaMalloc(&pointer, 8));
    const char text[] = "# from now on\nallocation_above:100\n";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(cudaMalloc(&pointer, 101), cudaErrorMemoryAllocation);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_cuda(cudaMalloc(&pointer, 101));
    close(file);
    unlink(path);
    for (const char *name : {"DEVICES", "MEMORY", "CAPABILITY", "FAULTS", "STATE"})
        unsetenv((std::string("RUNG_EMULATED_") + name).c_str());
}

static void test_numbers_with_suffixes(void **)
{
    uint64_t bytes;
    assert_true(emulated::settings_bytes("2G", &bytes) && bytes == (uint64_t)2 << 30);
    assert_true(emulated::settings_bytes("64K", &bytes) && bytes == 65536);
    for (const char *bad : {"", "K", "1X", "1KB", "-1"})
        assert_false(emulated::settings_bytes(bad, &bytes));
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_allocations_fail_at_their_turn, start_fresh),
        cmocka_unit_test_setup(test_an_asynchronous_error_comes_later, start_fresh),
        cmocka_unit_test_setup(test_sticky_and_ecc_errors, start_fresh),
        cmocka_unit_test_setup(test_a_lost_device_stays_lost, start_fresh),
        cmocka_unit_test_setup(test_no_device_and_an_old_driver, start_fresh),
        cmocka_unit_test_setup(test_lists_are_read_or_refused, start_fresh),
        cmocka_unit_test_setup(test_the_environment_and_the_file, start_fresh),
        cmocka_unit_test_setup(test_numbers_with_suffixes, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
