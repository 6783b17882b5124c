/* The CPU device through its table: products of all kinds, lanes, gathers, memory, errors. */
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

    device->operations->linear_forward(device, one, y, NULL, x, w, b, rows, inputs, outputs, DEVICE_IDENTITY);
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

static void check_backward_data(int64_t rows, int64_t inputs, int64_t outputs)
{
    real *dy = make(rows * outputs, 0), *w = make(inputs * outputs, 5000), *dx = make(rows * inputs, 0);

    device->operations->linear_backward_data(device, one, dx, dy, w, rows, inputs, outputs);
    settle();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < inputs; k++) {
            double sum = 0, absolute = 0;
            for (int64_t j = 0; j < outputs; j++) {
                sum += (double)dy[i * outputs + j] * (double)w[k * outputs + j];
                absolute += fabs((double)dy[i * outputs + j] * (double)w[k * outputs + j]);
            }
            assert_product(dx[i * inputs + k], sum, absolute, outputs);
        }
    drop(dy), drop(w), drop(dx);
}

static void check_backward_parameters(int64_t rows, int64_t inputs, int64_t outputs, bool accumulate)
{
    real *x = make(rows * inputs, 0), *dy = make(rows * outputs, 5000), *dw = make(inputs * outputs, 9000);
    real *db = make(outputs, 300), *w0 = make(inputs * outputs, 9000), *b0 = make(outputs, 300);

    device->operations->linear_backward_parameters(device, one, dw, db, x, dy, rows, inputs, outputs,
                                                   accumulate);
    settle();
    for (int64_t k = 0; k <= inputs; k++) /* row `inputs` stands for the bias: a column of ones in x */
        for (int64_t j = 0; j < outputs; j++) {
            double before = k < inputs ? w0[k * outputs + j] : b0[j];
            double sum = accumulate ? before : 0, absolute = fabs(sum);
            for (int64_t i = 0; i < rows; i++) {
                double term = (k < inputs ? x[i * inputs + k] : 1) * (double)dy[i * outputs + j];
                sum += term;
                absolute += fabs(term);
            }
            assert_product(k < inputs ? dw[k * outputs + j] : db[j], sum, absolute, rows);
        }
    drop(x), drop(dy), drop(dw), drop(db), drop(w0), drop(b0);
}

static void test_products(void **state)
{
    const int64_t shapes[][3] = {{1, 1, 1},   {1, 5, 3},    {3, 1, 7},    {7, 3, 1},   {32, 64, 128},
                                 {22, 9, 10}, {17, 33, 65}, {256, 10, 2}, {5, 300, 49}};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        check_forward(shapes[i][0], shapes[i][1], shapes[i][2]);
        check_backward_data(shapes[i][0], shapes[i][1], shapes[i][2]);
        check_backward_parameters(shapes[i][0], shapes[i][1], shapes[i][2], false);
        check_backward_parameters(shapes[i][0], shapes[i][1], shapes[i][2], true);
    }
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

enum { LANES = 3, ROWS = 5, INPUTS = 7, OUTPUTS = 6 };

/* One lane's tensors. */
struct lane {
    _Alignas(DEVICE_ALIGNMENT) real x[ROWS * INPUTS];
    real w[INPUTS * OUTPUTS], b[OUTPUTS];
    real y[ROWS * OUTPUTS], before[ROWS * OUTPUTS], mask[ROWS * OUTPUTS], gradient[ROWS * OUTPUTS];
    real dw[INPUTS * OUTPUTS + OUTPUTS], dx[ROWS * INPUTS];
    real mean[INPUTS * OUTPUTS], square[INPUTS * OUTPUTS], velocity[INPUTS * OUTPUTS], sgd[INPUTS * OUTPUTS];
    double loss;
    int32_t index[ROWS], label[ROWS];
};

static const struct adamw_step adamw_steps[LANES] = {
    {1e-2, 0.9, 0.99, 1e-8, 0.1, 1}, {3e-2, 0.8, 0.999, 1e-6, 0, 7}, {1e-3, 0.95, 0.9, 1e-8, 0.3, 2}};
static const struct sgd_step sgd_steps[LANES] = {
    {0.1, 0.9, 0.01, true}, {0.2, 0.5, 0, false}, {0.3, 0, 0.2, false}};
static const struct dropout_draw draws[LANES] = {{1, 4, 0.5}, {2, 4, 0.1}, {3, 9, 0.8}};

/* Every operation once, on lanes from `first` on. */
static void run_lanes(struct lane *lane, int first, int count, const float *source, const int32_t *labels,
                      bool *finite)
{
    const struct device_operations *o = device->operations;
    struct lanes lanes = {.count = count, .stride = sizeof(struct lane)};

    o->gather(device, lanes, lane->x, source, lane->index, ROWS, INPUTS);
    o->gather_labels(device, lanes, lane->label, labels, lane->index, ROWS);
    o->linear_forward(device, lanes, lane->y, lane->before, lane->x, lane->w, lane->b, ROWS, INPUTS, OUTPUTS,
                      DEVICE_GELU);
    o->dropout(device, lanes, lane->y, lane->mask, 2, ROWS, OUTPUTS, 1, draws + first);
    o->softmax_cross_entropy(device, lanes, &lane->loss, lane->gradient, lane->y, lane->label, ROWS, OUTPUTS,
                             0.2);
    o->activation_backward(device, lanes, lane->gradient, lane->before, lane->mask, ROWS * OUTPUTS,
                           DEVICE_GELU);
    o->linear_backward_parameters(device, lanes, lane->dw, lane->dw + INPUTS * OUTPUTS, lane->x,
                                  lane->gradient, ROWS, INPUTS, OUTPUTS, false);
    o->linear_backward_data(device, lanes, lane->dx, lane->gradient, lane->w, ROWS, INPUTS, OUTPUTS);
    o->copy(device, lanes, lane->sgd, lane->w, sizeof(lane->w));
    o->sgd(device, lanes, lane->sgd, lane->dw, lane->velocity, INPUTS * OUTPUTS, 20, sgd_steps + first);
    o->adamw(device, lanes, lane->w, lane->dw, lane->mean, lane->square, INPUTS * OUTPUTS, 20,
             adamw_steps + first);
    o->squared_error(device, lanes, &lane->loss, lane->y, lane->gradient, lane->before, ROWS * OUTPUTS, 0.5);
    o->finite(device, lanes, finite, lane->w, INPUTS * OUTPUTS);
    o->zero(device, lanes, lane->before, sizeof(lane->before));
    settle();
}

static void test_a_lane_equals_the_trial_alone(void **state)
{
    static struct lane together[LANES], alone[LANES];
    bool finite[LANES], finite_alone;
    float source[20 * INPUTS];
    int32_t labels[20];

    (void)state;
    for (uint32_t i = 0; i < 20 * INPUTS; i++)
        source[i] = (float)(philox4x32(3, i, 0, 0, 0).word[0] / 2147483648.0 - 1);
    for (int i = 0; i < 20; i++)
        labels[i] = i % OUTPUTS;
    for (uint32_t l = 0; l < LANES; l++) {
        real *w = make(INPUTS * OUTPUTS + OUTPUTS, 100 * l);
        memcpy(together[l].w, w, sizeof(together[l].w));
        memcpy(together[l].b, w + INPUTS * OUTPUTS, sizeof(together[l].b));
        drop(w);
        for (int i = 0; i < ROWS; i++)
            together[l].index[i] = (int32_t)(i * 7 + (int)l * 3) % 20;
    }
    together[1].w[3] = NAN; /* must stay in its lane */
    memcpy(alone, together, sizeof(together));
    run_lanes(together, 0, LANES, source, labels, finite);
    for (int l = 0; l < LANES; l++) {
        run_lanes(&alone[l], l, 1, source, labels, &finite_alone);
        assert_memory_equal(&alone[l], &together[l], sizeof(struct lane));
        assert_int_equal(finite[l], finite_alone);
        assert_int_equal(finite[l], l != 1);
    }
}

static void test_gather_takes_rows_by_index(void **state)
{
    const float source[] = {0, 1, 10, 11, 20, 21};
    const int32_t labels[] = {5, 6, 7}, index[] = {2, 0, 2};
    int32_t found[3];
    real rows[6];

    (void)state;
    device->operations->gather(device, one, rows, source, index, 3, 2);
    device->operations->gather_labels(device, one, found, labels, index, 3);
    settle();
    assert_true(rows[0] == 20 && rows[1] == 21 && rows[2] == 0 && rows[4] == 20);
    assert_true(found[0] == 7 && found[1] == 5 && found[2] == 7);
    device->operations->gather(device, one, rows, source + 2, NULL, 2, 2);
    device->operations->gather_labels(device, one, found, labels + 1, NULL, 2);
    settle();
    assert_true(rows[0] == 10 && rows[3] == 21 && found[0] == 6 && found[1] == 7);
}

static void test_memory(void **state)
{
    const struct device_operations *o = device->operations;
    struct error err = {0};
    void *memory, *copy;
    const void *shared;
    char bytes[100], back[100] = {0};

    (void)state;
    assert_int_equal(o->allocate(device, &memory, 1000, &err), 0);
    assert_int_equal(o->allocate(device, &copy, 1000, &err), 0);
    assert_int_equal((uintptr_t)memory % DEVICE_ALIGNMENT, 0);
    memset(bytes, 3, sizeof(bytes));
    o->upload(device, memory, bytes, sizeof(bytes));
    o->copy(device, one, copy, memory, 1000);
    o->download(device, back, copy, sizeof(back));
    settle();
    assert_memory_equal(bytes, back, sizeof(bytes));
    o->zero(device, one, copy, 1000);
    o->download(device, back, copy, sizeof(back));
    settle();
    assert_int_equal(back[99], 0);
    assert_int_equal(o->share(device, &shared, bytes, sizeof(bytes), &err), 0);
    o->download(device, back, shared, sizeof(back));
    settle();
    assert_memory_equal(bytes, back, sizeof(bytes));
    o->unshare(device, shared);
    o->release(device, memory);
    o->release(device, copy);
    assert_int_equal(o->allocate(device, &memory, SIZE_MAX - 3, &err), -1);
    assert_int_equal(err.code, ERROR_MEMORY);
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
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_a_lane_equals_the_trial_alone),
        cmocka_unit_test(test_gather_takes_rows_by_index),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_failures_wait_for_synchronize),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
