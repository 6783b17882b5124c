/* A model's shape, its initial values, its passes forward and backward. */
#include "worker/training/model.h"

#include "worker/training/random.h"

#include <math.h>
#include <stdlib.h>

static enum device_activation activation_of(enum activation activation)
{
    static const enum device_activation of[] = {
        [ACTIVATION_RELU] = DEVICE_RELU,
        [ACTIVATION_GELU] = DEVICE_GELU,
        [ACTIVATION_SILU] = DEVICE_SILU,
        [ACTIVATION_TANH] = DEVICE_TANH,
    };
    return of[activation];
}

void model_init(struct model *model, const struct training_settings *settings, int64_t features,
                int64_t outputs)
{
    int hidden = settings->model == MODEL_LINEAR ? 0 : settings->hidden_count;
    int64_t inputs = features, offset = 0;

    *model = (struct model){.count = hidden + 1, .activation = activation_of(settings->activation)};
    model->dropout = hidden > 0 && settings->dropout > 0;
    for (int i = 0; i < model->count; i++) {
        struct model_layer *layer = &model->layers[i];
        layer->inputs = inputs;
        layer->outputs = i < hidden ? settings->hidden[i] : outputs;
        layer->weight = offset;
        offset += layer->inputs * layer->outputs;
        inputs = layer->outputs;
    }
    model->weights = offset;
    for (int i = 0; i < model->count; i++) {
        model->layers[i].bias = offset;
        offset += model->layers[i].outputs;
    }
    model->parameters = offset;
}

static double weight_bound(enum init_kind init, const struct model_layer *layer)
{
    switch (init) {
    case INIT_HE:
        return sqrt(6.0 / (double)layer->inputs);
    case INIT_XAVIER:
        return sqrt(6.0 / (double)(layer->inputs + layer->outputs));
    case INIT_DEFAULT:
        break;
    }
    return 1 / sqrt((double)layer->inputs);
}

int model_draw(const struct model *model, enum init_kind init, uint64_t seed, real *parameters,
               struct error *err)
{
    double *values = malloc((size_t)model->parameters * sizeof(*values));

    if (!values)
        return error_set(err, ERROR_MEMORY, "no memory for %lld initial weights",
                         (long long)model->parameters);
    for (int i = 0; i < model->count; i++) {
        const struct model_layer *layer = &model->layers[i];
        int64_t size = layer->inputs * layer->outputs;
        random_uniform(seed, i, 0, values + layer->weight, size, weight_bound(init, layer));
        random_uniform(seed, i, size, values + layer->bias, layer->outputs,
                       init == INIT_DEFAULT ? weight_bound(init, layer) : 0);
    }
    for (int64_t i = 0; i < model->parameters; i++)
        parameters[i] = (real)values[i];
    free(values);
    return 0;
}

void model_forward(const struct model *model, struct device *device, struct lanes lanes,
                   const real *parameters, const struct activations *activations, int64_t first_row,
                   int64_t rows, const struct lane_state *state)
{
    const struct device_operations *operations = device->operations;
    const real *input = activations->input;

    for (int i = 0; i < model->count; i++) {
        const struct model_layer *layer = &model->layers[i];
        bool hidden = i + 1 < model->count;

        operations->linear_forward(device, lanes, activations->output[i], activations->before[i], input,
                                   parameters + layer->weight, parameters + layer->bias, rows, layer->inputs,
                                   layer->outputs, hidden ? model->activation : DEVICE_IDENTITY, !hidden);
        if (hidden && model->dropout && state)
            operations->dropout(device, lanes, activations->output[i], activations->mask[i], first_row, rows,
                                layer->outputs, random_stream(RANDOM_DROPOUT, i), state);
        input = activations->output[i];
    }
}

void model_backward(const struct model *model, struct device *device, struct lanes lanes,
                    const real *parameters, real *gradients, const struct activations *activations,
                    int64_t rows, bool accumulate, const struct lane_state *state)
{
    const struct device_operations *operations = device->operations;

    for (int i = model->count - 1; i >= 0; i--) {
        const struct model_layer *layer = &model->layers[i];
        const real *input = i > 0 ? activations->output[i - 1] : activations->input;
        real *gradient = activations->gradient[i % 2];

        operations->linear_backward_parameters(device, lanes, gradients + layer->weight,
                                               gradients + layer->bias, input, gradient, rows, layer->inputs,
                                               layer->outputs, accumulate);
        if (i == 0)
            break; /* nobody asks for the gradient of the data */
        real *below = activations->gradient[(i - 1) % 2];
        const real *saved = device_saves_argument(model->activation) ? activations->before[i - 1] : input;
        operations->linear_backward_data(device, lanes, below, gradient, parameters + layer->weight, rows,
                                         layer->inputs, layer->outputs);
        operations->activation_backward(device, lanes, below, saved, activations->mask[i - 1],
                                        rows * layer->inputs, model->activation, state);
    }
}

real *model_outputs(const struct model *model, const struct activations *activations)
{
    return activations->output[model->count - 1];
}

real *model_output_gradient(const struct model *model, const struct activations *activations)
{
    return activations->gradient[(model->count - 1) % 2];
}
