/* A trial's numbers, and its updates. */
#include "worker/training/optimizer.h"

static const enum device_optimizer device_optimizers[] = {
    [OPTIMIZER_SGD] = DEVICE_SGD,   [OPTIMIZER_ADAM] = DEVICE_ADAM, [OPTIMIZER_ADAMW] = DEVICE_ADAMW,
    [OPTIMIZER_LAMB] = DEVICE_LAMB, [OPTIMIZER_LARS] = DEVICE_LARS,
};

struct lane_state optimizer_start(const struct training_settings *settings, const struct derived *derived,
                                  enum device_precision precision, uint64_t key)
{
    bool scaled = precision == DEVICE_FP16;

    return (struct lane_state){
        .key = key,
        .dropout = settings->dropout,
        .label_smoothing = settings->label_smoothing,
        .huber_delta = settings->huber_delta,
        .momentum = settings->momentum,
        .weight_decay = derived->weight_decay,
        .beta1 = derived->beta1,
        .beta2 = derived->beta2,
        .epsilon = derived->epsilon,
        .clip_norm = settings->clip_norm,
        .nesterov = settings->nesterov,
        .scaled = scaled,
        .gradient_factor = 1,
        .loss_scale = scaled ? LOSS_SCALE_INITIAL : 1,
        .finite = 1,
    };
}

void optimizer_update(const struct training_settings *settings, const struct model *model,
                      const struct memory *memory, struct device *device, struct lanes lanes)
{
    struct device_parameters parameters = {
        .weight = memory->blocks.parameters,
        .gradient = memory->blocks.gradients,
        .moment = {memory->moments[0], memory->moments[1]},
        .stored = memory->blocks.stored,
        .count = model->parameters,
        .decayed = model->weights,
        .tensor_end = model->tensor_end,
        .tensors = model->tensors,
    };

    if (settings->clip_norm > 0 || lanes.precision == DEVICE_FP16)
        device->operations->measure_gradient(device, lanes, memory->blocks.gradients, model->parameters,
                                             memory->state);
    device->operations->update(device, lanes, device_optimizers[settings->optimizer], &parameters,
                               memory->state);
}
