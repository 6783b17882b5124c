/* Gathers and embeddings. */
#include "conformance.h"

enum { SOURCE_ROWS = 37, STEPS = 4 };

struct gather {
    int64_t rows, columns, stride, batch, first;
    bool ordered;
    const void *source, *integers; /* on the device */
    float values[SOURCE_ROWS * 300];
    int32_t numbers[SOURCE_ROWS * 300];
    int y, state, order, reals, labels;
};

static struct device_rows_of rows_of(const struct world *world, char *base, const struct gather *g)
{
    if (!g->ordered)
        return (struct device_rows_of){.first = g->first};
    return (struct device_rows_of){.order = tensor_at(world, base, g->order),
                                   .state = tensor_at(world, base, g->state),
                                   .batch = g->batch,
                                   .first = g->first};
}

static int64_t source_row(const struct world *world, int64_t lane, const struct gather *g, int64_t r)
{
    const struct lane_state *state = world_before(world, lane, g->state);
    const int32_t *order = world_before(world, lane, g->order);

    return g->ordered ? order[(state->step - state->epoch_first) * g->batch + g->first + r] : g->first + r;
}

static void call_gather(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct gather *g = data;
    operations->gather(device, lanes, tensor_at(world, base, g->y), g->stride, g->source,
                       rows_of(world, base, g), g->rows, g->columns);
}

static void call_plain(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct gather *g = data;
    operations->gather_real(device, lanes, tensor_at(world, base, g->reals), g->source,
                            rows_of(world, base, g), g->rows, g->columns);
    operations->gather_integers(device, lanes, tensor_at(world, base, g->labels), g->integers,
                                rows_of(world, base, g), g->rows, g->columns);
}

static void share(const void **memory, const void *host, size_t bytes)
{
    struct error err = {0};
    if (operations->share(device, memory, host, bytes, &err) != 0)
        fail_msg("%s", err.message);
}

/* Values that 16 bits cannot hold exactly, and some that are special to them. */
static void gather_data(struct gather *g)
{
    static const float special[] = {0,     -0.0f,       65519.9f,    65520,    -70000,
                                    1e-7f, 3e-8f,       2.9e-8f,     -6.2e-5f, INFINITY,
                                    NAN,   1.00390625f, 1.01171875f, 3.4e38f,  1e-40f};

    for (int i = 0; i < SOURCE_ROWS * 300; i++) {
        g->values[i] = (float)random_real(-3, 3);
        g->numbers[i] = (int32_t)random_integer(-1000, 1000000);
        if (random_integer(0, 9) == 0)
            g->values[i] = special[random_integer(0, sizeof(special) / sizeof(*special) - 1)];
    }
    share(&g->source, g->values, sizeof(g->values));
    share(&g->integers, g->numbers, sizeof(g->numbers));
}

static struct gather *gather_create(void)
{
    struct gather *g = calloc(1, sizeof(*g));

    assert_non_null(g);
    g->columns = random_size(300);
    g->stride = g->columns + (random_integer(0, 1) ? random_integer(1, 20) : 0);
    g->ordered = random_integer(0, 2) != 0;
    g->batch = random_integer(1, 30);
    g->rows = random_integer(1, g->batch);
    g->first = random_integer(0, g->batch - g->rows);
    gather_data(g);
    return g;
}

static void gather_release(struct gather *g)
{
    operations->unshare(device, g->source);
    operations->unshare(device, g->integers);
    free(g);
}

static void place_order(struct world *world, struct gather *g)
{
    g->state = world_place_state(world, false);
    g->order = world_place(world, STEPS * g->batch, sizeof(int32_t), false);
}

void check_gather(enum device_precision precision)
{
    struct gather *g = gather_create();
    struct world world;

    world_init(&world, precision);
    g->y = world_place_stored(&world, g->rows * g->stride, true);
    place_order(&world, g);
    world_open(&world, "gather %lldx%lld", (long long)g->rows, (long long)g->columns);
    fill_state(&world, g->state);
    fill_integers(&world, g->order, SOURCE_ROWS);
    fill_stored(&world, g->y, 1);
    world_run(&world, call_gather, g);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t i = 0; i < g->rows * g->stride; i++) {
            int64_t row = source_row(&world, l, g, i / g->stride), column = i % g->stride;
            double expected = before_stored(&world, l, g->y, i); /* beyond the columns */
            if (column < g->columns)
                expected = stored_round(precision, (double)g->values[row * g->columns + column]);
            expect(&world, "y", l, i, after_stored(&world, l, g->y, i), expected, 0);
        }
    world_release(&world);
    gather_release(g);
}

void check_gather_plain(enum device_precision precision)
{
    struct gather *g = gather_create();
    struct world world;

    world_init(&world, precision);
    g->reals = world_place_real(&world, g->rows * g->columns, true);
    g->labels = world_place(&world, g->rows * g->columns, sizeof(int32_t), true);
    place_order(&world, g);
    world_open(&world, "gather_real, gather_integers %lldx%lld", (long long)g->rows, (long long)g->columns);
    fill_state(&world, g->state);
    fill_integers(&world, g->order, SOURCE_ROWS);
    world_run(&world, call_plain, g);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t i = 0; i < g->rows * g->columns; i++) {
            int64_t at = source_row(&world, l, g, i / g->columns) * g->columns + i % g->columns;
            expect(&world, "reals", l, i, after_real(&world, l, g->reals, i), (double)g->values[at], 0);
            assert_int_equal(((const int32_t *)world_after(&world, l, g->labels))[i], g->numbers[at]);
        }
    world_release(&world);
    gather_release(g);
}

struct embedding {
    int64_t rows, stride, first, width, entries, categories, which;
    bool accumulate;
    int y, table, category, dtable;
};

static void call_forward(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct embedding *e = data;
    operations->embedding_forward(device, lanes, tensor_at(world, base, e->y), e->stride, e->first,
                                  tensor_at(world, base, e->table), tensor_at(world, base, e->category),
                                  e->categories, e->which, e->rows, e->width);
}

static void call_backward(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct embedding *e = data;
    operations->embedding_backward(device, lanes, tensor_at(world, base, e->dtable),
                                   tensor_at(world, base, e->y), e->stride, e->first,
                                   tensor_at(world, base, e->category), e->categories, e->which, e->rows,
                                   e->entries, e->width, e->accumulate);
}

static int32_t category_of(const struct world *world, int64_t lane, const struct embedding *e, int64_t row)
{
    return ((const int32_t *)world_before(world, lane, e->category))[row * e->categories + e->which];
}

static void compare_forward(const struct world *world, const struct embedding *e)
{
    for (int64_t l = 0; l < world->lanes.count; l++)
        for (int64_t i = 0; i < e->rows * e->stride; i++) {
            int64_t column = i % e->stride - e->first, entry = category_of(world, l, e, i / e->stride);
            double expected = before_stored(world, l, e->y, i);
            if (column >= 0 && column < e->width)
                expected = stored_round(world->lanes.precision,
                                        before_real(world, l, e->table, entry * e->width + column));
            expect(world, "y", l, i, after_stored(world, l, e->y, i), expected, 0);
        }
}

static void compare_backward(const struct world *world, const struct embedding *e)
{
    for (int64_t l = 0; l < world->lanes.count; l++)
        for (int64_t i = 0; i < e->entries * e->width; i++) {
            double sum = e->accumulate ? before_real(world, l, e->dtable, i) : 0, absolute = fabs(sum);
            for (int64_t r = 0; r < e->rows; r++)
                if (category_of(world, l, e, r) == i / e->width) {
                    double term = before_stored(world, l, e->y, r * e->stride + e->first + i % e->width);
                    sum += term;
                    absolute += fabs(term);
                }
            expect(world, "dtable", l, i, after_real(world, l, e->dtable, i), sum,
                   (double)(e->rows + 1) * UNIT * absolute);
        }
}

void check_embedding(enum device_precision precision)
{
    struct embedding e = {.rows = random_size(130),
                          .width = random_size(50),
                          .entries = random_size(70),
                          .categories = random_integer(1, 4),
                          .accumulate = random_integer(0, 1)};
    struct world world;

    e.first = random_integer(0, 20);
    e.stride = e.first + e.width + random_integer(0, 20);
    e.which = random_integer(0, e.categories - 1);
    world_init(&world, precision);
    e.y = world_place_stored(&world, e.rows * e.stride, true);
    e.table = world_place_real(&world, e.entries * e.width, false);
    e.category = world_place(&world, e.rows * e.categories, sizeof(int32_t), false);
    e.dtable = world_place_real(&world, e.entries * e.width, true);
    world_open(&world, "embedding %lld of %lldx%lld", (long long)e.rows, (long long)e.entries,
               (long long)e.width);
    fill_stored(&world, e.y, 1);
    fill_real(&world, e.table, 1);
    fill_real(&world, e.dtable, 1);
    fill_integers(&world, e.category, (int32_t)e.entries);
    world_run(&world, call_forward, &e);
    compare_forward(&world, &e);
    world_run(&world, call_backward, &e);
    compare_backward(&world, &e);
    world_release(&world);
}
