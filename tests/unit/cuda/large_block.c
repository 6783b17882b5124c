#include "large_block.h"

#include "base/random.h"

#define SEED 20240611

struct device *device;
const struct device_operations *operations;

int set_up(void **state)
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

int tear_down(void **state)
{
    (void)state;
    device_destroy(device);
    return 0;
}

size_t place(struct block *block, int64_t elements)
{
    size_t at = block->lanes.stride;

    block->lanes.stride +=
        ((size_t)elements * sizeof(real) + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    return at;
}

void block_init(struct block *block, int64_t lanes)
{
    *block = (struct block){.lanes = {.count = lanes, .precision = DEVICE_FP32}};
    place(block, sizeof(struct lane_state) / sizeof(real));
}

void block_open(struct block *block)
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

void to_device(struct block *block)
{
    struct error err = {0};
    size_t bytes = block->lanes.stride * (size_t)block->lanes.count;

    if (operations->allocate(device, &block->memory, bytes, &err) != 0)
        fail_msg("%s", err.message);
    operations->upload(device, block->memory, block->host, bytes);
    settle();
}

struct block from_device(const struct block *block)
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

void block_release(struct block *block, struct block *after)
{
    operations->release(device, block->memory);
    free(block->host);
    free(after->host);
}

void expect(const char *name, int64_t lane, int64_t i, double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s[%lld] of lane %lld is %.9g, expected %.9g within %.3g", name, (long long)i,
                 (long long)lane, found, expected, tolerance);
}
