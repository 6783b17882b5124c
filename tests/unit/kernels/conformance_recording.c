/* Recording: a step noted once and replayed gives the bits of as many steps done directly. */
#include "conformance.h"

enum { ROWS = 20, COLUMNS = 13, OUTPUTS = 6, BATCHES = 8 };

struct recorded {
    const void *source;
    int x, order, rates, state, weight, bias, y, mask, dy, gradient, moment[2], label, stored;
    const void *labels;
    int64_t end;
};

/* A small training step: gather, linear, dropout, loss, gradients, update. */
static void call_step(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct recorded *r = data;
    struct lane_state *state = tensor_at(world, base, r->state);
    struct device_rows_of of = {.order = tensor_at(world, base, r->order), .state = state, .batch = ROWS};
    bool copied = device_stored_size(lanes.precision) == 2;
    real *gradient = tensor_at(world, base, r->gradient);
    struct device_parameters parameters = {
        .weight = tensor_at(world, base, r->weight),
        .gradient = gradient,
        .moment = {tensor_at(world, base, r->moment[0]), tensor_at(world, base, r->moment[1])},
        .stored = copied ? tensor_at(world, base, r->stored) : NULL,
        .count = (COLUMNS + 1) * OUTPUTS,
        .decayed = r->end,
        .tensor_end = &r->end,
        .tensors = 1};

    operations->step_begin(device, lanes, state, tensor_at(world, base, r->rates));
    operations->gather(device, lanes, tensor_at(world, base, r->x), COLUMNS, r->source, of, ROWS, COLUMNS);
    operations->gather_integers(device, lanes, tensor_at(world, base, r->label), r->labels, of, ROWS, 1);
    operations->dropout(device, lanes, tensor_at(world, base, r->x), tensor_at(world, base, r->mask), 0, ROWS,
                        COLUMNS, 1, state);
    operations->linear_forward(device, lanes, tensor_at(world, base, r->y), NULL,
                               tensor_at(world, base, r->x), copied ? parameters.stored : parameters.weight,
                               parameters.weight + COLUMNS * OUTPUTS, ROWS, COLUMNS, OUTPUTS, DEVICE_IDENTITY,
                               true);
    operations->softmax_cross_entropy(device, lanes, tensor_at(world, base, r->dy),
                                      tensor_at(world, base, r->y), tensor_at(world, base, r->label), NULL,
                                      ROWS, OUTPUTS, 1.0 / ROWS, state);
    operations->linear_backward_parameters(device, lanes, gradient, gradient + COLUMNS * OUTPUTS,
                                           tensor_at(world, base, r->x), tensor_at(world, base, r->dy), ROWS,
                                           COLUMNS, OUTPUTS, false);
    operations->measure_gradient(device, lanes, gradient, parameters.count, state);
    operations->update(device, lanes, DEVICE_LAMB, &parameters, state);
    operations->step_end(device, lanes, state);
}

static void place(struct world *world, struct recorded *r)
{
    int64_t parameters = (COLUMNS + 1) * OUTPUTS;

    r->end = COLUMNS * OUTPUTS;
    r->x = world_place_stored(world, ROWS * COLUMNS, true);
    r->order = world_place(world, BATCHES * ROWS, sizeof(int32_t), false);
    r->rates = world_place(world, BATCHES, sizeof(double), false);
    r->state = world_place_state(world, true);
    r->weight = world_place_real(world, parameters, true);
    r->y = world_place_real(world, ROWS * OUTPUTS, true);
    r->mask = world_place(world, ROWS * COLUMNS, 1, true);
    r->dy = world_place_stored(world, ROWS * OUTPUTS, true);
    r->gradient = world_place_real(world, parameters, true);
    r->moment[0] = world_place_real(world, parameters, true);
    r->moment[1] = world_place_real(world, parameters, true);
    r->label = world_place(world, ROWS, sizeof(int32_t), true);
    r->stored = world_place_stored(world, parameters, true);
}

static void fill(struct world *world, const struct recorded *r)
{
    fill_integers(world, r->order, 50);
    fill_state(world, r->state);
    fill_real(world, r->weight, 0.5);
    fill_real(world, r->moment[0], 0);
    fill_real(world, r->moment[1], 0);
    for (int64_t l = 0; l < world->lanes.count; l++) {
        struct lane_state *state = world_before(world, l, r->state);
        state->epoch_first = state->step;
        for (int i = 0; i < BATCHES; i++)
            ((double *)world_before(world, l, r->rates))[i] = random_real(0, 0.1);
        for (int64_t i = 0; i < (COLUMNS + 1) * OUTPUTS; i++)
            stored_set(world->lanes.precision, world_before(world, l, r->stored), i,
                       before_real(world, l, r->weight, i));
    }
}

/* Uploads the world as it was, does `steps` of it by a recording, and downloads it. */
static void replay(const struct world *world, const struct recorded *r, int64_t steps, unsigned char *found)
{
    size_t bytes = (size_t)world->lanes.count * world->lanes.stride;
    struct device_recording *recording = NULL;
    struct error err = {0};

    if (operations->record_begin(device, &err) != 0)
        fail_msg("%s", err.message);
    call_step(world, world->memory, world->lanes, r);
    if (operations->record_end(device, &recording, &err) != 0)
        fail_msg("%s", err.message);
    operations->upload(device, world->memory, world->before, bytes); /* nothing was done while recording */
    operations->replay(device, recording, 1);
    operations->replay(device, recording, steps - 1);
    operations->replay(device, recording, 0);
    settle();
    operations->download(device, found, world->memory, bytes);
    settle();
    operations->forget(device, recording);
}

void check_recording(enum device_precision precision)
{
    float values[50 * COLUMNS];
    int32_t labels[50];
    int64_t steps = random_integer(2, BATCHES);
    struct recorded r = {0};
    struct error err = {0};
    struct world world;

    if (!operations->record_begin)
        return; /* test_every_operation_is_checked has seen that none of it is there */
    for (int i = 0; i < 50 * COLUMNS; i++)
        values[i] = (float)random_real(-2, 2);
    for (int i = 0; i < 50; i++)
        labels[i] = (int32_t)random_integer(0, OUTPUTS - 1);
    if (operations->share(device, &r.source, values, sizeof(values), &err) != 0 ||
        operations->share(device, &r.labels, labels, sizeof(labels), &err) != 0)
        fail_msg("%s", err.message);
    world_init(&world, precision);
    place(&world, &r);
    world_open(&world, "recording");
    fill(&world, &r);
    size_t bytes = (size_t)world.lanes.count * world.lanes.stride;
    unsigned char *found = malloc(bytes);
    assert_non_null(found);
    operations->upload(device, world.memory, world.before, bytes);
    for (int64_t i = 0; i < steps; i++)
        call_step(&world, world.memory, world.lanes, &r);
    settle();
    operations->download(device, world.after, world.memory, bytes);
    replay(&world, &r, steps, found);
    assert_memory_equal(found, world.after, bytes);
    free(found);
    world_release(&world);
    operations->unshare(device, r.source);
    operations->unshare(device, r.labels);
}
