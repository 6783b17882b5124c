/* Layout of a trial's block: run once for the size and once for the pointers. */
#include "worker/training/memory.h"

int moment_count(const struct training_settings *settings)
{
    if (settings->optimizer == OPTIMIZER_ADAM || settings->optimizer == OPTIMIZER_ADAMW ||
        settings->optimizer == OPTIMIZER_LAMB)
        return 2;
    return settings->momentum != 0 ? 1 : 0;
}

/* The next `count` elements of `size` bytes, aligned. */
static void *take(struct memory *memory, int64_t count, size_t size)
{
    uintptr_t at = (uintptr_t)memory->block + memory->size;
    size_t bytes = (size_t)count * size;

    memory->size += (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    return (void *)at;
}

static void take_activations(struct memory *memory, const struct model *model, int64_t rows)
{
    struct activations *activations = &memory->activations;
    int64_t widest = 0;

    activations->input = take(memory, rows * model->layers[0].inputs, sizeof(real));
    for (int i = 0; i < model->count; i++) {
        int64_t width = model->layers[i].outputs;
        bool hidden = i + 1 < model->count;

        activations->output[i] = take(memory, rows * width, sizeof(real));
        if (hidden && device_saves_argument(model->activation))
            activations->before[i] = take(memory, rows * width, sizeof(real));
        if (hidden && model->dropout)
            activations->mask[i] = take(memory, rows * width, 1);
        widest = width > widest ? width : widest;
    }
    for (int i = 0; i < 2; i++)
        activations->gradient[i] = take(memory, rows * widest, sizeof(real));
}

static void lay_out(struct memory *memory, void *block, const struct model *model,
                    const struct training_settings *settings, enum task task, int64_t batch_rows,
                    int64_t training_rows, int64_t steps)
{
    *memory = (struct memory){.block = block};
    memory->parameters = take(memory, model->parameters, sizeof(real));
    memory->gradients = take(memory, model->parameters, sizeof(real));
    for (int i = 0; i < moment_count(settings); i++)
        memory->moments[i] = take(memory, model->parameters, sizeof(real));
    if (settings->objective_best)
        memory->best = take(memory, model->parameters, sizeof(real));
    take_activations(memory, model, batch_rows);
    if (task == TASK_CLASSIFICATION)
        memory->label = take(memory, batch_rows, sizeof(int32_t));
    else
        memory->target = take(memory, batch_rows, sizeof(real));
    memory->order = take(memory, training_rows, sizeof(int32_t));
    memory->rates = take(memory, steps, sizeof(double));
    memory->state = take(memory, 1, sizeof(struct lane_state));
}

int memory_init(struct memory *memory, const struct model *model, const struct training_settings *settings,
                enum task task, int64_t batch_rows, int64_t training_rows, int64_t steps,
                struct device *device, struct error *err)
{
    void *block;

    lay_out(memory, NULL, model, settings, task, batch_rows, training_rows, steps);
    size_t size = memory->size;
    *memory = (struct memory){0};
    if (device->operations->allocate(device, &block, size, err) != 0)
        return error_prefix(err, "trial of %lld parameters, batches of %lld rows",
                            (long long)model->parameters, (long long)batch_rows);
    lay_out(memory, block, model, settings, task, batch_rows, training_rows, steps);
    return 0;
}

void memory_release(struct memory *memory, struct device *device)
{
    if (memory->block)
        device->operations->release(device, memory->block);
    *memory = (struct memory){0};
}
