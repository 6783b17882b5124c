/* Lanes with tensors between gaps of noise, see conformance.h. */
#include "conformance.h"

void world_init(struct world *world, enum device_precision precision)
{
    *world = (struct world){.lanes = {.count = random_integer(1, 4), .precision = precision}};
}

int world_place(struct world *world, int64_t count, size_t size, bool written)
{
    struct tensor *tensor = &world->tensor[world->tensors];
    /* Most tensors keep the alignment, as they should; some only that of their elements. */
    size_t alignment = random_integer(0, 3) ? DEVICE_ALIGNMENT : size;
    size_t gap = (size_t)random_integer(1, 40) * size;

    assert_true(world->tensors < TENSORS);
    tensor->at = (world->lanes.stride + gap + alignment - 1) / alignment * alignment;
    if (size > sizeof(int64_t)) /* a struct */
        tensor->at = (tensor->at + 15) / 16 * 16;
    tensor->bytes = (size_t)count * size;
    tensor->written = written;
    world->lanes.stride = tensor->at + tensor->bytes;
    return world->tensors++;
}

int world_place_stored(struct world *world, int64_t count, bool written)
{
    return world_place(world, count, device_stored_size(world->lanes.precision), written);
}

int world_place_real(struct world *world, int64_t count, bool written)
{
    return world_place(world, count, sizeof(real), written);
}

int world_place_state(struct world *world, bool written)
{
    return world_place(world, 1, sizeof(struct lane_state), written);
}

static size_t world_bytes(const struct world *world)
{
    return (size_t)world->lanes.count * world->lanes.stride;
}

void world_open(struct world *world, const char *format, ...)
{
    struct error err = {0};
    void *memory;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(world->what, sizeof(world->what), format, arguments);
    va_end(arguments);
    world->lanes.stride =
        (world->lanes.stride / DEVICE_ALIGNMENT + (size_t)random_integer(1, 3)) * DEVICE_ALIGNMENT;
    world->before = malloc(world_bytes(world));
    world->after = malloc(world_bytes(world));
    assert_true(world->before && world->after);
    for (size_t i = 0; i < world_bytes(world); i++) /* NaN where it is read by mistake, as any float */
        world->before[i] = i % 2 ? 0xff : (unsigned char)(0xc0 + i % 61);
    if (operations->allocate(device, &memory, world_bytes(world), &err) != 0)
        fail_msg("%s", err.message);
    world->memory = memory;
}

void world_release(struct world *world)
{
    operations->release(device, world->memory);
    free(world->before);
    free(world->after);
}

void *world_before(const struct world *world, int64_t lane, int tensor)
{
    return world->before + (size_t)lane * world->lanes.stride + world->tensor[tensor].at;
}

const void *world_after(const struct world *world, int64_t lane, int tensor)
{
    return world->after + (size_t)lane * world->lanes.stride + world->tensor[tensor].at;
}

double before_stored(const struct world *world, int64_t lane, int tensor, int64_t i)
{
    return stored_get(world->lanes.precision, world_before(world, lane, tensor), i);
}

double after_stored(const struct world *world, int64_t lane, int tensor, int64_t i)
{
    return stored_get(world->lanes.precision, world_after(world, lane, tensor), i);
}

double before_real(const struct world *world, int64_t lane, int tensor, int64_t i)
{
    return (double)((const float *)world_before(world, lane, tensor))[i];
}

double after_real(const struct world *world, int64_t lane, int tensor, int64_t i)
{
    return (double)((const float *)world_after(world, lane, tensor))[i];
}

void fill_stored(struct world *world, int tensor, double scale)
{
    size_t count = world->tensor[tensor].bytes / device_stored_size(world->lanes.precision);

    for (int64_t l = 0; l < world->lanes.count; l++)
        for (size_t i = 0; i < count; i++)
            stored_set(world->lanes.precision, world_before(world, l, tensor), (int64_t)i,
                       random_real(-scale, scale));
}

void fill_real(struct world *world, int tensor, double scale)
{
    for (int64_t l = 0; l < world->lanes.count; l++)
        for (size_t i = 0; i < world->tensor[tensor].bytes / sizeof(float); i++)
            ((float *)world_before(world, l, tensor))[i] = (float)random_real(-scale, scale);
}

void fill_bytes(struct world *world, int tensor, unsigned char below)
{
    for (int64_t l = 0; l < world->lanes.count; l++)
        for (size_t i = 0; i < world->tensor[tensor].bytes; i++)
            ((unsigned char *)world_before(world, l, tensor))[i] =
                (unsigned char)random_integer(0, below - 1);
}

void fill_integers(struct world *world, int tensor, int32_t below)
{
    for (int64_t l = 0; l < world->lanes.count; l++)
        for (size_t i = 0; i < world->tensor[tensor].bytes / sizeof(int32_t); i++)
            ((int32_t *)world_before(world, l, tensor))[i] = (int32_t)random_integer(0, below - 1);
}

void fill_state(struct world *world, int tensor)
{
    for (int64_t l = 0; l < world->lanes.count; l++) {
        struct lane_state state = {
            .key = (uint64_t)random_integer(0, INT32_MAX) << 33 | (uint64_t)random_integer(0, INT32_MAX),
            .dropout = random_integer(0, 4) ? random_real(0, 0.95) : 0,
            .label_smoothing = random_integer(0, 1) ? random_real(0, 0.3) : 0,
            .huber_delta = random_real(0.3, 2),
            .momentum = random_real(0, 0.95),
            .weight_decay = random_integer(0, 3) ? random_real(0, 0.1) : 0,
            .beta1 = random_real(0.5, 0.95),
            .beta2 = random_real(0.9, 0.9995),
            .epsilon = pow(10, random_real(-9, -4)),
            .clip_norm = random_integer(0, 1) ? random_real(0.1, 20) : 0,
            .nesterov = (int32_t)random_integer(0, 1),
            .scaled = (int32_t)random_integer(0, 1),
            .epoch_first = random_integer(0, 5000),
            .loss = random_real(-10, 10),
            .updates = random_integer(0, 3) * random_integer(0, 3000),
            .learning_rate = pow(10, random_real(-4, -0.5)),
            .gradient_norm = random_real(0, 10),
            .gradient_factor = random_integer(0, 1) ? random_real(0.1, 1) : 1,
            .loss_scale = ldexp(1, (int)random_integer(0, 6)),
            .finite = 1,
        };
        state.step = state.epoch_first + random_integer(0, 3);
        memcpy(world_before(world, l, tensor), &state, sizeof(state));
    }
}

void settle(void)
{
    struct error err = {0};
    if (operations->synchronize(device, &err) != 0)
        fail_msg("the device failed: %s", err.message);
}

/* Is byte i of a lane one the operation may write? */
static bool is_written(const struct world *world, size_t i)
{
    for (int t = 0; t < world->tensors; t++)
        if (world->tensor[t].written && i >= world->tensor[t].at &&
            i < world->tensor[t].at + world->tensor[t].bytes)
            return true;
    return false;
}

static void check_untouched(const struct world *world)
{
    size_t stride = world->lanes.stride;

    for (size_t i = 0; i < world_bytes(world); i++)
        if (world->before[i] != world->after[i] && !is_written(world, i % stride))
            fail_msg("%s: byte %zu of lane %zu was written, which belongs to no result", world->what,
                     i % stride, i / stride);
}

static void check_alone(struct world *world, call_f *call, const void *data)
{
    struct lanes lanes = world->lanes;
    unsigned char *alone = malloc(lanes.stride);

    assert_non_null(alone);
    lanes.count = 1;
    operations->upload(device, world->memory, world->before, world_bytes(world));
    for (int64_t l = 0; l < world->lanes.count; l++) {
        char *base = world->memory + (size_t)l * lanes.stride;
        call(world, base, lanes, data);
        settle();
        operations->download(device, alone, base, lanes.stride);
        settle();
        for (size_t i = 0; i < lanes.stride; i++)
            if (alone[i] != world->after[(size_t)l * lanes.stride + i])
                fail_msg("%s: lane %lld alone differs at byte %zu", world->what, (long long)l, i);
    }
    free(alone);
}

void world_run(struct world *world, call_f *call, const void *data)
{
    operations->upload(device, world->memory, world->before, world_bytes(world));
    call(world, world->memory, world->lanes, data);
    settle();
    operations->download(device, world->after, world->memory, world_bytes(world));
    settle();
    check_untouched(world);
    check_alone(world, call, data);
}

void world_advance(struct world *world)
{
    memcpy(world->before, world->after, world_bytes(world));
}

void expect(const struct world *world, const char *name, int64_t lane, int64_t i, double found,
            double expected, double tolerance)
{
    if (isnan(expected) ? isnan(found) : found == expected || fabs(found - expected) <= tolerance)
        return;
    fail_msg("%s %s, %s[%lld] of lane %lld is %.9g, expected %.9g within %.3g", world->what,
             precision_name(world->lanes.precision), name, (long long)i, (long long)lane, found, expected,
             tolerance);
}

void expect_stored(const struct world *world, const char *name, int64_t lane, int tensor, int64_t i,
                   double expected, double error)
{
    enum device_precision precision = world->lanes.precision;
    double rounding = stored_unit(precision) * (fabs(expected) + error) + stored_least(precision);

    if (precision == DEVICE_FP16 && fabs(expected) + error >= 65520)
        return; /* may be infinite */
    expect(world, name, lane, i, after_stored(world, lane, tensor, i), expected, error + rounding);
}
