/* Processor faults inside a kernel end the kernel, not the process. */
#ifndef EMULATED_GPU_FAULT_SIGNAL_H
#define EMULATED_GPU_FAULT_SIGNAL_H

namespace emulated
{
/* Between these, a fault of this thread calls kernel_fault(). Under AddressSanitizer and ThreadSanitizer,
 * which report faults with more detail, nothing is watched. */
void fault_watch_begin();
void fault_watch_end();
/* What the last one touched. */
const void *fault_address();

/* Leaves the kernel (block.cpp). */
void kernel_fault();
} // namespace emulated

#endif
