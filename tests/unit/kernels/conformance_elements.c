/* Operations on each element: activations, their slopes, sums, dropout. */
#include "conformance.h"

#include "base/random.h"

struct elements {
    int64_t count, first_row, rows, columns;
    uint32_t stream;
    enum device_activation f;
    bool masked, in_place;
    int x, y, mask, state;
};

/* A NaN and infinities in the second lane, if there is one: they must stay there, and stay what they are. */
static void plant(struct world *world, int tensor, int64_t count, bool infinite)
{
    if (world->lanes.count < 2)
        return;
    if (infinite)
        stored_set(world->lanes.precision, world_before(world, 1, tensor), count / 3, INFINITY);
    stored_set(world->lanes.precision, world_before(world, 1, tensor), count / 2, NAN);
}

static void call_activation(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct elements *e = data;
    operations->activation(device, lanes, tensor_at(world, base, e->y),
                           tensor_at(world, base, e->in_place ? e->y : e->x), e->count, e->f);
}

void check_activation(enum device_precision precision)
{
    for (int f = DEVICE_IDENTITY; f <= DEVICE_TANH; f++) {
        struct elements e = {.count = random_size(5000), .f = (enum device_activation)f};
        struct world world;

        e.in_place = !device_saves_argument(e.f) && random_integer(0, 1);
        world_init(&world, precision);
        e.x = world_place_stored(&world, e.count, false);
        e.y = world_place_stored(&world, e.count, true);
        world_open(&world, "activation %d of %lld", f, (long long)e.count);
        fill_stored(&world, e.x, pow(10, random_real(-2, 1.5)));
        plant(&world, e.x, e.count, true);
        for (int64_t l = 0; l < world.lanes.count; l++)
            memcpy(world_before(&world, l, e.y), world_before(&world, l, e.x), world.tensor[e.x].bytes);
        world_run(&world, call_activation, &e);
        for (int64_t l = 0; l < world.lanes.count; l++)
            for (int64_t i = 0; i < e.count; i++) {
                double x = before_stored(&world, l, e.x, i), expected = activation_of(x, e.f);
                /* where gelu and silu vanish, exponentials of large arguments are wrong by their rounding */
                double error = 8 * UNIT * fabs(expected) * (1 + fabs(x)) + 1e-30 * fabs(x);
                if (isfinite(x) && x < -4 && device_saves_argument(e.f))
                    error += 1e-7 * fabs(expected) * x * x * x * x;
                expect_stored(&world, "y", l, e.y, i, expected, isfinite(error) ? error : 0);
            }
        world_release(&world);
    }
}

static void call_add(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct elements *e = data;
    operations->add(device, lanes, tensor_at(world, base, e->y), tensor_at(world, base, e->x), e->count);
}

void check_add(enum device_precision precision)
{
    struct elements e = {.count = random_size(9000)};
    struct world world;

    world_init(&world, precision);
    e.x = world_place_stored(&world, e.count, false);
    e.y = world_place_stored(&world, e.count, true);
    world_open(&world, "add %lld", (long long)e.count);
    fill_stored(&world, e.x, 3);
    fill_stored(&world, e.y, 3);
    plant(&world, e.x, e.count, true);
    world_run(&world, call_add, &e);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t i = 0; i < e.count; i++) {
            /* one float32 addition, then one rounding: known to the bit */
            float sum = (float)(before_stored(&world, l, e.y, i) + before_stored(&world, l, e.x, i));
            expect(&world, "y", l, i, after_stored(&world, l, e.y, i), stored_round(precision, (double)sum),
                   0);
        }
    world_release(&world);
}

static double threshold_of(const struct lane_state *state)
{
    return fmin(floor(state->dropout * 65536 + 0.5), 65535);
}

/* The half of a Philox word that decides on element e, as device.h says. */
static uint32_t half_of(int64_t e, uint32_t stream, const struct lane_state *state)
{
    int64_t r = e % 128;
    struct philox block =
        philox4x32(state->key, (uint32_t)(e / 128 * 16 + r % 16), 0, (uint32_t)state->step, stream);
    uint32_t word = block.word[r / 32];

    return r / 16 % 2 ? word >> 16 : word & 0xffff;
}

/* A probability at which the threshold is just what some element draws, or the next: kept, or dropped. */
static void dropout_at_the_threshold(struct lane_state *state, const struct elements *e)
{
    int64_t i = e->first_row * e->columns + random_integer(0, e->rows * e->columns - 1);
    double half = half_of(i, e->stream, state) + (double)random_integer(0, 1);

    if (half < 60000)
        state->dropout = half / 65536;
}

static void call_dropout(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct elements *e = data;
    operations->dropout(device, lanes, tensor_at(world, base, e->y), tensor_at(world, base, e->mask),
                        e->first_row, e->rows, e->columns, e->stream, tensor_at(world, base, e->state));
}

void check_dropout(enum device_precision precision)
{
    struct elements e = {.rows = random_size(90),
                         .columns = random_size(200),
                         .first_row = random_integer(0, 1) ? random_size(3000) : 0,
                         .stream = (uint32_t)random_integer(0, 9)};
    struct world world;

    world_init(&world, precision);
    e.y = world_place_stored(&world, e.rows * e.columns, true);
    e.mask = world_place(&world, e.rows * e.columns, 1, true);
    e.state = world_place_state(&world, false);
    world_open(&world, "dropout %lldx%lld from row %lld", (long long)e.rows, (long long)e.columns,
               (long long)e.first_row);
    fill_stored(&world, e.y, 3);
    fill_state(&world, e.state);
    dropout_at_the_threshold(world_before(&world, 0, e.state), &e);
    world_run(&world, call_dropout, &e);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        const struct lane_state *state = world_before(&world, l, e.state);
        const unsigned char *mask = world_after(&world, l, e.mask);
        for (int64_t i = 0; i < e.rows * e.columns; i++) {
            bool kept = half_of(e.first_row * e.columns + i, e.stream, state) >= threshold_of(state);
            double expected = kept ? before_stored(&world, l, e.y, i) / (1 - threshold_of(state) / 65536) : 0;
            expect(&world, "mask", l, i, mask[i], kept, 0);
            expect_stored(&world, "y", l, e.y, i, expected, 3 * UNIT * fabs(expected));
        }
    }
    world_release(&world);
}

static void call_backward(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct elements *e = data;
    operations->activation_backward(device, lanes, tensor_at(world, base, e->y),
                                    e->f == DEVICE_IDENTITY ? NULL : tensor_at(world, base, e->x),
                                    e->masked ? tensor_at(world, base, e->mask) : NULL, e->count, e->f,
                                    tensor_at(world, base, e->state));
}

void check_activation_backward(enum device_precision precision)
{
    for (int f = DEVICE_IDENTITY; f <= DEVICE_TANH; f++) {
        struct elements e = {
            .count = random_size(5000), .f = (enum device_activation)f, .masked = random_integer(0, 1)};
        struct world world;

        world_init(&world, precision);
        e.x = world_place_stored(&world, e.count, false);
        e.y = world_place_stored(&world, e.count, true);
        e.mask = world_place(&world, e.count, 1, false);
        e.state = world_place_state(&world, false);
        world_open(&world, "activation_backward %d of %lld, masked %d", f, (long long)e.count, e.masked);
        fill_stored(&world, e.x, f == DEVICE_TANH ? 1 : pow(10, random_real(-2, 1.5)));
        fill_stored(&world, e.y, 2);
        fill_bytes(&world, e.mask, 2);
        fill_state(&world, e.state);
        plant(&world, e.y, e.count, false);
        world_run(&world, call_backward, &e);
        for (int64_t l = 0; l < world.lanes.count; l++) {
            const struct lane_state *state = world_before(&world, l, e.state);
            const unsigned char *mask = world_before(&world, l, e.mask);
            for (int64_t i = 0; i < e.count; i++) {
                double saved = before_stored(&world, l, e.x, i), slope = slope_of(saved, e.f);
                double factor = e.masked ? mask[i] / (1 - threshold_of(state) / 65536) : 1;
                double given = before_stored(&world, l, e.y, i), expected = given * factor * slope;
                double error = 30 * UNIT * fabs(given) * factor * (1 + fabs(slope));
                if (isnan(given) && (f == DEVICE_RELU || factor == 0))
                    continue; /* whether nothing times NaN is nothing is left to the backend */
                expect_stored(&world, "gradient", l, e.y, i, expected, isfinite(error) ? error : 0);
            }
        }
        world_release(&world);
    }
}
