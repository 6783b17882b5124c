/* What tests of the emulated GPU share. */
#ifndef TESTS_EMULATED_GPU_FIXTURE_H
#define TESTS_EMULATED_GPU_FIXTURE_H

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "kernels/cuda/launch.cuh"
#include "tests/emulated_gpu/faults.h"
#include "tests/emulated_gpu/sanitizers.h"

#define assert_cuda(call) assert_int_equal(call, cudaSuccess)

/* Orders that are tried: the written one and as many shuffled ones. RUNG_EMULATED_SEED alone, when given. */
static inline std::vector<unsigned long long> seeds(unsigned long long most)
{
    const char *given = getenv("RUNG_EMULATED_SEED");
    std::vector<unsigned long long> all;
    for (unsigned long long seed = 0; seed <= most; seed++)
        all.push_back(seed);
    return given ? std::vector<unsigned long long>{strtoull(given, nullptr, 0)} : all;
}

/* Says so, for the log of a test that fails. */
static inline void use_seed(unsigned long long seed)
{
    print_message("seed %llu\n", seed);
    emulated_set_seed(seed);
}

static inline int start_fresh(void **)
{
    emulated_reset();
    return 0;
}

/* A float array on the device, given back when it goes out of scope. */
struct device_floats {
    float *data = nullptr;
    size_t count;
    explicit device_floats(size_t n) : count(n)
    {
        assert_cuda(cudaMalloc(&data, n * sizeof(float)));
    }
    explicit device_floats(const std::vector<float> &from) : device_floats(from.size())
    {
        assert_cuda(cudaMemcpy(data, from.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    }
    device_floats(const device_floats &) = delete;
    ~device_floats()
    {
        cudaFree(data);
    }
    std::vector<float> get() const
    {
        std::vector<float> host(count);
        assert_cuda(cudaMemcpy(host.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost));
        return host;
    }
};

/* Whether a child process that does this is ended by a sanitizer or a fault. Its report goes nowhere. */
static inline bool sanitizer_ends(const std::function<void()> &what)
{
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the next test */
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        what();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status != 0;
}

#endif
