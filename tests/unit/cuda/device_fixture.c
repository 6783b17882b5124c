#include "tests/unit/cuda/device_fixture.h"

#include "tests/emulated_gpu/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct lanes one_lane = {.count = 1, .stride = 0, .precision = DEVICE_FP32};

/* Of the order in which threads, blocks and independent work run: a new one for each test, unless
 * RUNG_EMULATED_SEED says which. */
static void use_new_seed(void)
{
    struct timespec now;
    uint64_t seed;

    if (getenv("RUNG_EMULATED_SEED"))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    emulated_set_seed(seed);
    printf("RUNG_EMULATED_SEED=%llu\n", (unsigned long long)seed);
}

int fixture_empty(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    unsetenv("RUNG_EMULATED_FAULTS");
    setenv("RUNG_EMULATED_MEMORY", "256M", 1);
    setenv("RUNG_EMULATED_CAPABILITY", "9.0", 1);
    emulated_reset();
    use_new_seed();
    *state = fixture;
    return 0;
}

int fixture_open(void **state)
{
    struct fixture *fixture;

    fixture_empty(state);
    fixture = *state;
    fixture->device = rung_device_plugin()->create(0, &fixture->err);
    if (!fixture->device)
        fail_msg("%s", fixture->err.message);
    fixture->on = fixture->device->operations;
    return 0;
}

int fixture_close(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->device)
        fixture->on->destroy(fixture->device);
    assert_int_equal(emulated_allocation_count(0), 0);
    free(fixture);
    return 0;
}

void plant(const char *faults)
{
    assert_int_equal(emulated_set_faults(faults), 0);
}

void *fixture_put(struct fixture *fixture, const void *values, size_t bytes)
{
    void *memory = NULL;

    if (fixture->on->allocate(fixture->device, &memory, bytes, &fixture->err) != 0)
        fail_msg("%s", fixture->err.message);
    if (values)
        fixture->on->upload(fixture->device, memory, values, bytes);
    return memory;
}

void fixture_wait(struct fixture *fixture)
{
    if (fixture->on->synchronize(fixture->device, &fixture->err) != 0)
        fail_msg("%s", fixture->err.message);
}
