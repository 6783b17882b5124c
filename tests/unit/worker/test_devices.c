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

/* A program that answers `runner --describe KIND` with a text and an exit code. */
static void put_program(struct machine *machine, const char *answer, int code)
{
    char path[128], script[1200];
    snprintf(path, sizeof path, "%s/program", machine->root);
    snprintf(script, sizeof script,
             "#!/bin/sh\n[ \"$1 $2\" = 'runner --describe' ] || exit 9\necho \"$3\" >>%s/asked\n"
             "echo noise >&2\nprintf '%%s' '%s'\nexit %d\n",
             machine->root, answer, code);
    assert_int_equal(file_write(path, script, strlen(script), 0700, NULL), 0);
}

/* As devices_find on that machine. */
static int find(struct machine *machine, const char *request, struct device_description **devices,
                struct error *why, struct error *err)
{
    char program[128];
    snprintf(program, sizeof program, "%s/program", machine->root);
    return devices_find_below(machine->root, request, program, devices, why, err);
}

static void expect_refused(struct machine *machine, const char *request, enum error_code code,
                           const char *text)
{
    struct device_description *devices = NULL;
    struct error err = {0};
    assert_int_equal(find(machine, request, &devices, NULL, &err), -1);
    assert_int_equal(err.code, code);
    if (!strstr(err.message, text)) {
        fail_msg("'%s' is not in: %s", text, err.message);
    }
}

static void test_requests(void **state)
{
    struct machine *machine = *state;
    struct device_description *devices = NULL;
    assert_int_equal(find(machine, "cpu:3", &devices, NULL, NULL), 3);
    assert_string_equal(devices[0].id, "cpu:0");
    assert_string_equal(devices[2].id, "cpu:2");
    assert_string_equal(devices[2].kind, "cpu");
    assert_true(devices[0].memory_bytes > 0);
    char *request = devices_request(devices, 3);
    assert_string_equal(request, "cpu:3");
    free(request);
    devices_free(devices, 3);
    assert_int_equal(find(machine, "cpu:1024", &devices, NULL, NULL), 1024);
    devices_free(devices, 1024);
    static const char *const wrong[] = {"cpu:0", "cpu:1025", "cpu:", "cpu:-1", "cpu:2x",
                                        "cpu",   "cpu: 2",   "gpu",  "",       "cpu:99999999999999999999",
                                        NULL};
    for (int i = 0; wrong[i]; i++) {
        expect_refused(machine, wrong[i], ERROR_USAGE, "cpu:N");
        expect_refused(machine, wrong[i], ERROR_USAGE, wrong[i]);
    }
}

#define TWO_GPUS                                                                                             \
    "{\"devices\": [{\"id\": \"cuda:0\", \"name\": \"GPU A\", \"memory_bytes\": 1000, \"bf16\": true}, "     \
    "{\"id\": \"cuda:1\", \"name\": \"GPU B\", \"memory_bytes\": 2000, \"bf16\": false}]}\n"

static void test_gpus(void **state)
{
    struct machine *machine = *state;
    struct device_description *devices = NULL;
    put_program(machine, TWO_GPUS, 0);
    assert_int_equal(find(machine, "cuda:all", &devices, NULL, NULL), 2);
    assert_string_equal(devices[0].id, "cuda:0");
    assert_string_equal(devices[0].kind, "cuda");
    assert_string_equal(devices[1].name, "GPU B");
    assert_int_equal(devices[1].memory_bytes, 2000);
    assert_true(devices[0].bf16);
    assert_false(devices[1].bf16);
    devices_free(devices, 2);
    assert_int_equal(find(machine, "cuda:1,0", &devices, NULL, NULL), 2); /* in the order asked for */
    assert_string_equal(devices[0].name, "GPU B");
    char *request = devices_request(devices, 2);
    assert_string_equal(request, "cuda:1,0");
    free(request);
    devices_free(devices, 2);
    assert_int_equal(find(machine, "emulated:1", &devices, NULL, NULL), 1);
    assert_string_equal(devices[0].kind, "emulated");
    devices_free(devices, 1);
    static const char *const wrong[] = {"cuda:",   "cuda:2",  "cuda:0,0",   "cuda:0,", "cuda:,0",
                                        "cuda:-1", "cuda:0x", "cuda:all,0", NULL};
    for (int i = 0; wrong[i]; i++) {
        bool asked = strcmp(wrong[i], "cuda:2") == 0; /* the others are wrong on any machine */
        expect_refused(machine, wrong[i], ERROR_USAGE,
                       asked ? "this machine has 2" : "accepted are auto, cpu:N");
    }
    expect_refused(machine, "emulated:3", ERROR_USAGE, "gives 2");
    expect_refused(machine, "emulated:0", ERROR_USAGE, "emulated:N takes N");
}

static void test_gpus_that_cannot_be_used(void **state)
{
    struct machine *machine = *state;
    struct device_description *devices = NULL;
    expect_refused(machine, "cuda:0", ERROR_RESOURCE, "look for cuda devices: No such file");
    expect_refused(machine, "cuda:x", ERROR_USAGE, "found 'cuda:x'; accepted are"); /* nobody is asked */
    put_program(machine, "{\"error\": \"the driver is too old\"}", 4);
    expect_refused(machine, "cuda:all", ERROR_RESOURCE, "the driver is too old");
    put_program(machine, "nonsense", 3);
    expect_refused(machine, "cuda:all", ERROR_RESOURCE, "ended with code 3");
    put_program(machine, "{\"devices\": []}", 0);
    expect_refused(machine, "cuda:all", ERROR_RESOURCE, "has no GPU");
    /* The numbers of the others stay. */
    put_program(machine, "{\"devices\": [{\"fault\": \"fell off the bus\"}, {\"id\": \"cuda:1\"}]}", 0);
    expect_refused(machine, "cuda:0", ERROR_RESOURCE, "cuda:0 cannot be used: fell off the bus");
    assert_int_equal(find(machine, "cuda:all", &devices, NULL, NULL), 1);
    assert_string_equal(devices[0].id, "cuda:1");
    devices_free(devices, 1);
}

static bool was_asked(const struct machine *machine)
{
    char path[128];
    snprintf(path, sizeof path, "%s/asked", machine->root);
    return file_exists(path);
}

/* CPUs are expected; returns whether people are told why. */
static bool auto_gives_cpus(struct machine *machine, const char *why_text)
{
    struct device_description *devices = NULL;
    struct error why;
    int count = find(machine, "auto", &devices, &why, NULL);
    assert_int_equal(count, cpu_count_available());
    assert_string_equal(devices[0].kind, "cpu");
    devices_free(devices, count);
    assert_non_null(strstr(why.message, why_text));
    return why.code != ERROR_NONE;
}

static void test_auto(void **state)
{
    struct machine *machine = *state;
    struct device_description *devices = NULL;
    struct error why;
    unsetenv("CUDA_VISIBLE_DEVICES");
    put_program(machine, TWO_GPUS, 0);
    assert_false(auto_gives_cpus(machine, "no NVIDIA device")); /* a laptop: nothing is started or said */
    assert_false(was_asked(machine));
    put(machine, "/dev/nvidiactl", "");
    assert_int_equal(find(machine, "auto", &devices, &why, NULL), 2);
    assert_string_equal(devices[0].kind, "cuda");
    assert_string_equal(why.message, "");
    devices_free(devices, 2);
    put_program(machine, "{\"error\": \"the driver is too old\"}", 4);
    assert_true(auto_gives_cpus(machine, "training on the CPU: the driver is too old"));
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_false(auto_gives_cpus(machine, "CUDA_VISIBLE_DEVICES"));
    unsetenv("CUDA_VISIBLE_DEVICES");
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
        CASE(test_gpus),
        CASE(test_gpus_that_cannot_be_used),
        CASE(test_auto),
        CASE(test_no_files_no_limit),
        CASE(test_version_2),
        CASE(test_version_2_in_a_container),
        CASE(test_version_1),
        CASE(test_cpuset_is_not_cpu),
        CASE(test_broken_files_are_no_limit),
        CASE(test_out_of_memory_kills),
        CASE(test_requests),
        cmocka_unit_test(test_affinity_and_slurm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
