/* Shapes beyond those of the conformance test, where backends take other ways: sums in several parts, rows
 * that need a whole block, lists of tensors that need several launches, more lanes than scratch memory holds.
 * Against float64, on the device named by RUNG_TEST_DEVICE (cpu:0 without). */
#include "base/random.h"
#include "kernels/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20240611

static struct device *device;
static const struct device_operations *operations;

static int set_up(void **state)
{
    const char *name = getenv("RUNG_TEST_DEVICE");
    struct error err = {0};

    (void)state;
    device = device_create(name ? name : "cpu:0", &err);
    if (!device) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    operations = device->operations;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    device_destroy(device);
    return 0;
}

/* Lanes on the host and on the device. Tensors are offsets into a lane; the state comes first. */
struct block {
    struct lanes lanes;
    char *host;
    void *memory;
};

static size_t place(struct block *block, int64_t elements)
{
    size_t at = block->lanes.stride;

    block->lanes.stride +=
        ((size_t)elements * sizeof(real) + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    return at;
}

static void *on_host(const struct block *block, int64_t lane, size_t at)
{
    return block->host + block->lanes.stride * (size_t)lane + at;
}
static float get(const struct block *block, int64_t lane, size_t at, int64_t i)
{
    return ((float *)on_host(block, lane, at))[i];
}
static void *on_device(const struct block *block, size_t at)
{
    return (char *)block->memory + at;
}

static void block_init(struct block *block, int64_t lanes)
{
    *block = (struct block){.lanes = {.count = lanes, .precision = DEVICE_FP32}};
    place(block, sizeof(struct lane_state) / sizeof(real));
}

/* Every element from -1 to 1, but that lane l has its own; states as they are when a trial starts. */
static void block_open(struct block *block)
{
    int64_t elements = (int64_t)(block->lanes.stride / sizeof(float)) * block->lanes.count;

    block->host = malloc(block->lanes.stride * (size_t)block->lanes.count);
    assert_non_null(block->host);
    for (int64_t i = 0; i < elements; i += 4) {
        struct philox words = philox4x32(SEED, (uint32_t)i, 0, 0, 0);
        for (int64_t k = 0; k < 4; k++)
            ((float *)block->host)[i + k] = (float)words.word[k] * 0x1p-31f - 1;
    }
    for (int64_t l = 0; l < block->lanes.count; l++)
        *(struct lane_state *)on_host(block, l, 0) =
            (struct lane_state){.learning_rate = 0.01 * (double)(l + 1),
                                .momentum = 0.9,
                                .beta1 = 0.9,
                                .beta2 = 0.99,
                                .epsilon = 1e-6,
                                .weight_decay = 0.05,
                                .updates = l,
                                .gradient_factor = 0.5,
                                .loss_scale = 1,
                                .finite = 1,
                                .label_smoothing = l % 2 ? 0.1 : 0};
}

static void settle(void)
{
    struct error err = {0};

    if (operations->synchronize(device, &err) != 0)
        fail_msg("%s", err.message);
}

static void to_device(struct block *block)
{
    struct error err = {0};
    size_t bytes = block->lanes.stride * (size_t)block->lanes.count;

    if (operations->allocate(device, &block->memory, bytes, &err) != 0)
        fail_msg("%s", err.message);
    operations->upload(device, block->memory, block->host, bytes);
    settle();
}

/* A copy of the block as the device left it; the caller's block keeps what went in. */
static struct block from_device(const struct block *block)
{
    struct block after = *block;
    size_t bytes = block->lanes.stride * (size_t)block->lanes.count;

    settle();
    after.host = malloc(bytes);
    assert_non_null(after.host);
    operations->download(device, after.host, block->memory, bytes);
    settle();
    return after;
}

static void block_release(struct block *block, struct block *after)
{
    operations->release(device, block->memory);
    free(block->host);
    free(after->host);
}

static void expect(const char *name, int64_t lane, int64_t i, double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s[%lld] of lane %lld is %.9g, expected %.9g within %.3g", name, (long long)i,
                 (long long)lane, found, expected, tolerance);
}

/* Softmax of one row: the largest, and the sum of exponentials. */
static double row_loss(const float *x, int64_t classes, int64_t label, double smoothing, double *slope)
{
    double most = x[0], sum = 0, loss = 0;

    for (int64_t c = 1; c < classes; c++)
        most = x[c] > most ? x[c] : most;
    for (int64_t c = 0; c < classes; c++)
        sum += exp((double)x[c] - most);
    for (int64_t c = 0; c < classes; c++) {
        double share = smoothing / (double)classes + (c == label ? 1 - smoothing : 0);
        loss += share * (most + log(sum) - (double)x[c]);
        slope[c] = exp((double)x[c] - most) / sum - share;
    }
    return loss;
}

static void check_softmax(int64_t rows, int64_t classes)
{
    struct block block;
    double *slope = malloc(sizeof(double) * (size_t)classes);

    assert_non_null(slope);
    block_init(&block, 2);
    size_t logits = place(&block, rows * classes), gradient = place(&block, rows * classes);
    size_t labels = place(&block, rows);
    block_open(&block);
    for (int64_t l = 0; l < block.lanes.count; l++)
        for (int64_t r = 0; r < rows; r++)
            ((int32_t *)on_host(&block, l, labels))[r] = (int32_t)((r * 7 + l) % classes);
    to_device(&block);
    operations->softmax_cross_entropy(device, block.lanes, on_device(&block, gradient),
                                      on_device(&block, logits), on_device(&block, labels), NULL, rows,
                                      classes, 0.25, on_device(&block, 0));
    struct block after = from_device(&block);
    for (int64_t l = 0; l < block.lanes.count; l++) {
        const struct lane_state *state = on_host(&after, l, 0);
        double loss = 0;
        for (int64_t r = 0; r < rows; r++) {
            const float *x = (float *)on_host(&block, l, logits) + r * classes;
            loss += row_loss(x, classes, (r * 7 + l) % classes, state->label_smoothing, slope);
            for (int64_t c = 0; c < classes; c++)
                expect("gradient", l, r * classes + c, get(&after, l, gradient, r * classes + c),
                       0.25 * slope[c], 1e-6 * fabs(slope[c]) + 1e-8);
        }
        expect("loss", l, 0, state->loss, loss, 1e-6 * loss);
    }
    block_release(&block, &after);
    free(slope);
}

static void test_softmax(void **state)
{
    (void)state;
    check_softmax(1300, 10);
    check_softmax(700, 40);
    check_softmax(30, 1900);
    check_softmax(5, 3000);
}

static void check_layer_norm(int64_t rows, int64_t columns)
{
    struct block block;

    block_init(&block, 2);
    size_t x = place(&block, rows * columns), y = place(&block, rows * columns),
           dy = place(&block, rows * columns);
    size_t saved = place(&block, 2 * rows), gain = place(&block, columns), offset = place(&block, columns);
    size_t dgain = place(&block, columns), doffset = place(&block, columns);
    block_open(&block);
    to_device(&block);
    operations->layer_norm(device, block.lanes, on_device(&block, y), on_device(&block, saved),
                           on_device(&block, x), on_device(&block, gain), on_device(&block, offset), rows,
                           columns);
    operations->layer_norm_backward(device, block.lanes, on_device(&block, dy), on_device(&block, dgain),
                                    on_device(&block, doffset), on_device(&block, dy), on_device(&block, x),
                                    on_device(&block, saved), on_device(&block, gain), rows, columns, false);
    struct block after = from_device(&block);
    double *total = calloc((size_t)columns, 2 * sizeof(double));
    assert_non_null(total);
    for (int64_t l = 0; l < block.lanes.count; l++) {
        memset(total, 0, (size_t)columns * 2 * sizeof(double));
        for (int64_t r = 0; r < rows; r++) {
            double mean = 0, variance = 0, sum = 0, products = 0;
            int64_t row = r * columns;
            for (int64_t j = 0; j < columns; j++)
                mean += (double)get(&block, l, x, row + j) / (double)columns;
            for (int64_t j = 0; j < columns; j++)
                variance += pow((double)get(&block, l, x, row + j) - mean, 2) / (double)columns;
            double inverse = 1 / sqrt(variance + 1e-5);
            for (int64_t j = 0; j < columns; j++) {
                double normal = ((double)get(&block, l, x, row + j) - mean) * inverse;
                double d = (double)get(&block, l, dy, row + j), h = d * (double)get(&block, l, gain, j);
                sum += h / (double)columns;
                products += h * normal / (double)columns;
                total[2 * j] += d * normal;
                total[2 * j + 1] += d;
            }
            for (int64_t j = 0; j < columns; j++) {
                double normal = ((double)get(&block, l, x, row + j) - mean) * inverse;
                double h = (double)get(&block, l, dy, row + j) * (double)get(&block, l, gain, j);
                expect("y", l, row + j, get(&after, l, y, row + j),
                       normal * (double)get(&block, l, gain, j) + (double)get(&block, l, offset, j), 4e-6);
                expect("dx", l, row + j, get(&after, l, dy, row + j), inverse * (h - sum - normal * products),
                       4e-6);
            }
        }
        for (int64_t j = 0; j < columns; j++) {
            expect("dgain", l, j, get(&after, l, dgain, j), total[2 * j], 2e-7 * (double)rows + 2e-6);
            expect("doffset", l, j, get(&after, l, doffset, j), total[2 * j + 1], 2e-7 * (double)rows + 2e-6);
        }
    }
    block_release(&block, &after);
    free(total);
}

static void test_layer_norm(void **state)
{
    (void)state;
    check_layer_norm(3, 5000);  /* long rows */
    check_layer_norm(2100, 37); /* column sums in parts */
}

/* The last group has one row more, and running statistics move by each group in its order. */
static void test_batch_norm(void **state)
{
    const int64_t group = 3, groups = 300, rows = group * groups + 1, columns = 35;
    struct block block;

    (void)state;
    block_init(&block, 2);
    size_t x = place(&block, rows * columns), y = place(&block, rows * columns),
           dy = place(&block, rows * columns);
    size_t dx = place(&block, rows * columns), saved = place(&block, 2 * groups * columns);
    size_t running = place(&block, 2 * columns), gain = place(&block, columns),
           offset = place(&block, columns);
    size_t dgain = place(&block, columns), doffset = place(&block, columns);
    block_open(&block);
    to_device(&block);
    operations->batch_norm(device, block.lanes, on_device(&block, y), on_device(&block, saved),
                           on_device(&block, running), on_device(&block, x), on_device(&block, gain),
                           on_device(&block, offset), rows, columns, group);
    operations->batch_norm_backward(device, block.lanes, on_device(&block, dx), on_device(&block, dgain),
                                    on_device(&block, doffset), on_device(&block, dy), on_device(&block, x),
                                    on_device(&block, saved), on_device(&block, gain), rows, columns, group,
                                    true);
    struct block after = from_device(&block);
    for (int64_t l = 0; l < block.lanes.count; l++)
        for (int64_t j = 0; j < columns; j++) {
            double average = get(&block, l, running, j), spread = get(&block, l, running, columns + j);
            double g = get(&block, l, gain, j), o = get(&block, l, offset, j);
            double totals[2] = {get(&block, l, dgain, j), get(&block, l, doffset, j)};
            for (int64_t k = 0; k < groups; k++) {
                int64_t first = k * group, end = k == groups - 1 ? rows : first + group;
                double n = (double)(end - first), mean = 0, variance = 0, sum = 0, products = 0;
                for (int64_t r = first; r < end; r++)
                    mean += (double)get(&block, l, x, r * columns + j) / n;
                for (int64_t r = first; r < end; r++)
                    variance += pow((double)get(&block, l, x, r * columns + j) - mean, 2) / n;
                double inverse = 1 / sqrt(variance + 1e-5);
                average += 0.1 * (mean - average);
                spread += 0.1 * (variance * n / (n - 1) - spread);
                for (int64_t r = first; r < end; r++) {
                    double d = get(&block, l, dy, r * columns + j);
                    sum += d;
                    products += d * ((double)get(&block, l, x, r * columns + j) - mean) * inverse;
                }
                totals[0] += products;
                totals[1] += sum;
                for (int64_t r = first; r < end; r++) {
                    int64_t i = r * columns + j;
                    double normal = ((double)get(&block, l, x, i) - mean) * inverse,
                           d = get(&block, l, dy, i);
                    double slope = g * inverse * (d - sum / n - normal * products / n);
                    expect("y", l, i, get(&after, l, y, i), normal * g + o, 1e-6 * (1 + inverse));
                    expect("dx", l, i, get(&after, l, dx, i), slope, 1e-6 * inverse * (1 + inverse));
                }
            }
            expect("running mean", l, j, get(&after, l, running, j), average, 1e-6);
            expect("running variance", l, j, get(&after, l, running, columns + j), spread, 1e-6);
            expect("dgain", l, j, get(&after, l, dgain, j), totals[0], 2e-4);
            expect("doffset", l, j, get(&after, l, doffset, j), totals[1], 1e-4);
        }
    block_release(&block, &after);
}

static void test_measure_gradient(void **state)
{
    const int64_t count = 150001;
    struct block block;

    (void)state;
    block_init(&block, 2);
    size_t gradient = place(&block, count);
    block_open(&block);
    to_device(&block);
    operations->measure_gradient(device, block.lanes, on_device(&block, gradient), count,
                                 on_device(&block, 0));
    bool finite[2] = {false, false};
    operations->finite(device, block.lanes, finite, on_device(&block, gradient), count);
    struct block after = from_device(&block);
    for (int64_t l = 0; l < 2; l++) {
        double squares = 0;
        for (int64_t i = 0; i < count; i++)
            squares += (double)get(&block, l, gradient, i) * (double)get(&block, l, gradient, i);
        const struct lane_state *found = on_host(&after, l, 0);
        expect("norm", l, 0, found->gradient_norm, sqrt(squares), 1e-7 * sqrt(squares));
        assert_int_equal(found->finite, 1);
        assert_true(finite[l]);
    }
    block_release(&block, &after);
}

enum { PARAMETER_TENSORS = 140 };

/* One tensor of lamb (trusted: of the decayed part) or lars, without momentum. */
static void expect_tensor(const struct block *block, const struct block *after, int64_t l, const size_t at[4],
                          int64_t begin, int64_t end, bool trusted, bool lamb)
{
    const struct lane_state *s = on_host(block, l, 0);
    double decay = trusted ? s->weight_decay : 0, t = (double)(s->updates + 1), norm[2] = {0, 0}, ratio = 1;

    for (int64_t pass = 0; pass < 2; pass++) {
        for (int64_t i = begin; i < end; i++) {
            double w = get(block, l, at[0], i), g = (double)get(block, l, at[1], i) * s->gradient_factor,
                   u = g;
            if (lamb) {
                double m = s->beta1 * (double)get(block, l, at[2], i) + (1 - s->beta1) * g;
                double v = s->beta2 * fabs((double)get(block, l, at[3], i)) + (1 - s->beta2) * g * g;
                u = m / (1 - pow(s->beta1, t)) / (sqrt(v / (1 - pow(s->beta2, t))) + s->epsilon) + decay * w;
            }
            norm[0] += pass ? 0 : w * w;
            norm[1] += pass ? 0 : u * u;
            u = lamb ? u : g + decay * w;
            if (pass)
                expect("weight", l, i, get(after, l, at[0], i), w - s->learning_rate * ratio * u,
                       1e-6 * (1 + s->learning_rate * ratio * fabs(u)));
        }
        double weight = sqrt(norm[0]), step = sqrt(norm[1]);
        if (trusted)
            ratio = lamb ? weight / step : 0.001 * weight / (step + decay * weight + 1e-8);
    }
}

/* Many tensors, one of them in parts, and more lanes than find room at once. */
static void check_trust(enum device_optimizer optimizer)
{
    const int64_t lanes = 40, rest = 77;
    int64_t end[PARAMETER_TENSORS], decayed = 0;
    struct block block;
    size_t at[4];

    for (int i = 0; i < PARAMETER_TENSORS; i++)
        end[i] = decayed += i == 70 ? 9001 : 1 + i % 40;
    block_init(&block, lanes);
    for (int i = 0; i < 4; i++)
        at[i] = place(&block, decayed + rest);
    block_open(&block);
    for (int64_t l = 0; l < lanes; l++) /* squares are not negative */
        for (int64_t i = 0; i < decayed + rest; i++)
            ((float *)on_host(&block, l, at[3]))[i] = fabsf(get(&block, l, at[3], i));
    to_device(&block);
    bool lamb = optimizer == DEVICE_LAMB;
    struct device_parameters parameters = {
        .weight = on_device(&block, at[0]),
        .gradient = on_device(&block, at[1]),
        .count = decayed + rest,
        .moment = {lamb ? on_device(&block, at[2]) : NULL, lamb ? on_device(&block, at[3]) : NULL},
        .decayed = decayed,
        .tensor_end = end,
        .tensors = PARAMETER_TENSORS};
    operations->update(device, block.lanes, optimizer, &parameters, on_device(&block, 0));
    struct block after = from_device(&block);
    for (int64_t l = 0; l < lanes; l++) {
        for (int i = 0; i < PARAMETER_TENSORS; i++)
            expect_tensor(&block, &after, l, at, i ? end[i - 1] : 0, end[i], true, lamb);
        expect_tensor(&block, &after, l, at, decayed, decayed + rest, false, lamb);
    }
    block_release(&block, &after);
}

static void test_trust(void **state)
{
    (void)state;
    check_trust(DEVICE_LAMB);
    check_trust(DEVICE_LARS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),    cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_batch_norm), cmocka_unit_test(test_measure_gradient),
        cmocka_unit_test(test_trust),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
