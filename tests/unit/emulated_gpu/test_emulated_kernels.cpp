/* Kernels: every thread once, barriers, shuffles, and what is reported. */
#include "fixture.h"

static const unsigned BLOCK = 128;

__global__ static void add_one(float *x, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        x[i] += 1;
}

__global__ static void write_index(float *x)
{
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    x[block * blockDim.x * blockDim.y * blockDim.z + thread] += (float)(1 + block * 1000 + thread);
}

/* sums[block] = the sum of the block's part of x. Without `waits`, the barriers are missing. */
template <bool waits> __global__ static void block_sums(float *sums, const float *__restrict__ x)
{
    CUDA_SHARED(float, part);
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (waits)
        __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        if (waits)
            __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}

__global__ static void static_sums(float *sums, const float *x)
{
    __shared__ float part[BLOCK];
    part[threadIdx.x] = x[blockIdx.x * BLOCK + threadIdx.x];
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    float sum = 0;
    for (unsigned i = 0; i < BLOCK; i++)
        sum += part[i];
    sums[blockIdx.x] = sum;
}

static void test_every_thread_runs_once(void **)
{
    for (unsigned long long seed : seeds(5)) {
        use_seed(seed);
        dim3 grid(3, 2, 2), block(5, 3, 2);
        size_t threads = 12 * 30;
        device_floats x(std::vector<float>(threads, 0));
        CUDA_LAUNCH(write_index, grid, block, 0, nullptr, x.data);
        assert_cuda(cudaGetLastError());
        std::vector<float> got = x.get();
        for (size_t i = 0; i < threads; i++)
            assert_int_equal((int)got[i], 1 + (i / 30) * 1000 + i % 30);
    }
}

static std::vector<float> counting(size_t n)
{
    std::vector<float> x(n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i % 7);
    return x;
}

static std::vector<float> sums_of(const std::vector<float> &x)
{
    std::vector<float> sums(x.size() / BLOCK, 0.0f);
    for (size_t i = 0; i < x.size(); i++)
        sums[i / BLOCK] += x[i];
    return sums;
}

static void test_barriers_order_the_threads(void **)
{
    std::vector<float> host = counting(BLOCK * 9);
    for (unsigned long long seed : seeds(20)) {
        use_seed(seed);
        device_floats x(host), sums(9), again(9);
        CUDA_LAUNCH(block_sums<true>, 9, BLOCK, BLOCK * sizeof(float), nullptr, sums.data, x.data);
        CUDA_LAUNCH(static_sums, 9, BLOCK, 0, nullptr, again.data, x.data);
        assert_true(sums.get() == sums_of(host));
        assert_true(again.get() == sums_of(host));
    }
    assert_string_equal(emulated_last_report(), "");
}

static void test_a_missing_barrier_shows(void **)
{
    std::vector<float> host = counting(BLOCK * 3);
    int wrong = 0;
    for (unsigned long long seed = 1; seed <= 20; seed++) {
        use_seed(seed);
        device_floats x(host), sums(3);
        CUDA_LAUNCH(block_sums<false>, 3, BLOCK, BLOCK * sizeof(float), nullptr, sums.data, x.data);
        wrong += sums.get() != sums_of(host);
    }
    print_message("a missing barrier: wrong sums under %d of 20 seeds\n", wrong);
    assert_true(wrong > 0);
}

/* out[0..3][lane]: up by 1, down by 2, xor 3, from lane 5 of eights; [4]: butterfly sum; [5]: ballot of odd.
 */
__global__ static void shuffles(float *out)
{
    unsigned lane = threadIdx.x % 32, all = 0xffffffffu;
    float mine = (float)(100 + lane), sum = (float)lane;
    out[0 * 64 + threadIdx.x] = __shfl_up_sync(all, mine, 1);
    out[1 * 64 + threadIdx.x] = __shfl_down_sync(all, mine, 2);
    out[2 * 64 + threadIdx.x] = __shfl_xor_sync(all, mine, 3);
    out[3 * 64 + threadIdx.x] = __shfl_sync(all, mine, 5, 8);
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(all, sum, offset);
    out[4 * 64 + threadIdx.x] = sum;
    out[5 * 64 + threadIdx.x] = __ballot_sync(all, lane & 1) == 0xaaaaaaaau;
}

static void test_shuffles(void **)
{
    for (unsigned long long seed : seeds(10)) {
        use_seed(seed);
        device_floats out(6 * 64);
        CUDA_LAUNCH(shuffles, 1, 64, 0, nullptr, out.data);
        std::vector<float> got = out.get();
        for (size_t thread = 0; thread < 64; thread++) {
            float lane = (float)(thread % 32);
            assert_true(got[thread] == (lane > 0 ? 99 + lane : 100));
            assert_true(got[64 + thread] == (lane < 30 ? 102 + lane : 100 + lane));
            assert_true(got[2 * 64 + thread] == (float)(100 + (thread % 32 ^ 3)));
            assert_true(got[3 * 64 + thread] == (float)(105 + thread % 32 / 8 * 8));
            assert_true(got[4 * 64 + thread] == 496); /* 0 + ... + 31 */
            assert_true(got[5 * 64 + thread] == 1);
        }
    }
}

/* Double values, a part of a warp, and a block that does not fill its last warp. */
__global__ static void odd_shuffles(double *out)
{
    unsigned lane = threadIdx.x % 32;
    double x = 0.5 + lane;
    if (lane < 8)
        x += __shfl_xor_sync(0xffu, x, 4);
    out[threadIdx.x] = x;
    double beyond = __shfl_down_sync(0xffffffffu, x, 1);
    out[blockDim.x + threadIdx.x] = beyond;
}

static void test_shuffles_of_a_part(void **)
{
    double *out, got[80];
    assert_cuda(cudaMalloc(&out, sizeof got));
    CUDA_LAUNCH(odd_shuffles, 1, 40, 0, nullptr, out);
    assert_cuda(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    assert_true(got[0] == 0.5 + 4.5 && got[7] == 7.5 + 3.5 && got[8] == 8.5);
    assert_true(got[40 + 8] == 9.5);
    assert_true(got[40 + 39] != got[40 + 39]); /* lane 8 of the second warp is not there: NaN */
    assert_cuda(cudaFree(out));
}

__global__ static void counts(int *out)
{
    out[threadIdx.x] = __syncthreads_count(threadIdx.x < 10);
    out[blockDim.x + threadIdx.x] =
        __syncthreads_or(threadIdx.x == 3) + 2 * __syncthreads_and(threadIdx.x < 63);
}

static void test_barriers_that_count(void **)
{
    int *out, got[128];
    assert_cuda(cudaMalloc(&out, sizeof got));
    CUDA_LAUNCH(counts, 1, 64, 0, nullptr, out);
    assert_cuda(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) {
        assert_int_equal(got[i], 10);
        assert_int_equal(got[64 + i], 1);
    }
    assert_cuda(cudaFree(out));
}

__global__ static void diverges(float *x)
{
    if (threadIdx.x % 2 == 0)
        __syncthreads();
    x[threadIdx.x] = 1;
}

__global__ static void diverges_in_warp(float *x)
{
    if (threadIdx.x != 7)
        x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

static void test_divergence_is_reported(void **)
{
    for (unsigned long long seed : seeds(3)) {
        emulated_reset();
        use_seed(seed);
        float *x;
        assert_cuda(cudaMalloc(&x, 1024));
        CUDA_LAUNCH(diverges, 2, 64, 0, nullptr, x);
        assert_cuda(cudaGetLastError()); /* asynchronous */
        assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
        assert_non_null(strstr(emulated_last_report(), "kernel diverges: divergent barrier"));
        assert_non_null(strstr(emulated_last_report(), "32 wait at __syncthreads"));
        assert_int_equal(cudaFree(x), cudaErrorLaunchFailure); /* sticky */
        assert_cuda(cudaDeviceReset());
        assert_cuda(cudaMalloc(&x, 1024));
        CUDA_LAUNCH(diverges_in_warp, 1, 32, 0, nullptr, x);
        assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
        assert_non_null(strstr(emulated_last_report(), "31 wait at a warp operation"));
        assert_cuda(cudaDeviceReset());
        device_floats fine(std::vector<float>(64, 0)); /* stacks that were given up serve again */
        CUDA_LAUNCH(add_one, 1, 64, 0, nullptr, fine.data, 64);
        assert_true(fine.get()[63] == 1);
    }
}

__global__ static void fill_shared(float *x)
{
    CUDA_SHARED(float, part);
    x[threadIdx.x] = part[threadIdx.x];
    part[threadIdx.x] = 5;
}

__global__ static void overrun_shared(float *x)
{
    CUDA_SHARED(float, part);
    part[threadIdx.x] = 5;
    x[threadIdx.x] = part[threadIdx.x];
}

static void test_shared_memory(void **)
{
    device_floats x(32);
    CUDA_LAUNCH(fill_shared, 2, 32, 32 * sizeof(float), nullptr, x.data);
    for (float each : x.get())
        assert_true(each != each); /* not what the block before left */
    auto overrun = [&] {
        CUDA_LAUNCH(overrun_shared, 1, 32, 31 * sizeof(float), nullptr, x.data);
        return cudaDeviceSynchronize();
    };
#if EMULATED_ASAN
    assert_true(sanitizer_ends(overrun));
#else
    assert_int_equal(overrun(), cudaErrorIllegalAddress);
    assert_non_null(strstr(emulated_last_report(), "overrun_shared: wrote behind its dynamic shared memory"));
#endif
}

struct holder {
    float *pointer;
};

static void test_arguments_are_copied_at_the_launch(void **)
{
    device_floats x(std::vector<float>(8, 0));
    holder held = {x.data};
    CUDA_LAUNCH(add_one, 1, 8, 0, nullptr, held.pointer, 8);
    held.pointer = nullptr;
    assert_true(x.get()[7] == 1);
}

static void test_shapes_are_checked(void **)
{
    device_floats x(8);
    CUDA_LAUNCH(add_one, 0, 8, 0, nullptr, x.data, 8);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CUDA_LAUNCH(add_one, 1, 1025, 0, nullptr, x.data, 8);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CUDA_LAUNCH(add_one, dim3(1, 65536), 1, 0, nullptr, x.data, 8);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CUDA_LAUNCH(fill_shared, 1, 8, 50000, nullptr, x.data);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_cuda(cudaFuncSetAttribute(fill_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000));
    CUDA_LAUNCH(fill_shared, 1, 8, 50000, nullptr, x.data);
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaDeviceSynchronize());
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_thread_runs_once, start_fresh),
        cmocka_unit_test_setup(test_barriers_order_the_threads, start_fresh),
        cmocka_unit_test_setup(test_a_missing_barrier_shows, start_fresh),
        cmocka_unit_test_setup(test_shuffles, start_fresh),
        cmocka_unit_test_setup(test_shuffles_of_a_part, start_fresh),
        cmocka_unit_test_setup(test_barriers_that_count, start_fresh),
        cmocka_unit_test_setup(test_divergence_is_reported, start_fresh),
        cmocka_unit_test_setup(test_shared_memory, start_fresh),
        cmocka_unit_test_setup(test_arguments_are_copied_at_the_launch, start_fresh),
        cmocka_unit_test_setup(test_shapes_are_checked, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
