/* Batches: gather, forward, loss, backward, update. */
#include "worker/training/step.h"

#include "worker/training/optimizer.h"

static void gather_input(const struct step_plan *plan, const struct activations *activations,
                         const struct device_rows *rows, struct device_rows_of of, int64_t count)
{
    const struct device_operations *operations = plan->device->operations;
    const struct model *model = plan->model;

    if (model->features > 0)
        operations->gather(plan->device, plan->lanes, activations->value[0], model->nodes[0].width, rows->x,
                           of, count, model->features);
    if (model->categories > 0)
        operations->gather_integers(plan->device, plan->lanes, activations->category, rows->category, of,
                                    count, model->categories);
}

static void gather_targets(const struct step_plan *plan, struct device_rows_of of, int64_t count)
{
    const struct device_operations *operations = plan->device->operations;
    const struct memory *memory = plan->memory;

    if (memory->label)
        operations->gather_integers(plan->device, plan->lanes, memory->label, plan->rows.label, of, count, 1);
    else
        operations->gather_real(plan->device, plan->lanes, memory->target, plan->rows.y, of, count, 1);
}

static void micro_loss(const struct step_plan *plan, int64_t rows, double scale)
{
    const struct memory *memory = plan->memory;
    struct loss_batch batch = {
        .gradient = model_output_gradient(plan->model, &memory->training),
        .outputs = model_outputs(plan->model, &memory->training),
        .label = memory->label,
        .target = memory->target,
        .class_weight = plan->class_weight,
        .rows = rows,
        .classes = plan->classes,
    };

    loss_run(plan->loss, plan->device, plan->lanes, &batch, scale, memory->state);
}

void step_gradient(const struct step_plan *plan, int64_t count)
{
    const struct memory *memory = plan->memory;
    int64_t group = plan->derived->norm_batch, rows;
    struct device_rows_of of = {
        .order = memory->order, .state = memory->state, .batch = plan->derived->batch_size};

    for (; of.first < count; of.first += rows) {
        rows = derived_micro_rows(plan->derived, of.first, count);
        gather_input(plan, &memory->training, &plan->rows, of, rows);
        gather_targets(plan, of, rows);
        model_forward(plan->model, plan->device, plan->lanes, &memory->blocks, &memory->training, of.first,
                      rows, group, memory->state);
        micro_loss(plan, rows, 1 / (double)count);
        model_backward(plan->model, plan->device, plan->lanes, &memory->blocks, &memory->training, rows,
                       group, of.first > 0, memory->state);
    }
}

void step_run(const struct step_plan *plan, int64_t count)
{
    const struct device_operations *operations = plan->device->operations;

    operations->step_begin(plan->device, plan->lanes, plan->memory->state, plan->memory->rates);
    step_gradient(plan, count);
    optimizer_update(plan->settings, plan->model, plan->memory, plan->device, plan->lanes);
    operations->step_end(plan->device, plan->lanes, plan->memory->state);
}

void step_evaluate(const struct step_plan *plan, const struct device_rows *rows, int64_t first, int64_t count)
{
    const struct memory *memory = plan->memory;

    gather_input(plan, &memory->evaluation, rows, (struct device_rows_of){.first = first}, count);
    model_forward(plan->model, plan->device, plan->lanes, &memory->blocks, &memory->evaluation, 0, count, 0,
                  NULL);
}
