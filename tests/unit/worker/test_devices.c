/* Which devices a request gives, and CPU limits from cgroup files of both versions, real ones and broken
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/devices.h"

#include "base/files.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine {
    char root[64];
};

static int setup(void **state)
{
    struct machine *machine = calloc(1, sizeof *machine);
    snprintf(machine->root, sizeof machine->root, "/tmp/rung-test-XXXXXX");
    assert_non_null(mkdtemp(machine->root));
    *state = machine;
    return 0;
}

static int teardown(void **state)
{
    struct machine *machine = *state;
    folder_remove(machine->root, NULL);
    free(machine);
    return 0;
}

static void put(struct machine *machine, const char *path, const char *text)
{
    char full[300];
    snprintf(full, sizeof full, "%s%s", machine->root, path);
    char *folder = path_folder(full);
    assert_int_equal(folder_create(folder, 0700, NULL), 0);
    free(folder);
    assert_int_equal(file_write(full, text, strlen(text), 0600, NULL), 0);
}

static void test_no_files_no_limit(void **state)
{
    struct machine *machine = *state;
    assert_int_equal(cpu_quota(machine->root), 0);
    put(machine, "/proc/self/cgroup", "");
    assert_int_equal(cpu_quota(machine->root), 0);
}

static void test_version_2(void **state)
{
    struct machine *machine = *state;
    put(machine, "/proc/self/cgroup", "0::/a/b\n");
    put(machine, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(cpu_quota(machine->root), 0);
    put(machine, "/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    assert_int_equal(cpu_quota(machine->root), 4);
    put(machine, "/sys/fs/cgroup/a/cpu.max", "250000 100000\n"); /* the one above is tighter: 2.5 CPUs */
    assert_int_equal(cpu_quota(machine->root), 3);
    put(machine, "/sys/fs/cgroup/a/b/cpu.max", "10000 100000\n");
    assert_int_equal(cpu_quota(machine->root), 1);
}

static void test_version_2_in_a_container(void **state)
{
    struct machine *machine = *state;
    /* The path is the host's; the container sees its own folder as the root. */
    put(machine, "/proc/self/cgroup", "0::/kubepods/pod123/c456\n");
    put(machine, "/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(cpu_quota(machine->root), 2);
    put(machine, "/proc/self/cgroup", "0::/\n");
    assert_int_equal(cpu_quota(machine->root), 2);
}

static void test_version_1(void **state)
{
    struct machine *machine = *state;
    put(machine, "/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/docker/x\n3:cpuset:/c\n");
    put(machine, "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
    put(machine, "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_quota(machine->root), 0);
    put(machine, "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "150000\n");
    assert_int_equal(cpu_quota(machine->root), 2);
    put(machine, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put(machine, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_quota(machine->root), 1);
}

static void test_cpuset_is_not_cpu(void **state)
{
    struct machine *machine = *state;
    put(machine, "/proc/self/cgroup", "3:cpuset,cpuacct:/c\n");
    put(machine, "/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "100000\n");
    put(machine, "/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_quota(machine->root), 0);
}

static void test_broken_files_are_no_limit(void **state)
{
    struct machine *machine = *state;
    static const char *const contents[] = {"",          "nonsense", "0 100000", "100000 0",
                                           "-5 100000", "100000",   "nan nan",  NULL};
    put(machine, "/proc/self/cgroup", "nonsense\n0::/a\n:\n::\n");
    for (int i = 0; contents[i]; i++) {
        put(machine, "/sys/fs/cgroup/a/cpu.max", contents[i]);
        assert_int_equal(cpu_quota(machine->root), 0);
    }
    put(machine, "/sys/fs/cgroup/a/cpu.max", "1e18 1");
    assert_int_equal(cpu_quota(machine->root), DEVICES_LIMIT);
}

static void test_out_of_memory_kills(void **state)
{
    struct machine *machine = *state;
    assert_int_equal(out_of_memory_kills(machine->root), -1);
    put(machine, "/proc/vmstat", "oom_kill_disable 9\nnr_free_pages 3\noom_kill 5\n");
    assert_int_equal(out_of_memory_kills(machine->root), 5);
}

static void expect_refused(const char *request, const char *text)
{
    struct device_description *devices = NULL;
    struct error err = {0};
    assert_int_equal(devices_find(request, &devices, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    if (!strstr(err.message, text) || !strstr(err.message, request)) {
        fail_msg("'%s' or '%s' is not in: %s", text, request, err.message);
    }
}

static void test_requests(void **state)
{
    (void)state;
    struct device_description *devices = NULL;
    assert_int_equal(devices_find("cpu:3", &devices, NULL), 3);
    assert_string_equal(devices[0].id, "cpu:0");
    assert_string_equal(devices[2].id, "cpu:2");
    assert_string_equal(devices[2].kind, "cpu");
    assert_true(devices[0].memory_bytes > 0);
    devices_free(devices, 3);
    assert_int_equal(devices_find("cpu:1024", &devices, NULL), 1024);
    devices_free(devices, 1024);
    int count = devices_find("auto", &devices, NULL);
    assert_int_equal(count, cpu_count_available());
    devices_free(devices, count);
    expect_refused("cuda", "no CUDA devices");
    expect_refused("cuda:0,1", "no CUDA devices");
    static const char *const wrong[] = {"cpu:0", "cpu:1025", "cpu:", "cpu:-1", "cpu:2x",
                                        "cpu",   "cpu: 2",   "gpu",  "",       "cpu:99999999999999999999",
                                        NULL};
    for (int i = 0; wrong[i]; i++) {
        expect_refused(wrong[i], "cpu:N");
    }
}

static void test_affinity_and_slurm(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    unsetenv("SLURM_CPUS_PER_TASK");
    int before = cpu_count_available();
    assert_true(before >= 1 && before <= CPU_COUNT(&all));
    setenv("SLURM_CPUS_PER_TASK", "1", 1);
    assert_int_equal(cpu_count_available(), 1);
    setenv("SLURM_CPUS_PER_TASK", "100000", 1); /* Slurm cannot give what affinity does not */
    assert_int_equal(cpu_count_available(), before);
    setenv("SLURM_CPUS_PER_TASK", "many", 1);
    assert_int_equal(cpu_count_available(), before);
    unsetenv("SLURM_CPUS_PER_TASK");
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
            break;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_count_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_no_files_no_limit),
        CASE(test_version_2),
        CASE(test_version_2_in_a_container),
        CASE(test_version_1),
        CASE(test_cpuset_is_not_cpu),
        CASE(test_broken_files_are_no_limit),
        CASE(test_out_of_memory_kills),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_affinity_and_slurm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
