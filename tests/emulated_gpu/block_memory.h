/* Shared memory of the block that runs. */
#ifndef EMULATED_GPU_BLOCK_MEMORY_H
#define EMULATED_GPU_BLOCK_MEMORY_H

#include "emulated/launch.h"

namespace emulated
{
char *shared_begin();
/* Before each block: nothing of the one before is left, and a guard is set behind what this kernel has. */
void shared_prepare(const launch_shape &shape);
/* After it: whether the guard still holds. */
bool shared_intact(const launch_shape &shape);
} // namespace emulated

#endif
