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
        operations->softmax_cross_entropy(plan->device, one_lane, gradient, outputs, memory->label, NULL,
                                          rows, width, scale, memory->state);
    else
        operations->squared_error(plan->device, one_lane, gradient, outputs, memory->target, rows, scale,
                                  memory->state);
}

static void micro_gather(const struct step_plan *plan, struct device_rows_of of, int64_t rows)
{
    const struct device_operations *operations = plan->device->operations;
    const struct memory *memory = plan->memory;
    int64_t features = plan->model->layers[0].inputs;

    operations->gather(plan->device, one_lane, memory->activations.input, features, plan->rows.x, of, rows,
                       features);
    if (memory->label)
        operations->gather_integers(plan->device, one_lane, memory->label, plan->rows.label, of, rows, 1);
    else
        operations->gather_real(plan->device, one_lane, memory->target, plan->rows.y, of, rows, 1);
}

void step_gradient(const struct step_plan *plan, int64_t count)
{
    const struct memory *memory = plan->memory;
    struct device_rows_of of = {
        .order = memory->order, .state = memory->state, .batch = plan->derived->batch_size};

    for (of.first = 0; of.first < count; of.first += plan->derived->micro_batch) {
        int64_t left = count - of.first;
        int64_t rows = left < plan->derived->micro_batch ? left : plan->derived->micro_batch;

        micro_gather(plan, of, rows);
        model_forward(plan->model, plan->device, one_lane, memory->parameters, &memory->activations, of.first,
                      rows, memory->state);
        micro_loss(plan, rows, 1 / (double)count);
        model_backward(plan->model, plan->device, one_lane, memory->parameters, memory->gradients,
                       &memory->activations, rows, of.first > 0, memory->state);
    }
}

void step_run(const struct step_plan *plan, int64_t count)
{
    const struct device_operations *operations = plan->device->operations;

    operations->step_begin(plan->device, one_lane, plan->memory->state, plan->memory->rates);
    step_gradient(plan, count);
    optimizer_update(plan->settings, plan->model, plan->memory, plan->device, one_lane);
    operations->step_end(plan->device, one_lane, plan->memory->state);
}

void step_evaluate(const struct step_plan *plan, const struct device_rows *rows, int64_t first, int64_t count)
{
    const struct memory *memory = plan->memory;
    int64_t features = plan->model->layers[0].inputs;

    plan->device->operations->gather(plan->device, one_lane, memory->activations.input, features,
                                     rows->x + first * features, (struct device_rows_of){0}, count, features);
    model_forward(plan->model, plan->device, one_lane, memory->parameters, &memory->activations, 0, count,
                  NULL);
}
