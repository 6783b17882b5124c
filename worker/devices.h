/* Which devices this machine gives: `auto | cpu:N`, honouring affinity, cgroup CPU limits and
 * SLURM_CPUS_PER_TASK. */
#ifndef RUNG_WORKER_DEVICES_H
#define RUNG_WORKER_DEVICES_H

#include "base/error.h"
#include "wire/message.h"

#define DEVICES_LIMIT 1024 /* slots of one worker; each costs a process and three descriptors */

/* Fills a heap array of descriptions (devices_free); returns the count or -1 (ERROR_USAGE: what is accepted).
 */
int devices_find(const char *request, struct device_description **devices, struct error *err);
void devices_free(struct device_description *devices, int count);

/* CPU threads this process may use: the smallest of the affinity mask, the cgroup's CPU quota (rounded up;
 * version 1 and 2, any level above this process) and SLURM_CPUS_PER_TASK; at least 1. */
int cpu_count_available(void);
/* The cgroup's quota alone, with /proc and /sys under `root` ("" for the machine's own): whole CPUs, 0 for no
 * limit. */
int cpu_quota(const char *root);
/* How often the kernel ended a process of this machine or cgroup for want of memory; -1 unknown. */
int64_t out_of_memory_kills(const char *root);

#endif
