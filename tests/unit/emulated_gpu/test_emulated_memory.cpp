/* Device memory: its limit, guards, poison, what is freed, pools, and copies. */
#include "fixture.h"

__global__ static void write_at(float *x, long index, float value)
{
    x[index] = value;
}

__global__ static void copy_at(float *to, const float *x, long index)
{
    *to = x[index];
}

/* Runs what must be found: ends the process under the sanitizer that sees it first, else there is an error
 * with that in its report. */
static void assert_found(bool ends, const std::function<void()> &launch, cudaError_t error, const char *text)
{
    if (ends) {
        assert_true(sanitizer_ends([&] {
            launch();
            cudaDeviceSynchronize();
        }));
        return;
    }
    launch();
    assert_cuda(cudaGetLastError());
    assert_int_equal(cudaDeviceSynchronize(), error);
    if (!strstr(emulated_last_report(), text))
        fail_msg("reported: %s", emulated_last_report());
    assert_cuda(cudaDeviceReset());
    cudaGetLastError(); /* outlives the reset */
}

static void test_writes_out_of_bounds_are_found(void **)
{
    for (size_t count : {1, 7, 64, 1000, 4096}) {
        float *x;
        assert_cuda(cudaMalloc(&x, count * sizeof(float)));
        assert_found(
            EMULATED_ASAN, [&] { CUDA_LAUNCH(write_at, 1, 1, 0, nullptr, x, (long)count, 1.0f); },
            cudaErrorIllegalAddress, "write_at: wrote 0 bytes behind an allocation");
        assert_cuda(cudaMalloc(&x, count * sizeof(float)));
        assert_found(
            EMULATED_ASAN, [&] { CUDA_LAUNCH(write_at, 1, 1, 0, nullptr, x, -1l, 1.0f); },
            cudaErrorIllegalAddress, "write_at: wrote 4 bytes in front of an allocation");
    }
}

static void test_reads_out_of_bounds_are_found(void **)
{
    float *x, *y;
    assert_cuda(cudaMalloc(&x, 100 * sizeof(float)));
    assert_cuda(cudaMalloc(&y, sizeof(float)));
    auto read = [&] { CUDA_LAUNCH(copy_at, 1, 1, 0, nullptr, y, x, 100l); };
#if EMULATED_ASAN
    assert_found(true, read, cudaErrorIllegalAddress, "");
#else
    float value = 0; /* no more than NaN without a sanitizer */
    read();
    assert_cuda(cudaMemcpy(&value, y, sizeof value, cudaMemcpyDeviceToHost));
    assert_true(value != value);
#endif
}

static void test_freed_and_wild_memory_is_found(void **)
{
    float *x, *y;
    assert_cuda(cudaMalloc(&x, 4000));
    assert_cuda(cudaMalloc(&y, 4000));
    assert_cuda(cudaFree(x));
    assert_found(
        EMULATED_ASAN || EMULATED_TSAN, [&] { CUDA_LAUNCH(write_at, 1, 1, 0, nullptr, x, 5l, 1.0f); },
        cudaErrorIllegalAddress,
        "write_at: fault: block (0, 0, 0), thread (0, 0, 0), touching 20 bytes from the start of "
        "4000 bytes freed");
    assert_found(
        EMULATED_ASAN || EMULATED_TSAN, [&] { CUDA_LAUNCH(write_at, 1, 1, 0, nullptr, nullptr, 2l, 1.0f); },
        cudaErrorIllegalAddress, "0x8, which is no device memory");
}

static void test_fresh_memory_is_nan(void **)
{
    device_floats x(5000);
    for (float each : x.get())
        assert_true(each != each);
}

static void test_the_limit_holds(void **)
{
    size_t before, total, after;
    assert_cuda(cudaMemGetInfo(&before, &total));
    assert_int_equal(before, total);
    char *half, *more, *rest;
    assert_cuda(cudaMalloc(&half, total / 2));
    assert_cuda(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, total - total / 2);
    assert_int_equal(cudaMalloc(&more, total / 2 + 1), cudaErrorMemoryAllocation);
    assert_null(more);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation); /* and not sticky */
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaMalloc(&rest, total / 2));
    assert_int_equal(emulated_allocation_count(0), 2);
    assert_cuda(cudaFree(half));
    assert_cuda(cudaFree(rest));
    assert_int_equal(cudaFree(rest), cudaErrorInvalidValue);
    assert_int_equal(emulated_memory_used(0), 0);
}

static void test_pools(void **)
{
    cudaMemPool_t pool;
    assert_cuda(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t threshold = UINT64_MAX, value;
    assert_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    cudaStream_t stream;
    assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    char *x;
    assert_cuda(cudaMallocAsync(&x, 1 << 20, stream));
    assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    assert_int_equal(value, 1 << 20);
    assert_cuda(cudaFreeAsync(x, stream));
    assert_int_equal(cudaFreeAsync(x, stream), cudaErrorInvalidValue);
    assert_cuda(cudaStreamSynchronize(stream));
    assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    assert_int_equal(value, 0);
    size_t available, total;
    assert_cuda(cudaMemGetInfo(&available, &total));
    assert_int_equal(available, total - (1 << 20)); /* kept warm */
    assert_cuda(cudaMemPoolTrimTo(pool, 0));
    assert_cuda(cudaMemGetInfo(&available, &total));
    assert_int_equal(available, total);
    /* Work that is queued before the free may use the memory, later work may not. */
    assert_cuda(cudaMallocAsync(&x, 100, stream));
    assert_cuda(cudaMemsetAsync(x, 0, 100, stream));
    assert_cuda(cudaFreeAsync(x, stream));
    assert_cuda(cudaMemsetAsync(x, 0, 100, stream));
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    assert_non_null(strstr(emulated_last_report(), "memset, when it ran"));
}

static void test_copies_are_checked(void **)
{
    char host[64] = {0};
    char *x, *other;
    assert_cuda(cudaMalloc(&x, 64));
    assert_int_equal(cudaMemcpy(x, host, 65, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(x + 32, host, 33, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, host + 32, 32, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, x, 32, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(x, 0, 65), cudaErrorInvalidValue);
    assert_cuda(cudaMemcpy(x, host, 64, cudaMemcpyHostToDevice));
    assert_cuda(cudaSetDevice(1));
    assert_cuda(cudaMalloc(&other, 64));
    assert_int_equal(cudaMemcpy(x, host, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_cuda(cudaMemcpyPeer(other, 1, x, 0, 64));
    assert_cuda(cudaMemcpy(other, x, 64, cudaMemcpyDefault));
    struct cudaPointerAttributes attributes;
    assert_cuda(cudaPointerGetAttributes(&attributes, other + 63));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(attributes.device, 1);
    assert_cuda(cudaPointerGetAttributes(&attributes, host));
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    assert_cuda(cudaSetDevice(0));
}

static void test_copies_of_rows(void **)
{
    char from[6] = {1, 2, 3, 4, 5, 6}, to[6] = {0};
    char *x;
    assert_cuda(cudaMalloc(&x, 8));
    assert_cuda(cudaMemset(x, 9, 8));
    assert_cuda(cudaMemcpy2D(x, 4, from, 3, 2, 2, cudaMemcpyHostToDevice));
    assert_cuda(cudaMemcpy2D(to, 3, x, 4, 3, 2, cudaMemcpyDeviceToHost));
    const char expected[6] = {1, 2, 9, 4, 5, 9};
    assert_memory_equal(to, expected, 6);
    assert_int_equal(cudaMemcpy2D(x, 1, from, 3, 2, 2, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_cuda(cudaFree(x));
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_writes_out_of_bounds_are_found, start_fresh),
        cmocka_unit_test_setup(test_reads_out_of_bounds_are_found, start_fresh),
        cmocka_unit_test_setup(test_freed_and_wild_memory_is_found, start_fresh),
        cmocka_unit_test_setup(test_fresh_memory_is_nan, start_fresh),
        cmocka_unit_test_setup(test_the_limit_holds, start_fresh),
        cmocka_unit_test_setup(test_pools, start_fresh),
        cmocka_unit_test_setup(test_copies_are_checked, start_fresh),
        cmocka_unit_test_setup(test_copies_of_rows, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
