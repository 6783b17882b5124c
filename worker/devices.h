/* Which devices this machine gives: `auto | cpu:N | cuda:all | cuda:0,1`, and in a build for tests
 * `emulated:N`.
 *
 * auto is every GPU that can be used, or the CPUs that affinity, cgroup CPU limits and SLURM_CPUS_PER_TASK
 * leave. GPUs are numbered as CUDA does, so an inherited CUDA_VISIBLE_DEVICES chooses and orders them. */
#ifndef RUNG_WORKER_DEVICES_H
#define RUNG_WORKER_DEVICES_H

#include "base/error.h"
#include "base/json.h"
#include "wire/message.h"

#define DEVICES_LIMIT 1024 /* slots of one worker; each costs a process and three descriptors */

/* Fills a heap array of descriptions (devices_free); returns the count or -1: ERROR_USAGE (what is accepted),
 * ERROR_RESOURCE (why there is no such device). `program`: path of this binary, which is started to look for
 * GPUs. `why` (may be NULL) says in its message why `auto` gave CPUs, with ERROR_RESOURCE as its code where
 * the machine seems to have a GPU that cannot be used. */
int devices_find(const char *request, const char *program, struct device_description **devices,
                 struct error *why, struct error *err);
/* The same with /dev and /proc under `root`. */
int devices_find_below(const char *root, const char *request, const char *program,
                       struct device_description **devices, struct error *why, struct error *err);
void devices_free(struct device_description *devices, int count);
/* A request that gives just these: "cpu:4", "cuda:0,1". free() it; NULL: no memory. */
char *devices_request(const struct device_description *devices, int count);

/* [{"id", "name", "memory_bytes", "bf16"}, ...] of a plugin's kind, as `PROGRAM runner --describe KIND`
 * prints it; ERROR_RESOURCE: why there is none. New reference. */
json_t *devices_ask(const char *program, const char *kind, struct error *err);

/* CPU threads this process may use: the smallest of the affinity mask, the cgroup's CPU quota (rounded up;
 * version 1 and 2, any level above this process) and SLURM_CPUS_PER_TASK; at least 1. */
int cpu_count_available(void);
/* The cgroup's quota alone, with /proc and /sys under `root` ("" for the machine's own): whole CPUs, 0 for no
 * limit. */
int cpu_quota(const char *root);
/* How often the kernel ended a process of this machine or cgroup for want of memory; -1 unknown. */
int64_t out_of_memory_kills(const char *root);

#endif
