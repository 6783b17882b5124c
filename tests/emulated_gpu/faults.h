/* What a test asks of the emulated GPU in its own process. README.md has the list's grammar. */
#ifndef EMULATED_GPU_FAULTS_H
#define EMULATED_GPU_FAULTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exported also from a plugin that otherwise hides everything. */
#define EMULATED_EXPORT __attribute__((visibility("default")))

/* Everything as in a process that has just started: no memory, streams or errors; the environment is read
 * again. No call may be in progress. */
EMULATED_EXPORT void emulated_reset(void);
/* Of the order of threads, blocks and streams from now on; 0: as written. */
EMULATED_EXPORT void emulated_set_seed(unsigned long long seed);
/* Takes the place of the faults planted so far, counted from here. -1 and nothing changed: cannot be read. */
EMULATED_EXPORT int emulated_set_faults(const char *list);
/* What was last reported to stderr (an access out of bounds, a divergent barrier, ...); "" if nothing since
 * the reset. Valid until the next report. */
EMULATED_EXPORT const char *emulated_last_report(void);
/* Bytes and number of live allocations of a device; kernels and products it has run. */
EMULATED_EXPORT size_t emulated_memory_used(int device);
EMULATED_EXPORT size_t emulated_allocation_count(int device);
EMULATED_EXPORT unsigned long long emulated_launch_count(int device);

#ifdef __cplusplus
}
#endif

#endif
