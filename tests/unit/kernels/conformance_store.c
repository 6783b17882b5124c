/* The 16-bit copy of parameters, to the bit; and whether all of them are finite. */
#include "conformance.h"

static void call_store(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    operations->store(device, lanes, tensor_at(world, base, 1), tensor_at(world, base, 0),
                      *(const int64_t *)data);
}

/* Where rounding goes wrong first: NaNs that lose their last bits or carry into the sign, what just reaches
 * infinity, ties. */
static const uint32_t hard[] = {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7f800000u, 0xff800000u,
                                0x7f7fffffu, 0x477fefffu, 0x477ff000u, 0x33000000u, 0x33000001u, 0x80000000u,
                                0x3f808000u, 0x3f818000u, 0x387fffffu, 0x00000001u, 0x007fffffu, 0x00400000u};

/* Of random patterns every number is as likely as any other; rounding must be right to the bit. */
static uint32_t pattern(int64_t i)
{
    uint32_t bits = (uint32_t)random_integer(0, UINT32_MAX);

    if (i % 8 == 0)
        return hard[random_integer(0, sizeof(hard) / sizeof(*hard) - 1)];
    if (i % 2) /* where fp16's numbers lie, on ties too */
        return (bits & 0x83fff000u) + 0x33000000u + (uint32_t)random_integer(0, 2) * 0x800u;
    return bits;
}

void check_store(enum device_precision precision)
{
    int64_t count = random_size(9000);
    bool copied = device_stored_size(precision) == 2;
    struct world world;

    world_init(&world, precision);
    world_place_real(&world, count, false);
    world_place_stored(&world, count, copied);
    world_open(&world, "store %lld", (long long)count);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits = pattern(i);
            memcpy((char *)world_before(&world, l, 0) + 4 * i, &bits, sizeof(bits));
        }
    world_run(&world, call_store, &count);
    for (int64_t l = 0; l < world.lanes.count && copied; l++)
        for (int64_t i = 0; i < count; i++)
            expect(&world, "stored", l, i, after_stored(&world, l, 1, i),
                   stored_round(precision, before_real(&world, l, 0, i)), 0);
    world_release(&world);
}

struct finite {
    int64_t count;
    bool *found; /* of the lanes of the last call */
};

static void call_finite(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct finite *f = data;
    operations->finite(device, lanes, f->found, tensor_at(world, base, 0), f->count);
}

void check_finite(enum device_precision precision)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct finite f = {.count = random_size(9000)};
    bool found[4], expected[4];
    struct world world;

    world_init(&world, precision);
    world_place_real(&world, f.count, false);
    world_open(&world, "finite %lld", (long long)f.count);
    fill_real(&world, 0, 3e38);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        expected[l] = random_integer(0, 1);
        if (!expected[l])
            ((float *)world_before(&world, l, 0))[random_integer(0, f.count - 1)] = bad[random_integer(0, 2)];
    }
    f.found = found;
    operations->upload(device, world.memory, world.before, (size_t)world.lanes.count * world.lanes.stride);
    call_finite(&world, world.memory, world.lanes, &f);
    settle();
    for (int64_t l = 0; l < world.lanes.count; l++)
        assert_int_equal(found[l], expected[l]);
    world_run(&world, call_finite, &f);
    world_release(&world);
}
