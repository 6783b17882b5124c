/* Layer norm and ghost batch norm. A set is what statistics are of: a row, or a column within a group. */
#include "conformance.h"

#define EPSILON 1e-5

struct norm {
    int64_t rows, columns, group; /* group 0: layer norm */
    bool accumulate, in_place;
    int x, y, saved, gain, offset, running, dy, dx, dgain, doffset;
};

/* Element k of a set, as an index into (rows, columns). */
struct set {
    int64_t first, step, count, number; /* number: where its saved pair is */
};

static struct set set_of_row(const struct norm *n, int64_t row)
{
    return (struct set){.first = row * n->columns, .step = 1, .count = n->columns, .number = row};
}

/* Where the groups end, from device.h's words: returns how many there are. */
static int group_ends(int64_t rows, int64_t group, int64_t end[])
{
    int groups = 0;

    for (int64_t first = 0; first < rows; first += group) {
        int64_t size = rows - first < group ? rows - first : group;
        if (size == 1 && group > 1 && groups > 0)
            end[groups - 1] = rows;
        else
            end[groups++] = first + size;
    }
    return groups;
}

struct statistics {
    double mean, variance, inverse, condition; /* condition: how far values lie from 0, in deviations */
};

static struct statistics statistics_of(const struct world *world, int64_t lane, int x, struct set set)
{
    struct statistics s = {0};
    double largest = 0;

    for (int64_t k = 0; k < set.count; k++)
        s.mean += before_stored(world, lane, x, set.first + k * set.step) / (double)set.count;
    for (int64_t k = 0; k < set.count; k++) {
        double value = before_stored(world, lane, x, set.first + k * set.step);
        s.variance += (value - s.mean) * (value - s.mean) / (double)set.count;
        largest = fmax(largest, fabs(value));
    }
    s.inverse = 1 / sqrt(s.variance + EPSILON);
    s.condition = 1 + (largest + fabs(s.mean)) * s.inverse;
    return s;
}

static void compare_set(const struct world *world, const struct norm *n, int64_t l, struct set set,
                        struct statistics s)
{
    double share = (double)(set.count + 24) * UNIT * s.condition;

    expect(world, "mean", l, set.number, after_real(world, l, n->saved, 2 * set.number), s.mean,
           share / s.inverse);
    expect(world, "inverse", l, set.number, after_real(world, l, n->saved, 2 * set.number + 1), s.inverse,
           share * s.inverse);
    for (int64_t k = 0; k < set.count; k++) {
        int64_t i = set.first + k * set.step;
        double gain = before_real(world, l, n->gain, i % n->columns);
        double offset = before_real(world, l, n->offset, i % n->columns);
        double normal = (before_stored(world, l, n->x, i) - s.mean) * s.inverse;
        double expected = normal * gain + offset;
        expect_stored(world, "y", l, n->y, i, expected,
                      share * (fabs(gain) * (1 + fabs(normal)) + fabs(offset)));
    }
}

/* The backward pass from what is saved, whatever that is. */
static void compare_slopes(const struct world *world, const struct norm *n, int64_t l, struct set set,
                           double dgain[], double doffset[], double dgain_size[])
{
    double mean = before_real(world, l, n->saved, 2 * set.number);
    double inverse = before_real(world, l, n->saved, 2 * set.number + 1);
    double sum = 0, cross = 0, sum_size = 0, cross_size = 0, condition = 1, count = (double)set.count;

    for (int64_t k = 0; k < set.count; k++) {
        int64_t i = set.first + k * set.step, j = i % n->columns;
        double x = before_stored(world, l, n->x, i), dy = before_stored(world, l, n->dy, i);
        double normal = (x - mean) * inverse, slope = dy * before_real(world, l, n->gain, j);
        sum += slope / count;
        sum_size += fabs(slope) / count;
        cross += slope * normal / count;
        cross_size += fabs(slope * normal) / count;
        condition = fmax(condition, 1 + (fabs(x) + fabs(mean)) * inverse);
        dgain[j] += dy * normal;
        doffset[j] += dy;
        dgain_size[j] += fabs(dy) * (fabs(normal) + (fabs(x) + fabs(mean)) * inverse);
    }
    for (int64_t k = 0; k < set.count; k++) {
        int64_t i = set.first + k * set.step;
        double normal = (before_stored(world, l, n->x, i) - mean) * inverse;
        double slope = before_stored(world, l, n->dy, i) * before_real(world, l, n->gain, i % n->columns);
        double size = inverse * (fabs(slope) + sum_size + fabs(normal) * cross_size + cross_size);
        double expected = inverse * (slope - sum - normal * cross);
        expect_stored(world, "dx", l, n->dx, i, expected, (count + 40) * UNIT * condition * size);
    }
}

static void compare_sums(const struct world *world, const struct norm *n, int64_t l, const double dgain[],
                         const double doffset[], const double dgain_size[], int64_t terms)
{
    for (int64_t j = 0; j < n->columns; j++) {
        double gain = n->accumulate ? before_real(world, l, n->dgain, j) : 0;
        double offset = n->accumulate ? before_real(world, l, n->doffset, j) : 0;
        double share = (double)(terms + 20) * UNIT;
        expect(world, "dgain", l, j, after_real(world, l, n->dgain, j), gain + dgain[j],
               share * (fabs(gain) + dgain_size[j]));
        expect(world, "doffset", l, j, after_real(world, l, n->doffset, j), offset + doffset[j],
               share * (fabs(offset) + (double)terms * 2));
    }
}

static void norm_open(struct world *world, struct norm *n, enum device_precision precision)
{
    int64_t count = n->rows * n->columns;

    world_init(world, precision);
    n->x = world_place_stored(world, count, false);
    n->y = world_place_stored(world, count, true);
    n->saved =
        world_place_real(world, 2 * (n->rows > n->columns ? n->rows : n->columns) * (n->rows + 1), true);
    n->gain = world_place_real(world, n->columns, false);
    n->offset = world_place_real(world, n->columns, false);
    n->running = world_place_real(world, 2 * n->columns, true);
    n->dgain = world_place_real(world, n->columns, true);
    n->doffset = world_place_real(world, n->columns, true);
    n->dy = world_place_stored(world, count, n->in_place);
    n->dx = n->in_place ? n->dy : world_place_stored(world, count, true);
    world_open(world, "norm %lldx%lld group %lld accumulate %d in place %d", (long long)n->rows,
               (long long)n->columns, (long long)n->group, n->accumulate, n->in_place);
    fill_stored(world, n->x, pow(10, random_real(-1, 1)));
    if (random_integer(0, 1)) /* away from 0 */
        for (int64_t l = 0; l < world->lanes.count; l++)
            for (int64_t i = 0; i < count; i++)
                stored_set(precision, world_before(world, l, n->x), i, before_stored(world, l, n->x, i) + 5);
    fill_real(world, n->gain, 2);
    fill_real(world, n->offset, 1);
    fill_stored(world, n->dy, 2);
    if (n->accumulate) {
        fill_real(world, n->dgain, 3);
        fill_real(world, n->doffset, 3);
    }
    fill_real(world, n->running, 1);
    for (int64_t l = 0; l < world->lanes.count; l++)
        for (int64_t j = 0; j < n->columns; j++)
            ((float *)world_before(world, l, n->running))[n->columns + j] = (float)random_real(0.1, 2);
}

static struct norm norm_draw(void)
{
    return (struct norm){.rows = random_size(90),
                         .columns = random_size(300),
                         .accumulate = random_integer(0, 1),
                         .in_place = random_integer(0, 1)};
}

static void call_layer(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct norm *n = data;
    operations->layer_norm(device, lanes, tensor_at(world, base, n->y), tensor_at(world, base, n->saved),
                           tensor_at(world, base, n->x), tensor_at(world, base, n->gain),
                           tensor_at(world, base, n->offset), n->rows, n->columns);
}

static void call_layer_backward(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct norm *n = data;
    operations->layer_norm_backward(device, lanes, tensor_at(world, base, n->dx),
                                    tensor_at(world, base, n->dgain), tensor_at(world, base, n->doffset),
                                    tensor_at(world, base, n->dy), tensor_at(world, base, n->x),
                                    tensor_at(world, base, n->saved), tensor_at(world, base, n->gain),
                                    n->rows, n->columns, n->accumulate);
}

void check_layer_norm(enum device_precision precision)
{
    struct norm n = norm_draw();
    struct world world;

    norm_open(&world, &n, precision);
    world_run(&world, call_layer, &n);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t i = 0; i < n.rows; i++)
            compare_set(&world, &n, l, set_of_row(&n, i), statistics_of(&world, l, n.x, set_of_row(&n, i)));
    world_advance(&world);
    world_run(&world, call_layer_backward, &n);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        double *sums = calloc((size_t)(3 * n.columns), sizeof(*sums));
        assert_non_null(sums);
        for (int64_t i = 0; i < n.rows; i++)
            compare_slopes(&world, &n, l, set_of_row(&n, i), sums, sums + n.columns, sums + 2 * n.columns);
        compare_sums(&world, &n, l, sums, sums + n.columns, sums + 2 * n.columns, n.rows);
        free(sums);
    }
    world_release(&world);
}

static void call_batch(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct norm *n = data;
    operations->batch_norm(device, lanes, tensor_at(world, base, n->y), tensor_at(world, base, n->saved),
                           tensor_at(world, base, n->running), tensor_at(world, base, n->x),
                           tensor_at(world, base, n->gain), tensor_at(world, base, n->offset), n->rows,
                           n->columns, n->group);
}

static void call_batch_apply(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct norm *n = data;
    operations->batch_norm_apply(device, lanes, tensor_at(world, base, n->y),
                                 tensor_at(world, base, n->running), tensor_at(world, base, n->x),
                                 tensor_at(world, base, n->gain), tensor_at(world, base, n->offset), n->rows,
                                 n->columns);
}

static void call_batch_backward(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct norm *n = data;
    operations->batch_norm_backward(device, lanes, tensor_at(world, base, n->dx),
                                    tensor_at(world, base, n->dgain), tensor_at(world, base, n->doffset),
                                    tensor_at(world, base, n->dy), tensor_at(world, base, n->x),
                                    tensor_at(world, base, n->saved), tensor_at(world, base, n->gain),
                                    n->rows, n->columns, n->group, n->accumulate);
}

static struct set set_of_column(const struct norm *n, const int64_t end[], int g, int64_t column)
{
    int64_t first = g ? end[g - 1] : 0;
    return (struct set){.first = first * n->columns + column,
                        .step = n->columns,
                        .count = end[g] - first,
                        .number = g * n->columns + column};
}

/* Column j of the batch: its groups one after the other, and the running statistics behind them. */
static void compare_column(const struct world *world, const struct norm *n, int64_t l, int64_t j)
{
    int64_t end[128];
    int groups = group_ends(n->rows, n->group, end);
    double mean = before_real(world, l, n->running, j);
    double variance = before_real(world, l, n->running, n->columns + j), room = 1;

    for (int g = 0; g < groups; g++) {
        struct set set = set_of_column(n, end, g, j);
        struct statistics s = statistics_of(world, l, n->x, set);
        double count = (double)set.count;
        compare_set(world, n, l, set, s);
        room += fabs(s.mean) + s.variance * s.condition * s.condition + s.condition / s.inverse;
        if (set.count == 1)
            continue;
        mean += 0.1 * (s.mean - mean);
        variance += 0.1 * (s.variance * count / (count - 1) - variance);
    }
    room *= (double)(n->rows + 24) * UNIT;
    expect(world, "running mean", l, j, after_real(world, l, n->running, j), mean, room);
    expect(world, "running variance", l, j, after_real(world, l, n->running, n->columns + j), variance, room);
}

static void compare_apply(const struct world *world, const struct norm *n, int64_t l)
{
    for (int64_t i = 0; i < n->rows * n->columns; i++) {
        int64_t j = i % n->columns;
        double mean = before_real(world, l, n->running, j), x = before_stored(world, l, n->x, i);
        double inverse = 1 / sqrt(before_real(world, l, n->running, n->columns + j) + EPSILON);
        double gain = before_real(world, l, n->gain, j), offset = before_real(world, l, n->offset, j);
        double size = (fabs(x) + fabs(mean)) * inverse * fabs(gain) + fabs(offset);
        expect_stored(world, "y", l, n->y, i, (x - mean) * inverse * gain + offset, 8 * UNIT * size);
    }
}

void check_batch_norm(enum device_precision precision)
{
    struct norm n = norm_draw();
    struct world world;
    int64_t end[128];

    /* Often a group of which one row is left, and groups of one row. */
    n.group = n.rows > 2 && random_integer(0, 2) == 0 ? n.rows - 1 : random_size(n.rows + 5);
    norm_open(&world, &n, precision);
    world_run(&world, call_batch, &n);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t j = 0; j < n.columns; j++)
            compare_column(&world, &n, l, j);
    world_advance(&world);
    world_run(&world, call_batch_apply, &n);
    for (int64_t l = 0; l < world.lanes.count; l++)
        compare_apply(&world, &n, l);
    world_run(&world, call_batch_backward, &n);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        double *sums = calloc((size_t)(3 * n.columns), sizeof(*sums));
        assert_non_null(sums);
        int groups = group_ends(n.rows, n.group, end);
        for (int g = 0; g < groups; g++)
            for (int64_t j = 0; j < n.columns; j++)
                compare_slopes(&world, &n, l, set_of_column(&n, end, g, j), sums, sums + n.columns,
                               sums + 2 * n.columns);
        compare_sums(&world, &n, l, sums, sums + n.columns, sums + 2 * n.columns, n.rows);
        free(sums);
    }
    world_release(&world);
}
