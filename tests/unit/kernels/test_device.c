/* The CPU device beyond what any device must do (conformance.c): its table of products, errors, names. */
#include "kernels/device.h"

#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct device *device;

static int device_setup(void **state)
{
    struct error err = {0};

    (void)state;
    device = device_create("cpu:0", &err);
    return device ? 0 : -1;
}

static int device_teardown(void **state)
{
    (void)state;
    device_destroy(device);
    return 0;
}

static const struct lanes one = {.count = 1};

static real *make(int64_t count, uint32_t first)
{
    struct error err;
    void *memory;

    assert_int_equal(device->operations->allocate(device, &memory, (size_t)count * sizeof(real), &err), 0);
    real *x = memory;
    for (int64_t i = 0; i < count; i++)
        x[i] = (real)(philox4x32(7, first + (uint32_t)i, 0, 0, 0).word[0] / 2147483648.0 - 1);
    return x;
}

static void drop(real *x)
{
    device->operations->release(device, x);
}

static void settle(void)
{
    struct error err = {0};
    if (device->operations->synchronize(device, &err) != 0)
        fail_msg("%s", err.message);
}

/* |x - ref| <= K 2^-24 sum |a||b|: what any order of float32 sums keeps (Higham 2002, section 3.1). */
static void assert_product(real found, double expected, double absolute, int64_t k)
{
    double unit = sizeof(real) == 4 ? 0x1p-24 : 0x1p-53;
    if (!(fabs(found - expected) <= (double)(k + 2) * unit * absolute))
        fail_msg("product is %.9g, expected %.9g", (double)found, expected);
}

static void check_forward(int64_t rows, int64_t inputs, int64_t outputs)
{
    real *x = make(rows * inputs, 0), *w = make(inputs * outputs, 5000), *b = make(outputs, 90000);
    real *y = make(rows * outputs, 0);

    device->operations->linear_forward(device, one, y, NULL, x, w, b, rows, inputs, outputs, DEVICE_IDENTITY,
                                       false);
    settle();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < outputs; j++) {
            double sum = b[j], absolute = fabs((double)b[j]);
            for (int64_t k = 0; k < inputs; k++) {
                sum += (double)x[i * inputs + k] * (double)w[k * outputs + j];
                absolute += fabs((double)x[i * inputs + k] * (double)w[k * outputs + j]);
            }
            assert_product(y[i * outputs + j], sum, absolute, inputs);
        }
    drop(x), drop(w), drop(b), drop(y);
}

/* More shapes than the table of compiled products holds. */
static void test_many_shapes(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows <= 40; rows++)
        for (int64_t outputs = 1; outputs <= 24; outputs++)
            check_forward(rows, 3, outputs);
    check_forward(1, 3, 1);
}

/* An operation that cannot be done is told once, by the next synchronize. */
static void test_failures_wait_for_synchronize(void **state)
{
    struct error err = {0};
    real x[4] = {0};

    (void)state;
    device->operations->linear_backward_data(device, one, x, x, x, -1, 2, 2);
    device->operations->linear_backward_data(device, one, x, x, x, 1, 1, 1);
    assert_int_equal(device->operations->synchronize(device, &err), -1);
    assert_int_equal(err.code, ERROR_INTERNAL);
    settle();
}

static void test_names(void **state)
{
    static const char *const wrong[] = {"", "cpu:", "cpu:x", "tpu:0", "cp:0", "cpux", ":1"};
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        err.code = ERROR_NONE;
        assert_null(device_create(wrong[i], &err));
        assert_int_equal(err.code, ERROR_RESOURCE);
    }
    struct device *another = device_create("cpu:13", NULL);
    assert_non_null(another);
    assert_string_equal(another->name, device->name);
    assert_int_equal(strncmp(another->name, "cpu/", 4), 0);
    device_destroy(another);
    device_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_failures_wait_for_synchronize),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
