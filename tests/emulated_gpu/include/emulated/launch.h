/* Launching: the kernel's arguments are converted and copied at the call, as by the device, and kept with the
 * operation until it has run, or in a graph. */
#ifndef EMULATED_GPU_LAUNCH_H
#define EMULATED_GPU_LAUNCH_H

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "emulated/vector_types.h"

/* This module's `__shared__` variables (absent where it has none). */
extern "C" {
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
}

namespace emulated
{
struct launch_shape {
    const char *kernel; /* name; a literal */
    const void *function;
    dim3 grid, block;
    size_t shared_bytes;
    char *static_shared, *static_shared_end;
};

/* Queues it; errors come as cudaGetLastError or, later, from a call that waits. */
void launch_call(const launch_shape &shape, cudaStream_t stream, std::function<void()> thread);

template <class... Parameters, class... Arguments>
void launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            void (*kernel)(Parameters...), Arguments &&...arguments)
{
    launch_shape shape = {name,
                          (const void *)kernel,
                          grid,
                          block,
                          shared_bytes,
                          __start_emulated_shared,
                          __stop_emulated_shared};
    std::tuple<std::decay_t<Parameters>...> copied(static_cast<Parameters>(arguments)...);
    launch_call(shape, stream, [kernel, copied] { std::apply(kernel, copied); });
}
} // namespace emulated

#endif
