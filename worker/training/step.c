/* Batches: gather, forward, loss, backward, update. */
#include "worker/training/step.h"

#include "worker/training/optimizer.h"

static const struct lanes one_lane = {.count = 1};

static void micro_loss(const struct step_plan *plan, int64_t rows, double scale)
{
    const struct device_operations *operations = plan->device->operations;
    const struct memory *memory = plan->memory;
    const real *outputs = model_outputs(plan->model, &memory->activations);
    real *gradient = model_output_gradient(plan->model, &memory->activations);
    int64_t width = plan->model->layers[plan->model->count - 1].outputs;

    if (memory->label)
        operations->softmax_cross_entropy(plan->device, one_lane, memory->loss, gradient, outputs,
                                          memory->label, rows, width, scale);
    else
        operations->squared_error(plan->device, one_lane, memory->loss, gradient, outputs, memory->target,
                                  rows, scale);
}

static void micro_gather(const struct step_plan *plan, const int32_t *index, int64_t rows)
{
    const struct device_operations *operations = plan->device->operations;
    const struct memory *memory = plan->memory;

    operations->gather(plan->device, one_lane, memory->activations.input, plan->rows.x, index, rows,
                       plan->model->layers[0].inputs);
    if (memory->label)
        operations->gather_labels(plan->device, one_lane, memory->label, plan->rows.label, index, rows);
    else
        operations->gather(plan->device, one_lane, memory->target, plan->rows.y, index, rows, 1);
}

void step_gradient(const struct step_plan *plan, int64_t first, int64_t count, int64_t step)
{
    const struct memory *memory = plan->memory;
    struct dropout_draw draw = {
        .key = plan->seed, .step = (uint32_t)step, .probability = plan->settings->dropout};

    for (int64_t done = 0; done < count; done += plan->derived->micro_batch) {
        int64_t left = count - done;
        int64_t rows = left < plan->derived->micro_batch ? left : plan->derived->micro_batch;

        micro_gather(plan, memory->order + first + done, rows);
        model_forward(plan->model, plan->device, one_lane, memory->parameters, &memory->activations, done,
                      rows, &draw);
        micro_loss(plan, rows, 1 / (double)count);
        model_backward(plan->model, plan->device, one_lane, memory->parameters, memory->gradients,
                       &memory->activations, rows, done > 0);
    }
}

void step_run(const struct step_plan *plan, int64_t first, int64_t count, int64_t step)
{
    step_gradient(plan, first, count, step);
    optimizer_step(plan->settings, plan->derived, plan->model, plan->memory, plan->device, step);
}

void step_evaluate(const struct step_plan *plan, const struct device_rows *rows, int64_t first, int64_t count)
{
    const struct memory *memory = plan->memory;
    int64_t features = plan->model->layers[0].inputs;

    plan->device->operations->gather(plan->device, one_lane, memory->activations.input,
                                     rows->x + first * features, NULL, count, features);
    model_forward(plan->model, plan->device, one_lane, memory->parameters, &memory->activations, 0, count,
                  NULL);
}
