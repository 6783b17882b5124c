/* Gradients measured, optimizers' steps. */
#include "conformance.h"

struct measured {
    int64_t count;
    int gradient, state;
};

static void call_measure(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct measured *m = data;
    operations->measure_gradient(device, lanes, tensor_at(world, base, m->gradient), m->count,
                                 tensor_at(world, base, m->state));
}

static void compare_measured(const struct world *world, const struct measured *m, int64_t l, bool finite)
{
    struct lane_state found, expected;
    double squares = 0, factor;

    memcpy(&found, world_after(world, l, m->state), sizeof(found));
    memcpy(&expected, world_before(world, l, m->state), sizeof(expected));
    assert_int_equal(found.finite, finite);
    if (finite) {
        for (int64_t i = 0; i < m->count; i++)
            squares += pow(before_real(world, l, m->gradient, i), 2);
        double norm = sqrt(squares) / expected.loss_scale;
        factor = 1 / expected.loss_scale;
        if (expected.clip_norm > 0)
            factor *= fmin(1, expected.clip_norm / (norm + 1e-6));
        expect(world, "norm", l, 0, found.gradient_norm, norm, 1e-6 * norm);
        expect(world, "factor", l, 0, found.gradient_factor, factor, 1e-6 * factor);
    }
    expected.finite = found.finite;
    expected.gradient_norm = found.gradient_norm;
    expected.gradient_factor = found.gradient_factor;
    assert_memory_equal(&found, &expected, sizeof(found));
}

void check_measure_gradient(enum device_precision precision)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct measured m = {.count = random_size(9000)};
    struct world world;

    world_init(&world, precision);
    m.gradient = world_place_real(&world, m.count, false);
    m.state = world_place_state(&world, true);
    world_open(&world, "measure_gradient %lld", (long long)m.count);
    fill_real(&world, m.gradient, pow(10, random_real(-3, 3)));
    fill_state(&world, m.state);
    if (world.lanes.count > 1)
        ((float *)world_before(&world, 1, m.gradient))[random_integer(0, m.count - 1)] =
            bad[random_integer(0, 2)];
    for (int64_t l = 0; l < world.lanes.count; l++)
        ((struct lane_state *)world_before(&world, l, m.state))->finite = (int32_t)random_integer(0, 1);
    world_run(&world, call_measure, &m);
    for (int64_t l = 0; l < world.lanes.count; l++)
        compare_measured(&world, &m, l, l != 1);
    world_release(&world);
}

enum { MOST_TENSORS = 5 };

struct update {
    enum device_optimizer optimizer;
    int64_t count, decayed, tensor_end[MOST_TENSORS];
    int tensors, moments; /* how many there are */
    bool copied;
    int weight, gradient, moment[2], stored, state;
};

static void call_update(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct update *u = data;
    struct device_parameters parameters = {.weight = tensor_at(world, base, u->weight),
                                           .gradient = tensor_at(world, base, u->gradient),
                                           .count = u->count,
                                           .decayed = u->decayed,
                                           .tensor_end = u->tensor_end,
                                           .tensors = u->tensors};

    for (int m = 0; m < u->moments; m++)
        parameters.moment[m] = tensor_at(world, base, u->moment[m]);
    if (u->copied)
        parameters.stored = tensor_at(world, base, u->stored);
    operations->update(device, lanes, u->optimizer, &parameters, tensor_at(world, base, u->state));
}

/* One parameter on its way: what it was, what it becomes, and how wrong float32 may be about that. */
struct step {
    double w, g, g_error, wd, first, second, change, error, w_next;
    double first_error, second_error;
};

/* Moments end at 0 below 1e-30. */
static void compare_moment(const struct world *world, const char *name, int64_t l, int tensor, int64_t i,
                           double expected, double error)
{
    double found = after_real(world, l, tensor, i);

    if (fabs(expected) < 0.9e-30)
        expect(world, name, l, i, found, 0, 0);
    else if (fabs(expected) > 1.1e-30)
        expect(world, name, l, i, found, expected, error);
}

static bool by_moments(const struct update *u)
{
    return u->optimizer == DEVICE_ADAM || u->optimizer == DEVICE_ADAMW || u->optimizer == DEVICE_LAMB;
}

/* m and v, and m^ / (sqrt(v^) + epsilon) as `change`. */
static void step_moments(struct step *s, const struct lane_state *state)
{
    double t = (double)(state->updates + 1), root;
    double terms = fabs(state->beta1 * s->first) + fabs((1 - state->beta1) * s->g);

    s->first = state->beta1 * s->first + (1 - state->beta1) * s->g;
    s->second = state->beta2 * s->second + (1 - state->beta2) * s->g * s->g;
    s->first_error = 6 * UNIT * terms + (1 - state->beta1) * s->g_error;
    s->second_error = 8 * UNIT * s->second + 2 * (1 - state->beta2) * fabs(s->g) * s->g_error;
    if (fabs(s->first) < 1e-30)
        s->first = 0;
    if (s->second < 1e-30)
        s->second = 0;
    root = sqrt(s->second / (1 - pow(state->beta2, t))) + state->epsilon;
    s->change = s->first / (1 - pow(state->beta1, t)) / root;
    s->error = s->first_error / (1 - pow(state->beta1, t)) / root + 24 * UNIT * fabs(s->change);
    if (s->second > 0) /* a root's relative error is half its argument's */
        s->error += fabs(s->change) * s->second_error / s->second;
}

static void step_velocity(struct step *s, const struct update *u, const struct lane_state *state)
{
    double momentum = u->moments ? state->momentum : 0, size = fabs(momentum * s->first) + fabs(s->g);

    s->first = momentum * s->first + s->g;
    if (fabs(s->first) < 1e-30 && u->moments)
        s->first = 0;
    s->first_error = 8 * UNIT * size + s->g_error;
    s->change = state->nesterov && u->moments ? s->g + momentum * s->first : s->first;
    s->error = 16 * UNIT * (size + fabs(s->g)) + 2 * s->g_error;
}

static struct step step_of(const struct world *world, const struct update *u, int64_t l, int64_t i,
                           double ratio)
{
    const struct lane_state *state = world_before(world, l, u->state);
    struct step s = {.w = before_real(world, l, u->weight, i),
                     .g = before_real(world, l, u->gradient, i) * state->gradient_factor,
                     .wd = i < u->decayed ? state->weight_decay : 0};

    s.g_error = 4 * UNIT * (fabs(s.g) + s.wd * fabs(s.w)); /* the two may cancel */
    if (u->moments > 0)
        s.first = before_real(world, l, u->moment[0], i);
    if (u->moments > 1)
        s.second = before_real(world, l, u->moment[1], i);
    if (u->optimizer == DEVICE_SGD || u->optimizer == DEVICE_ADAM)
        s.g += s.wd * s.w;
    if (u->optimizer == DEVICE_LARS)
        s.g = (s.g + s.wd * s.w) * ratio;
    if (by_moments(u))
        step_moments(&s, state);
    else
        step_velocity(&s, u, state);
    if (u->optimizer == DEVICE_LARS)
        s.error += 4e-6 * (fabs(s.g) + s.wd * fabs(s.w));
    if (u->optimizer == DEVICE_LAMB) {
        s.change = ratio * (s.change + s.wd * s.w);
        s.error = ratio * s.error + 4e-6 * fabs(s.change) + 8 * UNIT * ratio * s.wd * fabs(s.w);
    }
    s.w_next = s.w;
    if (u->optimizer == DEVICE_ADAMW)
        s.w_next -= state->learning_rate * s.wd * s.w;
    s.w_next -= state->learning_rate * s.change;
    s.error = state->learning_rate * s.error + 4 * UNIT * (fabs(s.w) + state->learning_rate * fabs(s.change));
    return s;
}

/* The ratio of parameters first..end-1, one tensor. */
static double ratio_of(const struct world *world, const struct update *u, int64_t l, int64_t first,
                       int64_t end)
{
    const struct lane_state *state = world_before(world, l, u->state);
    double w = 0, g = 0, direction = 0;

    for (int64_t i = first; i < end; i++) {
        struct step s = step_of(world, u, l, i, 1);
        w += s.w * s.w;
        g += pow(before_real(world, l, u->gradient, i) * state->gradient_factor, 2);
        direction += s.change * s.change;
    }
    if (u->optimizer == DEVICE_LAMB)
        return w == 0 || direction == 0 ? 1 : sqrt(w / direction);
    return w == 0 ? 1 : 0.001 * sqrt(w) / (sqrt(g) + state->weight_decay * sqrt(w) + 1e-8);
}

static void compare_range(const struct world *world, const struct update *u, int64_t l, int64_t first,
                          int64_t end, double ratio)
{
    enum device_precision precision = world->lanes.precision;

    for (int64_t i = first; i < end; i++) {
        struct step s = step_of(world, u, l, i, ratio);
        double velocity_error = u->optimizer == DEVICE_LARS ? 4e-6 * (fabs(s.g) + s.wd * fabs(s.w)) : 0;
        expect(world, "weight", l, i, after_real(world, l, u->weight, i), s.w_next, s.error);
        if (u->moments > 0)
            compare_moment(world, "first moment", l, u->moment[0], i, s.first,
                           s.first_error + velocity_error);
        if (u->moments > 1)
            compare_moment(world, "second moment", l, u->moment[1], i, s.second, s.second_error);
        if (u->copied)
            expect(world, "stored", l, i, after_stored(world, l, u->stored, i),
                   stored_round(precision, after_real(world, l, u->weight, i)), 0);
    }
}

static void compare_update(const struct world *world, const struct update *u, int64_t l)
{
    const struct lane_state *state = world_before(world, l, u->state);
    bool by_tensor = u->optimizer == DEVICE_LAMB || u->optimizer == DEVICE_LARS;
    int64_t first = 0;

    if (!state->finite) { /* nothing at all */
        assert_memory_equal(world_after(world, l, 0), world_before(world, l, 0),
                            world->lanes.stride - world->tensor[0].at);
        return;
    }
    for (int t = 0; by_tensor && t < u->tensors; first = u->tensor_end[t++])
        compare_range(world, u, l, first, u->tensor_end[t], ratio_of(world, u, l, first, u->tensor_end[t]));
    compare_range(world, u, l, first, u->count, 1);
}

static void update_fill(struct world *world, const struct update *u)
{
    fill_real(world, u->weight, 1);
    fill_real(world, u->gradient, pow(10, random_real(-2, 1)));
    fill_state(world, u->state);
    for (int m = 0; m < u->moments; m++)
        fill_real(world, u->moment[m], m ? 0.1 : 0.5);
    for (int64_t l = 0; l < world->lanes.count; l++) {
        float *weight = world_before(world, l, u->weight), *gradient = world_before(world, l, u->gradient);
        for (int64_t i = 0; u->moments > 1 && i < u->count; i++) {
            float *square = world_before(world, l, u->moment[1]);
            square[i] = fabsf(square[i]);
        }
        for (int64_t i = 0; i < u->count; i += 7) { /* a dead unit: moments that decay into nothing */
            gradient[i] = 0;
            for (int m = 0; m < u->moments; m++)
                ((float *)world_before(world, l, u->moment[m]))[i] =
                    (float)(1e-30 * pow(10, random_real(-1, 1)));
        }
        if (l == 2 && u->tensors > 0) /* a tensor of zeros: no ratio */
            memset(weight, 0, (size_t)u->tensor_end[0] * sizeof(*weight));
        if (l == 1)
            ((struct lane_state *)world_before(world, l, u->state))->finite = 0;
    }
}

static struct update update_draw(enum device_optimizer optimizer, enum device_precision precision)
{
    struct update u = {.optimizer = optimizer, .count = random_size(12000)};

    u.decayed = random_integer(0, 4) ? random_integer(0, u.count) : u.count;
    for (int t = 0; t < MOST_TENSORS && (t == 0 || u.tensor_end[t - 1] < u.decayed) && u.decayed > 0; t++) {
        int64_t first = t ? u.tensor_end[t - 1] : 0;
        u.tensor_end[u.tensors++] = t + 1 == MOST_TENSORS ? u.decayed : random_integer(first + 1, u.decayed);
    }
    u.moments = by_moments(&u) ? 2 : (int)random_integer(0, 3) != 0;
    u.copied = device_stored_size(precision) == 2;
    return u;
}

static void check_optimizer(enum device_optimizer optimizer, enum device_precision precision)
{
    struct update u = update_draw(optimizer, precision);
    struct world world;

    world_init(&world, precision);
    u.weight = world_place_real(&world, u.count, true);
    u.gradient = world_place_real(&world, u.count, false);
    u.moment[0] = world_place_real(&world, u.count, u.moments > 0);
    u.moment[1] = world_place_real(&world, u.count, u.moments > 1);
    u.stored = world_place_stored(&world, u.count, u.copied);
    u.state = world_place_state(&world, false);
    world_open(&world, "update by optimizer %d of %lld, %lld decayed, %d tensors, %d moments", optimizer,
               (long long)u.count, (long long)u.decayed, u.tensors, u.moments);
    update_fill(&world, &u);
    for (int step = 0; step < 3; step++) { /* each from what the last one left */
        world_run(&world, call_update, &u);
        for (int64_t l = 0; l < world.lanes.count; l++)
            compare_update(&world, &u, l);
        world_advance(&world);
        for (int64_t l = 0; l < world.lanes.count; l++)
            ((struct lane_state *)world_before(&world, l, u.state))->updates++;
    }
    world_release(&world);
}

void check_update(enum device_precision precision)
{
    for (int optimizer = DEVICE_SGD; optimizer <= DEVICE_LARS; optimizer++)
        check_optimizer((enum device_optimizer)optimizer, precision);
}
