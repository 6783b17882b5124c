/* A model's passes forward and backward: one function a kind of node and direction. */
#include "worker/training/model.h"

/* What all nodes of a pass share. */
struct pass {
    const struct model *model;
    struct device *device;
    struct lanes lanes;
    const struct blocks *blocks;
    const struct activations *activations;
    int64_t first_row, rows, group;
    bool accumulate;
    const struct lane_state *state; /* NULL: evaluation */
};

bool model_keeps(const struct node *node)
{
    if (node->f == DEVICE_TANH)
        return node->dropout;
    return node->kind == NODE_LINEAR && device_saves_argument(node->f);
}

const struct node *model_head(const struct model *model)
{
    return &model->nodes[model->count - 1];
}

real *model_outputs(const struct model *model, const struct activations *activations)
{
    return activations->value[model->count - 1];
}

void *model_output_gradient(const struct model *model, const struct activations *activations)
{
    return activations->gradient[model_head(model)->gradient];
}

static real *parameter_of(const struct pass *pass, int parameter)
{
    return pass->blocks->parameters + pass->model->list[parameter].at;
}

static real *gradient_of(const struct pass *pass, int parameter)
{
    return pass->blocks->gradients + pass->model->list[parameter].at;
}

/* A weight as products read it. */
static const void *weight_of(const struct pass *pass, int parameter)
{
    size_t size = device_stored_size(pass->lanes.precision);

    if (!pass->blocks->stored)
        return parameter_of(pass, parameter);
    return (const char *)pass->blocks->stored + (size_t)pass->model->list[parameter].at * size;
}

static size_t value_bytes(const struct pass *pass, const struct node *node)
{
    return (size_t)(pass->rows * node->width) * device_stored_size(pass->lanes.precision);
}

/* ---- forward ---- */

static void input_forward(const struct pass *pass)
{
    const struct model *model = pass->model;
    int64_t first = model->features;

    for (int i = 0; i < model->categories; i++) {
        int64_t width = model->list[i].columns;
        pass->device->operations->embedding_forward(
            pass->device, pass->lanes, pass->activations->value[0], model->nodes[0].width, first,
            parameter_of(pass, i), pass->activations->category, model->categories, i, pass->rows, width);
        first += width;
    }
}

/* Drops what the value of node i says, if it says so and this is training. */
static void drop(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];
    const struct activations *a = pass->activations;
    const struct device_operations *operations = pass->device->operations;

    if (!node->dropout || !pass->state)
        return;
    if (node->f == DEVICE_TANH)
        operations->copy(pass->device, pass->lanes, a->kept[i], a->value[i], value_bytes(pass, node));
    operations->dropout(pass->device, pass->lanes, a->value[i], a->mask[i], pass->first_row, pass->rows,
                        node->width, node->stream, pass->state);
}

static void linear_forward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];
    const struct activations *a = pass->activations;
    void *argument = device_saves_argument(node->f) ? a->kept[i] : NULL;

    pass->device->operations->linear_forward(
        pass->device, pass->lanes, a->value[i], argument, a->value[node->input],
        weight_of(pass, node->weight), parameter_of(pass, node->bias), pass->rows,
        pass->model->nodes[node->input].width, node->width, node->f, node->wide);
    drop(pass, i);
}

static void norm_forward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];
    const struct activations *a = pass->activations;
    const struct device_operations *operations = pass->device->operations;
    const real *gain = parameter_of(pass, node->weight), *offset = parameter_of(pass, node->bias);
    const void *x = a->value[node->input];

    if (pass->model->norm == NORM_LAYER)
        operations->layer_norm(pass->device, pass->lanes, a->value[i], a->saved[i], x, gain, offset,
                               pass->rows, node->width);
    else if (pass->state)
        operations->batch_norm(pass->device, pass->lanes, a->value[i], a->saved[i],
                               parameter_of(pass, node->running), x, gain, offset, pass->rows, node->width,
                               pass->group);
    else
        operations->batch_norm_apply(pass->device, pass->lanes, a->value[i],
                                     parameter_of(pass, node->running), x, gain, offset, pass->rows,
                                     node->width);
}

static void activation_forward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];
    const struct activations *a = pass->activations;

    pass->device->operations->activation(pass->device, pass->lanes, a->value[i], a->value[node->input],
                                         pass->rows * node->width, node->f);
    drop(pass, i);
}

static void add_forward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];
    const struct activations *a = pass->activations;

    pass->device->operations->add(pass->device, pass->lanes, a->value[i], a->value[node->other],
                                  pass->rows * node->width);
}

void model_forward(const struct model *model, struct device *device, struct lanes lanes,
                   const struct blocks *blocks, const struct activations *activations, int64_t first_row,
                   int64_t rows, int64_t group, const struct lane_state *state)
{
    const struct pass pass = {.model = model,
                              .device = device,
                              .lanes = lanes,
                              .blocks = blocks,
                              .activations = activations,
                              .first_row = first_row,
                              .rows = rows,
                              .group = group,
                              .state = state};

    input_forward(&pass);
    for (int i = 1; i < model->count; i++)
        switch (model->nodes[i].kind) {
        case NODE_LINEAR:
            linear_forward(&pass, i);
            break;
        case NODE_NORM:
            norm_forward(&pass, i);
            break;
        case NODE_ACTIVATION:
            activation_forward(&pass, i);
            break;
        case NODE_ADD:
            add_forward(&pass, i);
            break;
        case NODE_INPUT:
            break;
        }
}

/* ---- backward ---- */

static void *slot(const struct pass *pass, int number)
{
    return pass->activations->gradient[number];
}

static void input_backward(const struct pass *pass)
{
    const struct model *model = pass->model;
    int64_t first = model->features;

    for (int i = 0; i < model->categories; i++) {
        const struct parameter *table = &model->list[i];
        pass->device->operations->embedding_backward(
            pass->device, pass->lanes, gradient_of(pass, i), slot(pass, model->nodes[0].gradient),
            model->nodes[0].width, first, pass->activations->category, model->categories, i, pass->rows,
            table->rows, table->columns, pass->accumulate);
        first += table->columns;
    }
}

/* What f of node i saved for its way back. */
static const void *saved_of(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];
    const struct activations *a = pass->activations;

    if (node->f == DEVICE_IDENTITY)
        return NULL;
    if (model_keeps(node))
        return a->kept[i];
    return device_saves_argument(node->f) ? a->value[node->input] : a->value[i];
}

static bool changes_gradient(const struct node *node)
{
    return node->f != DEVICE_IDENTITY || node->dropout;
}

/* The gradient of node i's value becomes that of f's argument. */
static void undo_activation(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i];

    if (changes_gradient(node))
        pass->device->operations->activation_backward(pass->device, pass->lanes, slot(pass, node->gradient),
                                                      saved_of(pass, i), pass->activations->mask[i],
                                                      pass->rows * node->width, node->f, pass->state);
}

/* The same of a layer, with its dbias; false where the device has no way to do both in one pass. */
static bool undo_activation_and_bias(const struct pass *pass, int i, real *dbias)
{
    const struct node *node = &pass->model->nodes[i];
    const struct device_operations *operations = pass->device->operations;

    if (!changes_gradient(node) || !operations->activation_backward_bias)
        return false;
    operations->activation_backward_bias(pass->device, pass->lanes, slot(pass, node->gradient), dbias,
                                         saved_of(pass, i), pass->activations->mask[i], pass->rows,
                                         node->width, node->f, pass->accumulate, pass->state);
    return true;
}

/* Adds a gradient of `input`'s value, found in slot `from`, to what other readers have put into its own. */
static void join(const struct pass *pass, const struct node *input, int from)
{
    pass->device->operations->add(pass->device, pass->lanes, slot(pass, input->gradient), slot(pass, from),
                                  pass->rows * input->width);
}

static void linear_backward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i], *input = &pass->model->nodes[node->input];
    const struct device_operations *operations = pass->device->operations;
    void *gradient = slot(pass, node->gradient);
    real *dbias = gradient_of(pass, node->bias);
    int below = node->joins ? MODEL_JOIN_SLOT : input->gradient;

    if (undo_activation_and_bias(pass, i, dbias))
        dbias = NULL;
    else
        undo_activation(pass, i);
    operations->linear_backward_parameters(pass->device, pass->lanes, gradient_of(pass, node->weight), dbias,
                                           pass->activations->value[node->input], gradient, pass->rows,
                                           input->width, node->width, pass->accumulate);
    if (below < 0)
        return;
    operations->linear_backward_data(pass->device, pass->lanes, slot(pass, below), gradient,
                                     weight_of(pass, node->weight), pass->rows, input->width, node->width);
    if (node->joins)
        join(pass, input, below);
}

static void norm_backward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i], *input = &pass->model->nodes[node->input];
    const struct device_operations *operations = pass->device->operations;
    const struct activations *a = pass->activations;
    const void *dy = slot(pass, node->gradient), *x = a->value[node->input];
    void *dx = slot(pass, node->joins ? node->gradient : input->gradient);
    real *dgain = gradient_of(pass, node->weight), *doffset = gradient_of(pass, node->bias);
    const real *gain = parameter_of(pass, node->weight);

    if (pass->model->norm == NORM_LAYER)
        operations->layer_norm_backward(pass->device, pass->lanes, dx, dgain, doffset, dy, x, a->saved[i],
                                        gain, pass->rows, node->width, pass->accumulate);
    else
        operations->batch_norm_backward(pass->device, pass->lanes, dx, dgain, doffset, dy, x, a->saved[i],
                                        gain, pass->rows, node->width, pass->group, pass->accumulate);
    if (node->joins)
        join(pass, input, node->gradient);
}

/* The gradient of the sum is that of both; a branch that will change it gets a copy. */
static void add_backward(const struct pass *pass, int i)
{
    const struct node *node = &pass->model->nodes[i], *input = &pass->model->nodes[node->input];

    if (input->gradient != node->gradient)
        pass->device->operations->copy(pass->device, pass->lanes, slot(pass, input->gradient),
                                       slot(pass, node->gradient), value_bytes(pass, node));
}

void model_backward(const struct model *model, struct device *device, struct lanes lanes,
                    const struct blocks *blocks, const struct activations *activations, int64_t rows,
                    int64_t group, bool accumulate, const struct lane_state *state)
{
    const struct pass pass = {.model = model,
                              .device = device,
                              .lanes = lanes,
                              .blocks = blocks,
                              .activations = activations,
                              .rows = rows,
                              .group = group,
                              .accumulate = accumulate,
                              .state = state};

    for (int i = model->count - 1; i > 0; i--)
        switch (model->nodes[i].kind) {
        case NODE_LINEAR:
            linear_backward(&pass, i);
            break;
        case NODE_NORM:
            norm_backward(&pass, i);
            break;
        case NODE_ACTIVATION:
            undo_activation(&pass, i); /* in its input's slot */
            break;
        case NODE_ADD:
            add_backward(&pass, i);
            break;
        case NODE_INPUT:
            break;
        }
    input_backward(&pass);
}
