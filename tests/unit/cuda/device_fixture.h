/* One emulated device for each test, in a world of its own. */
#ifndef TESTS_UNIT_CUDA_DEVICE_FIXTURE_H
#define TESTS_UNIT_CUDA_DEVICE_FIXTURE_H

#include "kernels/plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define FIXTURE_MEMORY ((size_t)256 << 20) /* of each device */

struct fixture {
    struct device *device;
    const struct device_operations *on;
    struct error err;
};

/* For cmocka: *state is a fixture with device 0. Teardown checks that nothing is left allocated. */
int fixture_open(void **state);
int fixture_close(void **state);
/* The same for tests that make their devices themselves: an empty world, no device. */
int fixture_empty(void **state);

/* emulated_set_faults, which must understand. */
void plant(const char *faults);

/* Memory on the device with these values; must succeed. */
void *fixture_put(struct fixture *fixture, const void *values, size_t bytes);
/* Waits; must succeed. */
void fixture_wait(struct fixture *fixture);

/* fp32, one lane. */
extern const struct lanes one_lane;

#define assert_contains(text, part)                                                                          \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("'%s' does not say '%s'", text, part);                                                  \
    } while (0)

#endif
