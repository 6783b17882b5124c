/* Linear layers. The bound of a product of k terms: any order of float32 sums keeps k 2^-24 sum |a||b|
 * (Higham 2002, section 3.1), of which the accumulators of some hardware take twice as much; tf32's operands
 * are rounded by 2^-11 besides. */
#include "conformance.h"

#define OPERAND_UNIT 0x1p-11 /* tf32 */

struct linear {
    int64_t rows, inputs, outputs;
    enum device_activation f;
    bool wide, keeps, accumulate;
    int x, weight, bias, y, before, dy, dx, dweight, dbias;
};

static struct linear linear_draw(void)
{
    return (struct linear){.rows = random_size(140),
                           .inputs = random_size(260),
                           .outputs = random_size(200),
                           .f = (enum device_activation)random_integer(DEVICE_IDENTITY, DEVICE_TANH),
                           .wide = random_integer(0, 3) == 0,
                           .keeps = random_integer(0, 1),
                           .accumulate = random_integer(0, 1)};
}

static double product_bound(enum device_precision precision, int64_t terms, double absolute)
{
    return ((double)(2 * terms + 8) * UNIT + (precision == DEVICE_TF32 ? 4 * OPERAND_UNIT : 0)) * absolute;
}

static void call_forward(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct linear *p = data;
    operations->linear_forward(
        device, lanes, tensor_at(world, base, p->y), p->keeps ? tensor_at(world, base, p->before) : NULL,
        tensor_at(world, base, p->x), tensor_at(world, base, p->weight), tensor_at(world, base, p->bias),
        p->rows, p->inputs, p->outputs, p->f, p->wide);
}

static void compare_forward(const struct world *world, const struct linear *p, int64_t l)
{
    enum device_precision precision = world->lanes.precision;

    for (int64_t i = 0; i < p->rows * p->outputs; i++) {
        double sum = before_real(world, l, p->bias, i % p->outputs), absolute = fabs(sum);
        for (int64_t k = 0; k < p->inputs; k++) {
            double term = before_stored(world, l, p->x, i / p->outputs * p->inputs + k) *
                          before_stored(world, l, p->weight, k * p->outputs + i % p->outputs);
            sum += term;
            absolute += fabs(term);
        }
        double error = product_bound(precision, p->inputs, absolute);
        if (p->keeps)
            expect_stored(world, "before", l, p->before, i, sum, error);
        /* f may be taken of the argument as it is kept; no slope exceeds 1.13 */
        double kept = p->wide || p->f == DEVICE_IDENTITY || p->f == DEVICE_RELU
                          ? 0
                          : stored_unit(precision) * fabs(sum);
        double expected = activation_of(sum, p->f);
        error = 1.13 * (error + kept) + 8 * UNIT * fabs(expected) + 1e-7 * kept;
        if (p->wide)
            expect(world, "y", l, i, after_real(world, l, p->y, i), expected, error);
        else
            expect_stored(world, "y", l, p->y, i, expected, error);
    }
}

void check_linear_forward(enum device_precision precision)
{
    struct linear p = linear_draw();
    struct world world;

    world_init(&world, precision);
    p.x = world_place_stored(&world, p.rows * p.inputs, false);
    p.weight = world_place_stored(&world, p.inputs * p.outputs, false);
    p.bias = world_place_real(&world, p.outputs, false);
    p.before = world_place_stored(&world, p.rows * p.outputs, p.keeps);
    if (p.wide)
        p.y = world_place_real(&world, p.rows * p.outputs, true);
    else
        p.y = world_place_stored(&world, p.rows * p.outputs, true);
    world_open(&world, "linear_forward %lldx%lldx%lld f %d wide %d before %d", (long long)p.rows,
               (long long)p.inputs, (long long)p.outputs, p.f, p.wide, p.keeps);
    fill_stored(&world, p.x, 1);
    fill_stored(&world, p.weight, 2 / sqrt((double)p.inputs));
    fill_real(&world, p.bias, 1);
    world_run(&world, call_forward, &p);
    for (int64_t l = 0; l < world.lanes.count; l++)
        compare_forward(&world, &p, l);
    world_release(&world);
}

static void call_data(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct linear *p = data;
    operations->linear_backward_data(device, lanes, tensor_at(world, base, p->dx),
                                     tensor_at(world, base, p->dy), tensor_at(world, base, p->weight),
                                     p->rows, p->inputs, p->outputs);
}

void check_linear_backward_data(enum device_precision precision)
{
    struct linear p = linear_draw();
    struct world world;

    world_init(&world, precision);
    p.dx = world_place_stored(&world, p.rows * p.inputs, true);
    p.weight = world_place_stored(&world, p.inputs * p.outputs, false);
    p.dy = world_place_stored(&world, p.rows * p.outputs, false);
    world_open(&world, "linear_backward_data %lldx%lldx%lld", (long long)p.rows, (long long)p.inputs,
               (long long)p.outputs);
    fill_stored(&world, p.dy, 1);
    fill_stored(&world, p.weight, 1);
    world_run(&world, call_data, &p);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t i = 0; i < p.rows * p.inputs; i++) {
            double sum = 0, absolute = 0;
            for (int64_t j = 0; j < p.outputs; j++) {
                double term = before_stored(&world, l, p.dy, i / p.inputs * p.outputs + j) *
                              before_stored(&world, l, p.weight, i % p.inputs * p.outputs + j);
                sum += term;
                absolute += fabs(term);
            }
            expect_stored(&world, "dx", l, p.dx, i, sum, product_bound(precision, p.outputs, absolute));
        }
    world_release(&world);
}

static void call_parameters(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct linear *p = data;
    operations->linear_backward_parameters(device, lanes, tensor_at(world, base, p->dweight),
                                           tensor_at(world, base, p->dbias), tensor_at(world, base, p->x),
                                           tensor_at(world, base, p->dy), p->rows, p->inputs, p->outputs,
                                           p->accumulate);
}

/* Element j of column k of dweight; k = inputs stands for dbias, as if x had a column of ones. */
static void compare_gradient(const struct world *world, const struct linear *p, int64_t l, int64_t k,
                             int64_t j)
{
    bool bias = k == p->inputs;
    int tensor = bias ? p->dbias : p->dweight;
    int64_t at = bias ? j : k * p->outputs + j;
    double sum = p->accumulate ? before_real(world, l, tensor, at) : 0, absolute = fabs(sum);

    for (int64_t i = 0; i < p->rows; i++) {
        double term = (bias ? 1 : before_stored(world, l, p->x, i * p->inputs + k)) *
                      before_stored(world, l, p->dy, i * p->outputs + j);
        sum += term;
        absolute += fabs(term);
    }
    expect(world, bias ? "dbias" : "dweight", l, at, after_real(world, l, tensor, at), sum,
           product_bound(bias ? DEVICE_FP32 : world->lanes.precision, p->rows, absolute));
}

void check_linear_backward_parameters(enum device_precision precision)
{
    struct linear p = linear_draw();
    struct world world;

    world_init(&world, precision);
    p.x = world_place_stored(&world, p.rows * p.inputs, false);
    p.dy = world_place_stored(&world, p.rows * p.outputs, false);
    p.dweight = world_place_real(&world, p.inputs * p.outputs, true);
    p.dbias = world_place_real(&world, p.outputs, true);
    world_open(&world, "linear_backward_parameters %lldx%lldx%lld accumulate %d", (long long)p.rows,
               (long long)p.inputs, (long long)p.outputs, p.accumulate);
    fill_stored(&world, p.x, 1);
    fill_stored(&world, p.dy, 1);
    if (p.accumulate) {
        fill_real(&world, p.dweight, 2);
        fill_real(&world, p.dbias, 2);
    }
    world_run(&world, call_parameters, &p);
    for (int64_t l = 0; l < world.lanes.count; l++)
        for (int64_t k = 0; k <= p.inputs; k++)
            for (int64_t j = 0; j < p.outputs; j++)
                compare_gradient(&world, &p, l, k, j);
    world_release(&world);
}

/* ---- a layer's activation and bias in one pass ---- */

struct undone {
    int64_t rows, columns;
    enum device_activation f;
    bool masked, accumulate;
    int gradient, apart, saved, mask, dbias, state;
};

static void call_undo(const struct world *world, char *base, struct lanes lanes, const void *data)
{
    const struct undone *u = data;
    const void *saved = u->f == DEVICE_IDENTITY ? NULL : tensor_at(world, base, u->saved);
    const unsigned char *mask = u->masked ? tensor_at(world, base, u->mask) : NULL;

    operations->activation_backward_bias(device, lanes, tensor_at(world, base, u->gradient),
                                         tensor_at(world, base, u->dbias), saved, mask, u->rows, u->columns,
                                         u->f, u->accumulate, tensor_at(world, base, u->state));
    operations->activation_backward(device, lanes, tensor_at(world, base, u->apart), saved, mask,
                                    u->rows * u->columns, u->f, tensor_at(world, base, u->state));
}

/* The gradient is that of activation_backward to the bit, and dbias the sums of what is stored of it. */
static void compare_undone(const struct world *world, const struct undone *u, int64_t l)
{
    const struct tensor *gradient = &world->tensor[u->gradient];

    if (memcmp(world_after(world, l, u->gradient), world_after(world, l, u->apart), gradient->bytes) != 0)
        fail_msg("%s: lane %lld: not the gradient of activation_backward", world->what, (long long)l);
    for (int64_t j = 0; j < u->columns; j++) {
        double sum = u->accumulate ? before_real(world, l, u->dbias, j) : 0, absolute = fabs(sum);
        for (int64_t i = 0; i < u->rows; i++) {
            double term = after_stored(world, l, u->gradient, i * u->columns + j);
            sum += term;
            absolute += fabs(term);
        }
        expect(world, "dbias", l, j, after_real(world, l, u->dbias, j), sum,
               product_bound(DEVICE_FP32, u->rows, absolute));
    }
}

void check_activation_backward_bias(enum device_precision precision)
{
    struct undone u = {.rows = random_size(1200),
                       .columns = random_size(80),
                       .f = (enum device_activation)random_integer(DEVICE_IDENTITY, DEVICE_TANH),
                       .masked = random_integer(0, 1),
                       .accumulate = random_integer(0, 1)};
    struct world world;

    if (!operations->activation_backward_bias)
        return;
    world_init(&world, precision);
    u.gradient = world_place_stored(&world, u.rows * u.columns, true);
    u.apart = world_place_stored(&world, u.rows * u.columns, true);
    u.saved = world_place_stored(&world, u.rows * u.columns, false);
    u.mask = world_place(&world, u.rows * u.columns, 1, false);
    u.dbias = world_place_real(&world, u.columns, true);
    u.state = world_place_state(&world, false);
    world_open(&world, "activation_backward_bias %d of %lldx%lld, masked %d, accumulate %d", u.f,
               (long long)u.rows, (long long)u.columns, u.masked, u.accumulate);
    fill_stored(&world, u.gradient, 2);
    for (int64_t l = 0; l < world.lanes.count; l++)
        memcpy(world_before(&world, l, u.apart), world_before(&world, l, u.gradient),
               world.tensor[u.gradient].bytes);
    fill_stored(&world, u.saved, 1);
    fill_bytes(&world, u.mask, 2);
    fill_state(&world, u.state);
    if (u.accumulate)
        fill_real(&world, u.dbias, 2);
    world_run(&world, call_undo, &u);
    for (int64_t l = 0; l < world.lanes.count; l++)
        compare_undone(&world, &u, l);
    world_release(&world);
}
