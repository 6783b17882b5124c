/* Memory, copies and a step's state. */
#include "conformance.h"

enum { BYTES = 1000 };

static void check_shared(void)
{
    unsigned char bytes[BYTES], back[BYTES];
    const void *first, *second;
    struct error err = {0};

    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)random_integer(0, 255);
    if (operations->share(device, &first, bytes, sizeof(bytes), &err) != 0 ||
        operations->share(device, &second, bytes, sizeof(bytes), &err) != 0)
        fail_msg("%s", err.message);
    operations->unshare(device, second);
    operations->download(device, back, first, sizeof(back));
    settle();
    assert_memory_equal(bytes, back, sizeof(bytes));
    operations->unshare(device, first);
}

/* Zeroed, also where memory is used again; host memory is finished with when the calls return. */
static void check_allocation(const unsigned char *bytes, int64_t size)
{
    unsigned char given[BYTES], back[BYTES];
    struct error err = {0};
    void *memory, *nothing;

    if (operations->allocate(device, &memory, (size_t)size, &err) != 0 ||
        operations->allocate(device, &nothing, 0, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal((uintptr_t)memory % DEVICE_ALIGNMENT, 0);
    operations->download(device, back, memory, (size_t)size);
    for (int64_t i = 0; i < size; i++)
        assert_int_equal(back[i], 0);
    memcpy(given, bytes, (size_t)size);
    operations->upload(device, memory, given, (size_t)size);
    memset(given, 0xaa, sizeof(given));
    operations->download(device, back, memory, (size_t)size);
    assert_memory_equal(back, bytes, (size_t)size);
    operations->release(device, memory);
    operations->release(device, nothing);
    settle();
}

void check_memory(enum device_precision precision)
{
    unsigned char bytes[BYTES];
    size_t available = 1, total = 1;
    struct error err = {0};
    void *memory;

    (void)precision;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)random_integer(0, 255);
    for (int round = 0; round < 50; round++)
        check_allocation(bytes, random_integer(1, BYTES));
    check_shared();
    operations->memory(device, &available, &total);
    assert_true(available <= total);
    assert_int_equal(operations->allocate(device, &memory, SIZE_MAX - 3, &err), -1);
    assert_int_equal(err.code, ERROR_MEMORY);
    settle(); /* a refusal is told by allocate alone */
}

static void call_copies(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    (void)data;
    operations->copy(device, lanes, tensor_at(world, base, 1), tensor_at(world, base, 0),
                     world->tensor[0].bytes);
    operations->zero(device, lanes, tensor_at(world, base, 2), world->tensor[2].bytes);
}

void check_copies(enum device_precision precision)
{
    struct world world;
    int64_t count = random_size(700);

    world_init(&world, precision);
    world_place(&world, count, 1, false);
    world_place(&world, count, 1, true);
    world_place(&world, random_size(700), 1, true);
    world_open(&world, "copy, zero");
    fill_bytes(&world, 0, 255);
    world_run(&world, call_copies, NULL);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        const unsigned char *zeroed = world_after(&world, l, 2);
        assert_memory_equal(world_after(&world, l, 1), world_before(&world, l, 0), (size_t)count);
        for (size_t i = 0; i < world.tensor[2].bytes; i++)
            assert_int_equal(zeroed[i], 0);
    }
    world_release(&world);
}

static void call_begin(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    (void)data;
    operations->step_begin(device, lanes, tensor_at(world, base, 0), tensor_at(world, base, 1));
}

static void call_end(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    (void)data;
    operations->step_end(device, lanes, tensor_at(world, base, 0));
}

/* What lane_state.h says of a step's end, once more. */
static void ended(struct lane_state *s)
{
    bool overflow = !s->finite;

    s->step += 1;
    s->updates += !overflow;
    if (s->scaled) {
        s->skipped += overflow;
        if (overflow)
            s->loss_scale /= 2;
        s->clean_steps = overflow ? 0 : s->clean_steps + 1;
        if (s->clean_steps == LOSS_SCALE_GROWTH_STEPS) {
            s->loss_scale *= 2;
            s->clean_steps = 0;
        }
        s->small_steps = s->loss_scale < 1 ? s->small_steps + 1 : 0;
    }
}

static void check_end(struct world *world)
{
    for (int64_t l = 0; l < world->lanes.count; l++) {
        struct lane_state *state = world_before(world, l, 0);
        state->finite = (int32_t)random_integer(0, 2) != 0;
        state->clean_steps =
            (int32_t)(random_integer(0, 1) ? LOSS_SCALE_GROWTH_STEPS - 1 : random_integer(0, 1900));
        state->small_steps = (int32_t)random_integer(0, 50);
        state->loss_scale = ldexp(1, (int)random_integer(-2, 16));
    }
    world_run(world, call_end, NULL);
    for (int64_t l = 0; l < world->lanes.count; l++) {
        struct lane_state expected;
        memcpy(&expected, world_before(world, l, 0), sizeof(expected));
        ended(&expected);
        assert_memory_equal(world_after(world, l, 0), &expected, sizeof(expected));
    }
}

void check_steps(enum device_precision precision)
{
    struct world world;

    world_init(&world, precision);
    world_place_state(&world, true);
    world_place(&world, 4, sizeof(double), false);
    world_open(&world, "step_begin, step_end");
    fill_state(&world, 0);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int i = 0; i < 4; i++)
            ((double *)world_before(&world, l, 1))[i] = random_real(0, 1);
    world_run(&world, call_begin, NULL);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        struct lane_state expected;
        memcpy(&expected, world_before(&world, l, 0), sizeof(expected));
        expected.learning_rate =
            ((const double *)world_before(&world, l, 1))[expected.step - expected.epoch_first];
        assert_memory_equal(world_after(&world, l, 0), &expected, sizeof(expected));
    }
    for (int round = 0; round < 20; round++)
        check_end(&world);
    world_release(&world);
}
