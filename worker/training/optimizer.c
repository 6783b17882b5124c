/* One optimizer step. */
#include "worker/training/optimizer.h"

#include "worker/training/schedule.h"

static void step_sgd(const struct training_settings *settings, const struct derived *derived,
                     const struct model *model, const struct memory *memory, struct device *device,
                     double learning_rate)
{
    struct sgd_step numbers = {
        .learning_rate = learning_rate,
        .momentum = settings->momentum,
        .weight_decay = derived->weight_decay,
        .nesterov = settings->nesterov,
    };

    device->operations->sgd(device, (struct lanes){.count = 1}, memory->parameters, memory->gradients,
                            memory->moments[0], model->parameters, model->weights, &numbers);
}

static void step_adamw(const struct derived *derived, const struct model *model, const struct memory *memory,
                       struct device *device, double learning_rate, int64_t step)
{
    struct adamw_step numbers = {
        .learning_rate = learning_rate,
        .beta1 = derived->beta1,
        .beta2 = derived->beta2,
        .epsilon = derived->epsilon,
        .weight_decay = derived->weight_decay,
        .number = step + 1,
    };

    device->operations->adamw(device, (struct lanes){.count = 1}, memory->parameters, memory->gradients,
                              memory->moments[0], memory->moments[1], model->parameters, model->weights,
                              &numbers);
}

void optimizer_step(const struct training_settings *settings, const struct derived *derived,
                    const struct model *model, const struct memory *memory, struct device *device,
                    int64_t step)
{
    double learning_rate = schedule_learning_rate(settings, derived, step);

    if (settings->optimizer == OPTIMIZER_SGD)
        step_sgd(settings, derived, model, memory, device, learning_rate);
    else
        step_adamw(derived, model, memory, device, learning_rate, step);
}
