/* How many CPUs this process may use, and what the kernel says of memory. */
#include "worker/devices.h"

#include "base/files.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL_FILE (1 << 20)

static char *small_file(const char *root, const char *format, const char *a, const char *b)
{
    char path[PATH_MAX], tail[PATH_MAX];
    int length = snprintf(tail, sizeof tail, format, a, b);
    if (length < 0 || length >= (int)sizeof tail) {
        return NULL;
    }
    length = snprintf(path, sizeof path, "%s%s", root, tail);
    if (length < 0 || length >= (int)sizeof path) {
        return NULL;
    }
    return file_read(path, SMALL_FILE, NULL, NULL);
}

static int quota_to_cpus(double quota, double period)
{
    if (!(quota > 0) || !(period > 0)) {
        return 0;
    }
    double cpus = quota / period;
    int whole = cpus > DEVICES_LIMIT ? DEVICES_LIMIT : (int)cpus;
    return whole < cpus && whole < DEVICES_LIMIT ? whole + 1 : whole;
}

/* cgroup version 2: cpu.max is "QUOTA PERIOD" or "max PERIOD". */
static int quota_at_v2(const char *root, const char *folder)
{
    char *text = small_file(root, "/sys/fs/cgroup%s/cpu.max%s", folder, "");
    double quota = 0, period = 0;
    int cpus = 0;
    if (text && sscanf(text, "%lf %lf", &quota, &period) == 2) {
        cpus = quota_to_cpus(quota, period);
    }
    free(text);
    return cpus;
}

/* cgroup version 1: two files; -1 is no limit. The controller is mounted as cpu or cpu,cpuacct. */
static int quota_at_v1(const char *root, const char *folder)
{
    static const char *const mounts[] = {"cpu", "cpu,cpuacct", NULL};
    for (int i = 0; mounts[i]; i++) {
        char *quota = small_file(root, "/sys/fs/cgroup/%s%s/cpu.cfs_quota_us", mounts[i], folder);
        char *period = small_file(root, "/sys/fs/cgroup/%s%s/cpu.cfs_period_us", mounts[i], folder);
        int cpus = 0;
        if (quota && period) {
            cpus = quota_to_cpus(strtod(quota, NULL), strtod(period, NULL));
        }
        free(quota);
        free(period);
        if (cpus > 0) {
            return cpus;
        }
    }
    return 0;
}

/* The tightest limit on the way from `folder` (of this process) up to the root. Inside a container the path
 * of /proc/self/cgroup may not exist under its own mount: the root is then the container itself, and is asked
 * too. */
static int quota_upwards(const char *root, char *folder, int (*quota_at)(const char *, const char *))
{
    int tightest = 0;
    for (;;) {
        int cpus = quota_at(root, strcmp(folder, "/") == 0 ? "" : folder);
        if (cpus > 0 && (tightest == 0 || cpus < tightest)) {
            tightest = cpus;
        }
        char *slash = strrchr(folder, '/');
        if (!slash || folder[0] == '\0' || strcmp(folder, "/") == 0) {
            return tightest;
        }
        *slash = '\0';
    }
}

static bool names_cpu_controller(const char *controllers)
{
    size_t size = strcspn(controllers, ":");
    for (const char *at = controllers; at < controllers + size;) {
        size_t word = strcspn(at, ",:");
        if (word == 3 && strncmp(at, "cpu", 3) == 0) {
            return true;
        }
        at += word + 1;
    }
    return false;
}

int cpu_quota(const char *root)
{
    char *lines = small_file(root, "/proc/self/cgroup%s%s", "", "");
    int tightest = 0;
    char *state = NULL;
    for (char *line = lines ? strtok_r(lines, "\n", &state) : NULL; line;
         line = strtok_r(NULL, "\n", &state)) {
        /* "hierarchy:controllers:/folder" */
        char *controllers = strchr(line, ':');
        char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!folder) {
            continue;
        }
        controllers++;
        folder++;
        int cpus = 0;
        if (strncmp(line, "0::", 3) == 0) {
            cpus = quota_upwards(root, folder, quota_at_v2);
        } else if (names_cpu_controller(controllers)) {
            cpus = quota_upwards(root, folder, quota_at_v1);
        }
        if (cpus > 0 && (tightest == 0 || cpus < tightest)) {
            tightest = cpus;
        }
    }
    free(lines);
    return tightest;
}

static int affinity_count(void)
{
    /* A fixed cpu_set_t has 1024 bits and fails on larger machines: grow until the kernel's mask fits. */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set) {
            break;
        }
        size_t size = CPU_ALLOC_SIZE(cpus);
        int result = sched_getaffinity(0, size, set);
        int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (result == 0) {
            return count;
        }
        if (errno != EINVAL) {
            break;
        }
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int cpu_count_available(void)
{
    int count = affinity_count();
    int quota = cpu_quota("");
    if (quota > 0 && quota < count) {
        count = quota;
    }
    const char *slurm = getenv("SLURM_CPUS_PER_TASK");
    long task = slurm ? strtol(slurm, NULL, 10) : 0;
    if (task > 0 && task < count) {
        count = (int)task;
    }
    return count > 1 ? count : 1;
}

static int64_t counter_in(char *text, const char *name)
{
    int64_t value = -1;
    size_t length = strlen(name);
    char *state = NULL;
    for (char *line = text ? strtok_r(text, "\n", &state) : NULL; line; line = strtok_r(NULL, "\n", &state)) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            value = strtoll(line + length + 1, NULL, 10);
        }
    }
    free(text);
    return value;
}

int64_t out_of_memory_kills(const char *root)
{
    return counter_in(small_file(root, "/proc/vmstat%s%s", "", ""), "oom_kill");
}
