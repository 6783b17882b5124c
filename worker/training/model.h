/* A model: linear layers with an activation between them (none: a linear model). Its parameters are one flat
 * block, all weights first (they know weight decay), then all biases. */
#ifndef RUNG_WORKER_TRAINING_MODEL_H
#define RUNG_WORKER_TRAINING_MODEL_H

#include "kernels/device.h"
#include "worker/training/settings.h"

#include <stdbool.h>
#include <stdint.h>

#define MODEL_LAYERS (HIDDEN_LAYERS + 1)

struct model_layer {
    int64_t inputs, outputs;
    int64_t weight, bias; /* where they begin in the flat block: (inputs, outputs) and (outputs) */
};

struct model {
    int count;
    struct model_layer layers[MODEL_LAYERS];
    enum device_activation activation; /* of all layers but the last */
    bool dropout;                      /* behind each activation, in training mode */
    int64_t parameters, weights;       /* sizes of the flat block and of its decayed part */
};

/* What a pass over a batch keeps, in device memory. (rows, width of the layer) each, for every layer but
 * where said. */
struct activations {
    real *input;                       /* (rows, features) */
    real *output[MODEL_LAYERS];        /* the last holds logits or predictions */
    real *before[MODEL_LAYERS];        /* gelu's argument; NULL for relu and the last layer */
    unsigned char *mask[MODEL_LAYERS]; /* of dropout; NULL without and for the last layer */
    real *gradient[2];                 /* (rows, widest output): of the layers' outputs, in turns */
};

void model_init(struct model *model, const struct training_settings *settings, int64_t features,
                int64_t outputs);

/* Initial values of all parameters (on the host), from the trial's seed. default: weights and biases uniform
 * within 1/sqrt(inputs), as PyTorch's Linear; he: weights uniform within sqrt(6/inputs) (He et al. 2015);
 * xavier: sqrt(6/(inputs + outputs)) (Glorot & Bengio 2010), biases 0 in both. -1 on no memory. */
int model_draw(const struct model *model, enum init_kind init, uint64_t seed, real *parameters,
               struct error *err);

/* The outputs of a batch whose rows are in activations->input. state: training mode, for rows from
 * first_row of the effective batch on; NULL: evaluation mode. */
void model_forward(const struct model *model, struct device *device, struct lanes lanes,
                   const real *parameters, const struct activations *activations, int64_t first_row,
                   int64_t rows, const struct lane_state *state);

/* The gradient of all parameters, from the gradient of the outputs in model_output_gradient; after
 * model_forward in training mode. Added to what is there when `accumulate`. */
void model_backward(const struct model *model, struct device *device, struct lanes lanes,
                    const real *parameters, real *gradients, const struct activations *activations,
                    int64_t rows, bool accumulate, const struct lane_state *state);

real *model_outputs(const struct model *model, const struct activations *activations);
real *model_output_gradient(const struct model *model, const struct activations *activations);

#endif
