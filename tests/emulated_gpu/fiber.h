/* Fibers: stacks of one OS thread that hand over to each other explicitly. The sanitizers are told. */
#ifndef EMULATED_GPU_FIBER_H
#define EMULATED_GPU_FIBER_H

#include <cstddef>

namespace emulated
{
struct fiber;

/* The calling thread's own stack as a fiber to come back to. */
fiber *fiber_of_thread();
/* `entry` runs at the first switch to it, and never returns. `number` staggers the stacks, whose tops would
 * otherwise all fall into the same cache sets. NULL without memory. */
fiber *fiber_create(void (*entry)(), unsigned number);
/* As just created, whatever it was in the middle of: nothing is unwound. */
void fiber_restart(fiber *which);
void fiber_destroy(fiber *which);
/* From the running fiber; returns when something switches back. */
void fiber_switch(fiber *to);
fiber *fiber_current();
} // namespace emulated

#endif
