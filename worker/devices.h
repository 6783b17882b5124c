/* Which devices this machine gives: `auto | cpu:N`, honouring affinity, cgroup CPU limits and
 * SLURM_CPUS_PER_TASK. */
#ifndef RUNG_WORKER_DEVICES_H
#define RUNG_WORKER_DEVICES_H

#include "base/error.h"
#include "wire/message.h"

/* Fills a heap array of descriptions (devices_free); returns the count or -1. */
int devices_find(const char *request, struct device_description **devices, struct error *err);
void devices_free(struct device_description *devices, int count);
int cpu_count_available(void);

#endif
