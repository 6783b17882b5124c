/* Losses and their gradients. */
#include "conformance.h"

struct loss {
    int64_t rows, classes;
    double scale;
    bool weighted;
    float weight[200];
    const void *class_weight; /* on the device, or NULL */
    int gradient, logits, label, target, state;
};

static void loss_weights(struct loss *loss)
{
    struct error err = {0};

    for (int c = 0; c < 200; c++)
        loss->weight[c] = (float)random_real(0.2, 3);
    loss->class_weight = NULL;
    if (loss->weighted &&
        operations->share(device, &loss->class_weight, loss->weight, sizeof(loss->weight), &err) != 0)
        fail_msg("%s", err.message);
}

static double weight_of(const struct loss *loss, int64_t c)
{
    return loss->weighted ? (double)loss->weight[c] : 1;
}

static void loss_release(struct world *world, struct loss *loss)
{
    world_release(world);
    if (loss->weighted)
        operations->unshare(device, loss->class_weight);
}

/* The sum, and that nothing else of the state has changed. */
static void compare_state(const struct world *world, const struct loss *loss, int64_t l, double sum,
                          double tolerance)
{
    struct lane_state state, expected;

    memcpy(&state, world_after(world, l, loss->state), sizeof(state));
    memcpy(&expected, world_before(world, l, loss->state), sizeof(expected));
    expect(world, "loss", l, 0, state.loss, expected.loss + sum, tolerance + 1e-15 * fabs(expected.loss));
    expected.loss = state.loss;
    assert_memory_equal(&state, &expected, sizeof(state));
}

static void call_softmax(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct loss *loss = data;
    operations->softmax_cross_entropy(device, lanes, tensor_at(world, base, loss->gradient),
                                      tensor_at(world, base, loss->logits),
                                      tensor_at(world, base, loss->label), loss->class_weight, loss->rows,
                                      loss->classes, loss->scale, tensor_at(world, base, loss->state));
}

/* One row's loss; *error is how wrong float32 may be. */
static double softmax_row(const struct world *world, const struct loss *loss, int64_t l, int64_t row,
                          const struct lane_state *state, double *error)
{
    int32_t label = ((const int32_t *)world_before(world, l, loss->label))[row];
    int64_t classes = loss->classes, at = row * classes;
    double maximum = -INFINITY, sum = 0, all = 0, value = 0, size = 0, s = state->label_smoothing;
    double scale = loss->scale * state->loss_scale;

    for (int64_t c = 0; c < classes; c++)
        maximum = fmax(maximum, before_real(world, l, loss->logits, at + c));
    for (int64_t c = 0; c < classes; c++)
        sum += exp(before_real(world, l, loss->logits, at + c) - maximum);
    for (int64_t c = 0; c < classes; c++) {
        double t = s / (double)classes * weight_of(loss, c) + (c == label ? (1 - s) * weight_of(loss, c) : 0);
        double z = before_real(world, l, loss->logits, at + c);
        all += t;
        value += t * (log(sum) + maximum - z);
        size += t * (1 + fabs(maximum) + fabs(z));
    }
    for (int64_t c = 0; c < classes; c++) {
        double t = s / (double)classes * weight_of(loss, c) + (c == label ? (1 - s) * weight_of(loss, c) : 0);
        double z = before_real(world, l, loss->logits, at + c) - maximum, p = exp(z) / sum;
        double room = ((double)classes + 16 + fabs(z)) * UNIT * (all * p + 4 * t) + 1e-36;
        expect_stored(world, "gradient", l, loss->gradient, at + c, scale * (all * p - t), scale * room);
    }
    *error += ((double)classes + 16) * UNIT * size;
    return value;
}

void check_softmax_cross_entropy(enum device_precision precision)
{
    struct loss loss = {.rows = random_size(140),
                        .classes = 1 + random_size(150),
                        .scale = random_real(0.001, 1),
                        .weighted = random_integer(0, 1)};
    struct world world;

    loss_weights(&loss);
    world_init(&world, precision);
    loss.gradient = world_place_stored(&world, loss.rows * loss.classes, true);
    loss.logits = world_place_real(&world, loss.rows * loss.classes, false);
    loss.label = world_place(&world, loss.rows, sizeof(int32_t), false);
    loss.state = world_place_state(&world, true);
    world_open(&world, "softmax_cross_entropy %lldx%lld weighted %d", (long long)loss.rows,
               (long long)loss.classes, loss.weighted);
    fill_real(&world, loss.logits, pow(10, random_real(-1, 2.5))); /* naive exponentials would overflow */
    fill_integers(&world, loss.label, (int32_t)loss.classes);
    fill_state(&world, loss.state);
    world_run(&world, call_softmax, &loss);
    for (int64_t l = 0; l < world.lanes.count; l++) {
        double sum = 0, error = 0;
        for (int64_t i = 0; i < loss.rows; i++)
            sum += softmax_row(&world, &loss, l, i, world_before(&world, l, loss.state), &error);
        compare_state(&world, &loss, l, sum, error);
    }
    loss_release(&world, &loss);
}

static void call_binary(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct loss *loss = data;
    operations->binary_cross_entropy(device, lanes, tensor_at(world, base, loss->gradient),
                                     tensor_at(world, base, loss->logits),
                                     tensor_at(world, base, loss->label), loss->class_weight, loss->rows,
                                     loss->scale, tensor_at(world, base, loss->state));
}

static void compare_binary(const struct world *world, const struct loss *loss, int64_t l)
{
    const struct lane_state *state = world_before(world, l, loss->state);
    const int32_t *label = world_before(world, l, loss->label);
    double sum = 0, error = 0, s = state->label_smoothing, scale = loss->scale * state->loss_scale;

    for (int64_t i = 0; i < loss->rows; i++) {
        double z = before_real(world, l, loss->logits, i), w = weight_of(loss, label[i]);
        double q = label[i] * (1 - s) + s / 2, softplus = z > 30 ? z + exp(-z) : log1p(exp(z));
        double logistic = 1 / (1 + exp(-z));
        sum += w * (softplus - z * q);
        error += 16 * UNIT * w * (1 + fabs(z));
        expect_stored(world, "gradient", l, loss->gradient, i, scale * w * (logistic - q),
                      16 * UNIT * scale * w * (logistic * (1 + fabs(z)) + q));
    }
    compare_state(world, loss, l, sum, error);
}

void check_binary_cross_entropy(enum device_precision precision)
{
    struct loss loss = {.rows = random_size(300),
                        .classes = 2,
                        .scale = random_real(0.001, 1),
                        .weighted = random_integer(0, 1)};
    struct world world;

    loss_weights(&loss);
    world_init(&world, precision);
    loss.gradient = world_place_stored(&world, loss.rows, true);
    loss.logits = world_place_real(&world, loss.rows, false);
    loss.label = world_place(&world, loss.rows, sizeof(int32_t), false);
    loss.state = world_place_state(&world, true);
    world_open(&world, "binary_cross_entropy %lld weighted %d", (long long)loss.rows, loss.weighted);
    fill_real(&world, loss.logits, pow(10, random_real(-1, 2)));
    fill_integers(&world, loss.label, 2);
    fill_state(&world, loss.state);
    world_run(&world, call_binary, &loss);
    for (int64_t l = 0; l < world.lanes.count; l++)
        compare_binary(&world, &loss, l);
    loss_release(&world, &loss);
}

static void call_squared(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct loss *loss = data;
    operations->squared_error(device, lanes, tensor_at(world, base, loss->gradient),
                              tensor_at(world, base, loss->logits), tensor_at(world, base, loss->target),
                              loss->rows, loss->scale, tensor_at(world, base, loss->state));
}

static void call_huber(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct loss *loss = data;
    operations->huber_error(device, lanes, tensor_at(world, base, loss->gradient),
                            tensor_at(world, base, loss->logits), tensor_at(world, base, loss->target),
                            loss->rows, loss->scale, tensor_at(world, base, loss->state));
}

static void compare_error(const struct world *world, const struct loss *loss, int64_t l, bool huber)
{
    const struct lane_state *state = world_before(world, l, loss->state);
    double sum = 0, error = 0, d = state->huber_delta, scale = loss->scale * state->loss_scale;

    for (int64_t i = 0; i < loss->rows; i++) {
        double prediction = before_real(world, l, loss->logits, i);
        double target = before_real(world, l, loss->target, i), r = prediction - target, slope = 2 * r;
        if (huber) {
            sum += fabs(r) <= d ? r * r / 2 : d * (fabs(r) - d / 2);
            slope = fabs(r) <= d ? r : r > 0 ? d : -d;
        } else {
            sum += r * r;
        }
        error += 16 * UNIT * (r * r + 1e-3);
        expect_stored(world, "gradient", l, loss->gradient, i, scale * slope,
                      8 * UNIT * scale * (fabs(slope) + fabs(r)));
    }
    compare_state(world, loss, l, sum, error);
}

void check_errors(enum device_precision precision)
{
    struct loss loss = {.rows = random_size(1500), .scale = random_real(0.001, 1)};

    for (int huber = 0; huber < 2; huber++) {
        struct world world;
        world_init(&world, precision);
        loss.gradient = world_place_stored(&world, loss.rows, true);
        loss.logits = world_place_real(&world, loss.rows, false);
        loss.target = world_place_real(&world, loss.rows, false);
        loss.state = world_place_state(&world, true);
        world_open(&world, "%s %lld", huber ? "huber_error" : "squared_error", (long long)loss.rows);
        fill_real(&world, loss.logits, 3);
        fill_real(&world, loss.target, 3);
        fill_state(&world, loss.state);
        world_run(&world, huber ? call_huber : call_squared, &loss);
        for (int64_t l = 0; l < world.lanes.count; l++)
            compare_error(&world, &loss, l, huber);
        world_release(&world);
    }
}
