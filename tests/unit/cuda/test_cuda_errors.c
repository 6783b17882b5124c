/* What is said when CUDA fails: at once, later, and for good. */
#include "tests/unit/cuda/device_fixture.h"

#include "tests/emulated_gpu/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64 };

static void add_once(struct fixture *f)
{
    float *y = fixture_put(f, NULL, COUNT * sizeof *y), *x = fixture_put(f, NULL, COUNT * sizeof *x);

    f->on->add(f->device, one_lane, y, x, COUNT);
    f->on->release(f->device, y);
    f->on->release(f->device, x);
}

/* The next synchronize fails as ERROR_RESOURCE, says CUDA's name, and so does each one after it. */
static void assert_lost(struct fixture *f, const char *name)
{
    for (int i = 0; i < 3; i++) {
        f->err.code = ERROR_NONE;
        assert_int_equal(f->on->synchronize(f->device, &f->err), -1);
        assert_int_equal(f->err.code, ERROR_RESOURCE);
        assert_contains(f->err.message, "emulated:0: ");
        assert_contains(f->err.message, name);
        assert_contains(f->err.message, "can no longer be used");
    }
}

/* A kernel that fails is known only later; what was asked for after it is not done either. */
static void a_failed_kernel(void **state)
{
    struct fixture *f = *state;
    void *memory = NULL;
    float value = 9;

    plant("asynchronous:kernel=add");
    add_once(f);
    f->on->download(f->device, &value, &value, 0); /* succeeds or not, no one may hang */
    assert_lost(f, "cudaErrorLaunchFailure");
    assert_int_equal(f->on->allocate(f->device, &memory, 64, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_RESOURCE);
    assert_contains(f->err.message, "cudaErrorLaunchFailure");
    f->on->destroy(f->device); /* what is lost can still be put away */
    f->device = NULL;
    emulated_reset();
}

static void an_illegal_address(void **state)
{
    struct fixture *f = *state;

    plant("sticky:launch=1");
    add_once(f);
    assert_lost(f, "cudaErrorIllegalAddress");
    emulated_reset();
    f->on->destroy(f->device);
    f->device = NULL;
}

static void a_lost_device(void **state)
{
    struct fixture *f = *state;
    struct device *other;

    plant("lost:launch=2:device=0");
    add_once(f);
    fixture_wait(f);
    add_once(f);
    assert_lost(f, "cudaErrorDevicesUnavailable");
    assert_null(rung_device_plugin()->create(0, &f->err));
    assert_contains(f->err.message, "emulated:0");
    other = rung_device_plugin()->create(1, &f->err); /* the machine's others go on */
    assert_non_null(other);
    other->operations->destroy(other);
    f->on->destroy(f->device);
    f->device = NULL;
    emulated_reset();
}

static void an_ecc_error(void **state)
{
    struct fixture *f = *state;

    plant("ecc:launch=1");
    add_once(f);
    assert_lost(f, "cudaErrorECCUncorrectable");
    f->on->destroy(f->device);
    f->device = NULL;
    emulated_reset();
}

/* A loss is told in place of the small failure before it. */
static void the_loss_explains_the_rest(void **state)
{
    struct fixture *f = *state;
    float value = 0;

    f->on->download(f->device, &value, &value, sizeof value);
    plant("sticky:launch=1");
    add_once(f);
    assert_lost(f, "cudaErrorIllegalAddress");
    f->on->destroy(f->device);
    f->device = NULL;
    emulated_reset();
}

/* A wrong argument is a bug of ours, told once, and the device goes on. */
static void a_wrong_pointer(void **state)
{
    struct fixture *f = *state;
    float value = 5;

    f->on->download(f->device, &value, &value, sizeof value);
    assert_float_equal(value, 0, 0); /* the same in every run */
    assert_int_equal(f->on->synchronize(f->device, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_INTERNAL);
    assert_contains(f->err.message, "cudaErrorInvalidValue");
    assert_contains(f->err.message, "copying from the device");
    add_once(f);
    fixture_wait(f);
}

static void the_first_failure_is_kept(void **state)
{
    struct fixture *f = *state;
    float value = 0;

    f->on->download(f->device, &value, &value, sizeof value);
    f->on->upload(f->device, &value, &value, sizeof value);
    assert_int_equal(f->on->synchronize(f->device, &f->err), -1);
    assert_contains(f->err.message, "copying from the device");
    fixture_wait(f);
}

/* What a failed wait leaves undefined on the host is false, not what was there. */
static void answers_of_a_lost_device(void **state)
{
    struct fixture *f = *state;
    real *x = fixture_put(f, NULL, COUNT * sizeof *x);
    bool finite = true;

    f->on->finite(f->device, one_lane, &finite, x, COUNT);
    fixture_wait(f);
    assert_true(finite);
    plant("sticky:launch=1");
    f->on->finite(f->device, one_lane, &finite, x, COUNT);
    assert_lost(f, "cudaErrorIllegalAddress");
    assert_false(finite);
    f->on->destroy(f->device);
    f->device = NULL;
    emulated_reset();
}

/* Whichever launch of a step fails, it is told, and nothing hangs. */
static void any_launch_may_fail(void **state)
{
    struct fixture *f = *state;
    int failures = 0;

    (void)f;
    for (int n = 1, clean = 0; !clean; n++) {
        char faults[32];
        struct device *device;
        void *x = NULL;

        assert_true(n < 20);
        emulated_reset();
        snprintf(faults, sizeof faults, "sticky:launch=%d", n);
        plant(faults);
        device = rung_device_plugin()->create(0, &f->err);
        assert_non_null(device);
        f->on = device->operations;
        assert_int_equal(f->on->allocate(device, &x, 4096, &f->err), 0);
        f->on->add(device, one_lane, x, (char *)x + 1024, 16);
        f->on->linear_forward(device, one_lane, x, NULL, (char *)x + 1024, (char *)x + 2048, x, 4, 4, 4,
                              DEVICE_TANH, false);
        f->on->linear_backward_parameters(device, one_lane, x, (real *)((char *)x + 3072), (char *)x + 1024,
                                          (char *)x + 2048, 4, 4, 4, true);
        clean = f->on->synchronize(device, &f->err) == 0;
        failures += !clean;
        if (!clean)
            assert_contains(f->err.message, "cudaErrorIllegalAddress");
        f->on->destroy(device);
    }
    assert_true(failures >= 5); /* add, product, bias, product, column sums */
    emulated_reset();
}

static void assert_no_devices(const char *faults, const char *part)
{
    struct error err = {0};

    emulated_reset();
    plant(faults);
    assert_int_equal(rung_device_plugin()->count(&err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_contains(err.message, part);
    assert_null(rung_device_plugin()->create(0, &err));
    assert_contains(err.message, part);
    emulated_reset();
}

static void machines_without_devices(void **state)
{
    (void)state;
    assert_no_devices("no_device", "sees no GPU");
    assert_no_devices("old_driver", "too old");
}

static void devices_that_are_not_there(void **state)
{
    struct device_description_of description;
    struct error err = {0};

    (void)state;
    assert_int_equal(rung_device_plugin()->count(&err), 4);
    assert_null(rung_device_plugin()->create(4, &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_contains(err.message, "emulated:4, only 4");
    assert_int_equal(rung_device_plugin()->describe(-1, &description, &err), -1);
    assert_int_equal(rung_device_plugin()->describe(3, &description, &err), 0);
    assert_string_equal(description.id, "emulated:3");
    assert_int_equal(description.memory_bytes, FIXTURE_MEMORY);
    assert_int_equal(description.major, 9);
    assert_true(description.bf16);
}

static void devices_that_are_too_old(void **state)
{
    struct error err = {0};

    (void)state;
    setenv("RUNG_EMULATED_CAPABILITY", "7.5", 1);
    emulated_reset();
    assert_null(rung_device_plugin()->create(0, &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_contains(err.message, "compute capability 7.5; 8.0 is the oldest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_kernel, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(an_illegal_address, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_lost_device, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(an_ecc_error, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(the_loss_explains_the_rest, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_wrong_pointer, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(the_first_failure_is_kept, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(answers_of_a_lost_device, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(any_launch_may_fail, fixture_empty, fixture_close),
        cmocka_unit_test_setup_teardown(machines_without_devices, fixture_empty, fixture_close),
        cmocka_unit_test_setup_teardown(devices_that_are_not_there, fixture_empty, fixture_close),
        cmocka_unit_test_setup_teardown(devices_that_are_too_old, fixture_empty, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
