/* Products of a CUDA device beyond what every backend is asked for: layers larger than the workspace,
 * operands at odd addresses, lanes against the trial alone, and more shapes than plans are kept. */
#include "tests/unit/cuda/device_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Small integers: exact in every precision, and so are their sums. */
static float small(int64_t i)
{
    return (float)((i * 7 + i / 5) % 9 - 4);
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16); /* small integers lose nothing */
}

static float from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One layer: x, weight, bias, y of each lane behind each other, the first at `shift` bytes from an aligned
 * address. Lane l's x is small(i + l). */
struct layer {
    int64_t rows, inputs, outputs;
    struct lanes lanes;
    size_t shift, x, weight, bias, y; /* offsets in a lane */
    char *memory;
};

static size_t aligned(size_t bytes)
{
    return (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
}

static struct layer layer_of(struct fixture *f, enum device_precision precision, int64_t lanes, int64_t rows,
                             int64_t inputs, int64_t outputs, size_t shift)
{
    struct layer layer = {.rows = rows, .inputs = inputs, .outputs = outputs, .shift = shift};
    size_t size = device_stored_size(precision);
    char *host;

    layer.x = shift;
    layer.weight = aligned(layer.x + (size_t)(rows * inputs) * size) + shift;
    layer.bias = aligned(layer.weight + (size_t)(inputs * outputs) * size) + 4;
    layer.y = aligned(layer.bias + (size_t)outputs * 4) + shift;
    layer.lanes = (struct lanes){.count = lanes,
                                 .stride = aligned(layer.y + (size_t)(rows * outputs) * 4) + 512,
                                 .precision = precision};
    host = calloc((size_t)lanes, layer.lanes.stride);
    for (int64_t l = 0; l < lanes; l++) {
        char *lane = host + (size_t)l * layer.lanes.stride;
        for (int64_t i = 0; i < rows * inputs; i++)
            if (size == 2)
                ((uint16_t *)(lane + layer.x))[i] = to_bf16(small(i + l));
            else
                ((float *)(lane + layer.x))[i] = small(i + l);
        for (int64_t i = 0; i < inputs * outputs; i++)
            if (size == 2)
                ((uint16_t *)(lane + layer.weight))[i] = to_bf16(small(3 * i + 1));
            else
                ((float *)(lane + layer.weight))[i] = small(3 * i + 1);
        for (int64_t j = 0; j < outputs; j++)
            ((float *)(lane + layer.bias))[j] = small(j + 2);
    }
    layer.memory = fixture_put(f, host, (size_t)lanes * layer.lanes.stride);
    free(host);
    return layer;
}

/* x w + b of lane l, exactly. */
static double expected_at(const struct layer *layer, int64_t l, int64_t row, int64_t j)
{
    double sum = small(j + 2);

    for (int64_t k = 0; k < layer->inputs; k++)
        sum += (double)small(row * layer->inputs + k + l) * small(3 * (k * layer->outputs + j) + 1);
    return sum;
}

static void forward(struct fixture *f, const struct layer *layer, enum device_activation function, bool wide)
{
    char *m = layer->memory;

    f->on->linear_forward(f->device, layer->lanes, m + layer->y, NULL, m + layer->x, m + layer->weight,
                          (const real *)(m + layer->bias), layer->rows, layer->inputs, layer->outputs,
                          function, wide);
}

/* y of all lanes, on the host; to be freed. */
static char *results(struct fixture *f, const struct layer *layer)
{
    size_t bytes = (size_t)layer->lanes.count * layer->lanes.stride;
    char *host = malloc(bytes);

    f->on->download(f->device, host, layer->memory, bytes);
    fixture_wait(f);
    return host;
}

/* `step`: every one, or only every step-th where there are many. */
static void assert_forward(struct fixture *f, const struct layer *layer, bool relu, bool wide, int64_t step)
{
    char *host = results(f, layer);
    bool narrow = device_stored_size(layer->lanes.precision) == 2 && !wide;

    for (int64_t l = 0; l < layer->lanes.count; l++)
        for (int64_t i = 0; i < layer->rows * layer->outputs; i += step) {
            const char *y = host + (size_t)l * layer->lanes.stride + layer->y;
            double expected = expected_at(layer, l, i / layer->outputs, i % layer->outputs);
            float seen = narrow ? from_bf16(((const uint16_t *)y)[i]) : ((const float *)y)[i];
            if (relu && expected < 0)
                expected = 0;
            if (!(fabs(seen - expected) <= (narrow ? 0x1p-8 : 0) * fabs(expected))) /* NaN too */
                fail_msg("lane %lld element %lld is %g, not %g", (long long)l, (long long)i, (double)seen,
                         expected);
        }
    free(host);
}

static void operands_at_odd_addresses(void **state)
{
    static const size_t shifts[] = {0, 2, 4, 8, 16, 128};
    static const enum device_precision precisions[] = {DEVICE_FP32, DEVICE_TF32, DEVICE_BF16};
    struct fixture *f = *state;

    for (int p = 0; p < 3; p++)
        for (int s = 0; s < 6; s++)
            for (int64_t lanes = 1; lanes <= 3; lanes += 2) {
                struct layer layer;
                if (device_stored_size(precisions[p]) > shifts[s] && shifts[s] > 0)
                    continue;
                layer = layer_of(f, precisions[p], lanes, 13, 17, 11, shifts[s]);
                forward(f, &layer, DEVICE_IDENTITY, false);
                assert_forward(f, &layer, false, false, 1);
                forward(f, &layer, DEVICE_RELU, false);
                assert_forward(f, &layer, true, false, 1);
                if (shifts[s] != 2) { /* a real result is aligned to its size */
                    forward(f, &layer, DEVICE_IDENTITY, true);
                    assert_forward(f, &layer, false, true, 1);
                }
                f->on->release(f->device, layer.memory);
            }
}

/* A sum that is split, so that the product uses its workspace; and with and without an epilogue. */
static void long_sums(void **state)
{
    struct fixture *f = *state;

    for (int64_t lanes = 1; lanes <= 4; lanes += 3) {
        struct layer layer = layer_of(f, DEVICE_FP32, lanes, 9, 1500, 10, 0);
        forward(f, &layer, DEVICE_RELU, false);
        assert_forward(f, &layer, true, false, 1);
        f->on->release(f->device, layer.memory);
    }
}

/* More float32 results than the workspace holds: in pieces, of which the last is shorter. */
static void layers_larger_than_the_workspace(void **state)
{
    struct fixture *f = *state;
    struct layer layer = layer_of(f, DEVICE_BF16, 2, 2501, 2, 2048, 0);
    char *host;

    forward(f, &layer, DEVICE_RELU, false);
    assert_forward(f, &layer, true, false, 101);
    host = results(f, &layer);
    for (int64_t l = 0; l < 2; l++) { /* nothing behind the last row */
        const uint16_t *y = (const uint16_t *)(host + (size_t)l * layer.lanes.stride + layer.y);
        for (int64_t i = layer.rows * layer.outputs; i < layer.rows * layer.outputs * 2; i++)
            assert_int_equal(y[i], 0);
    }
    free(host);
    f->on->release(f->device, layer.memory);
}

/* Each lane's result is the one that it has alone, bit for bit: random operands, so that order shows. */
static void lanes_equal_the_trial_alone(void **state)
{
    enum { LANES = 3, ROWS = 37, INPUTS = 600, OUTPUTS = 29 };
    static const enum device_activation functions[] = {DEVICE_IDENTITY, DEVICE_RELU, DEVICE_GELU};
    struct fixture *f = *state;
    struct layer layer = layer_of(f, DEVICE_FP32, LANES, ROWS, INPUTS, OUTPUTS, 0), alone = layer;
    size_t bytes = LANES * layer.lanes.stride;
    char *host = results(f, &layer), *single;
    uint32_t random = 1;

    for (int64_t l = 0; l < LANES; l++)
        for (size_t i = 0; i < (layer.y - layer.x) / 4; i++)
            ((float *)(host + (size_t)l * layer.lanes.stride + layer.x))[i] =
                (float)(int32_t)(random = random * 1664525u + 1013904223u) * 0x1p-31f;
    for (int i = 0; i < 3; i++) {
        f->on->upload(f->device, layer.memory, host, bytes);
        forward(f, &layer, functions[i], false);
        single = results(f, &layer);
        for (int64_t l = 0; l < LANES; l++) {
            float *y = (float *)(single + (size_t)l * layer.lanes.stride + layer.y);
            float *seen = malloc(ROWS * OUTPUTS * sizeof *seen);
            alone.lanes.count = 1;
            alone.memory = layer.memory + (size_t)l * layer.lanes.stride;
            forward(f, &alone, functions[i], false);
            f->on->download(f->device, seen, alone.memory + alone.y, ROWS * OUTPUTS * sizeof *seen);
            assert_memory_equal(seen, y, ROWS * OUTPUTS * sizeof *seen);
            free(seen);
        }
        free(single);
    }
    free(host);
    f->on->release(f->device, layer.memory);
    fixture_wait(f);
}

/* More shapes than are kept; afterwards the first is right again, and nothing has leaked (ASan). */
static void many_shapes(void **state)
{
    struct fixture *f = *state;
    struct layer layer = layer_of(f, DEVICE_FP32, 1, 90, 3, 100, 0);

    for (int64_t rows = 1; rows <= 90; rows++)
        for (int64_t outputs = 1; outputs <= 50; outputs++) {
            struct layer part = layer;
            part.rows = rows;
            part.outputs = outputs;
            forward(f, &part, DEVICE_IDENTITY, false);
        }
    forward(f, &layer, DEVICE_IDENTITY, false);
    assert_forward(f, &layer, false, false, 1);
    f->on->release(f->device, layer.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operands_at_odd_addresses, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(long_sums, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(layers_larger_than_the_workspace, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(lanes_equal_the_trial_alone, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(many_shapes, fixture_open, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
