/* Runs the blocks of a kernel, one after the other: the threads of a block are fibers, and take turns only
 * where one waits for others. */
#ifndef EMULATED_GPU_BLOCK_H
#define EMULATED_GPU_BLOCK_H

#include <functional>
#include <string>

#include "emulated/device_code.h"
#include "emulated/launch.h"

namespace emulated
{
/* NaN in every floating-point format, and no useful integer: what memory holds that nothing has written. */
constexpr unsigned short FRESH_PATTERN = 0xfffd, GUARD_PATTERN = 0xfffe;
void pattern_fill(void *memory, size_t bytes, unsigned short pattern);
/* The first byte that is not the pattern's, or `bytes`. */
size_t pattern_check(const void *memory, size_t bytes, unsigned short pattern);

enum kernel_end {
    KERNEL_DONE,
    KERNEL_DIVERGED, /* some threads wait for others that do not come */
    KERNEL_FAULT,    /* touched memory that is not there, divided by zero, ... */
    KERNEL_TRAP,
    KERNEL_SHARED, /* wrote behind its dynamic shared memory */
    KERNEL_MASK    /* a warp operation without the caller in its mask */
};
struct kernel_result {
    kernel_end end;
    std::string where;   /* block, and what waits for what */
    const void *address; /* KERNEL_FAULT */
};

/* `seed` sets the order of blocks and threads; 0: ascending. Only one kernel of the process at a time. */
kernel_result kernel_run(const launch_shape &shape, const std::function<void()> &thread, uint64_t seed);
} // namespace emulated

#endif
