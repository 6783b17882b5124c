/* A trial's numbers, and its updates. */
#include "worker/training/optimizer.h"

static const enum device_optimizer device_optimizers[] = {
    [OPTIMIZER_SGD] = DEVICE_SGD,   [OPTIMIZER_ADAM] = DEVICE_ADAM, [OPTIMIZER_ADAMW] = DEVICE_ADAMW,
    [OPTIMIZER_LAMB] = DEVICE_LAMB, [OPTIMIZER_LARS] = DEVICE_LARS,
};

struct lane_state optimizer_start(const struct training_settings *settings, const struct derived *derived,
                                  uint64_t key)
{
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
        .gradient_factor = 1,
        .loss_scale = 1,
        .finite = 1,
    };
}

void optimizer_update(const struct training_settings *settings, const struct model *model,
                      const struct memory *memory, struct device *device, struct lanes lanes)
{
    struct device_parameters parameters = {
        .weight = memory->parameters,
        .gradient = memory->gradients,
        .moment = {memory->moments[0], memory->moments[1]},
        .count = model->parameters,
        .decayed = model->weights,
    };

    device->operations->update(device, lanes, device_optimizers[settings->optimizer], &parameters,
                               memory->state);
}
