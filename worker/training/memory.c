/* Layout of a trial's block: run once for the size and once for the pointers. */
#include "worker/training/memory.h"

int moment_count(const struct training_settings *settings)
{
    if (settings->optimizer != OPTIMIZER_SGD && settings->optimizer != OPTIMIZER_LARS)
        return 2;
    return settings->momentum != 0 ? 1 : 0;
}

const char *precision_name(enum device_precision precision)
{
    static const char *const names[] = {
        [DEVICE_FP32] = "fp32", [DEVICE_TF32] = "tf32", [DEVICE_BF16] = "bf16", [DEVICE_FP16] = "fp16"};

    return names[precision];
}

/* A place in the block, on the way through it. */
struct cursor {
    uintptr_t block;
    size_t size;  /* of what has been taken */
    size_t exact; /* the same without alignment */
};

/* The next `count` elements of `size` bytes, aligned. */
static void *take(struct cursor *cursor, int64_t count, size_t size)
{
    uintptr_t at = cursor->block + cursor->size;
    size_t bytes = (size_t)count * size;

    cursor->size += (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    cursor->exact += bytes;
    return (void *)at;
}

/* What a norm saves of `rows` rows. */
static int64_t saved_count(const struct memory_shape *shape, const struct node *node, int64_t rows)
{
    if (shape->model->norm == NORM_LAYER)
        return 2 * rows;
    return 2 * node->width * ((rows + shape->norm_batch - 1) / shape->norm_batch);
}

static size_t value_size(const struct memory_shape *shape, const struct node *node)
{
    return node->wide ? sizeof(real) : device_stored_size(shape->precision);
}

/* All that a training pass over `rows` rows keeps. */
static void take_training(struct cursor *cursor, struct memory *memory, const struct memory_shape *shape,
                          int64_t rows)
{
    const struct model *model = shape->model;
    struct activations *a = &memory->training;
    size_t stored = device_stored_size(shape->precision);

    for (int i = 0; i < model->count; i++) {
        const struct node *node = &model->nodes[i];
        int64_t count = rows * node->width;
        a->value[i] = node->in_place ? a->value[node->input] : take(cursor, count, value_size(shape, node));
        if (model_keeps(node))
            a->kept[i] = take(cursor, count, stored);
        if (node->dropout)
            a->mask[i] = take(cursor, count, 1);
        if (node->kind == NODE_NORM)
            a->saved[i] = take(cursor, saved_count(shape, node, rows), sizeof(real));
    }
    for (int i = 0; i < MODEL_SLOTS; i++)
        if (model->gradient_width[i] > 0)
            a->gradient[i] = take(cursor, rows * model->gradient_width[i], stored);
    if (model->categories > 0)
        a->category = take(cursor, rows * model->categories, sizeof(int32_t));
    if (shape->labels)
        memory->label = take(cursor, rows, sizeof(int32_t));
    else
        memory->target = take(cursor, rows, sizeof(real));
}

/* An evaluation pass keeps a value until its last reader. */
static void take_evaluation(struct cursor *cursor, struct memory *memory, const struct memory_shape *shape)
{
    const struct model *model = shape->model;
    struct activations *a = &memory->evaluation;
    int64_t rows = shape->evaluation_rows;
    size_t sizes[MODEL_SLOTS] = {0}; /* of a row */
    void *slots[MODEL_SLOTS], *saved = NULL;

    for (int i = 0; i < model->count; i++) {
        const struct node *node = &model->nodes[i];
        size_t size = (size_t)node->width * value_size(shape, node);
        if (size > sizes[node->evaluation])
            sizes[node->evaluation] = size;
    }
    for (int i = 0; i < MODEL_SLOTS; i++)
        slots[i] = take(cursor, rows, sizes[i]);
    if (model->norm == NORM_LAYER)
        saved = take(cursor, 2 * rows, sizeof(real));
    for (int i = 0; i < model->count; i++) {
        a->value[i] = slots[model->nodes[i].evaluation];
        a->saved[i] = saved;
    }
    if (model->categories > 0)
        a->category = take(cursor, rows * model->categories, sizeof(int32_t));
}

static void lay_out(struct memory *memory, void *block, const struct memory_shape *shape)
{
    const struct model *model = shape->model;
    struct cursor cursor = {.block = (uintptr_t)block}, training, evaluation;

    *memory = (struct memory){.block = block};
    memory->state = take(&cursor, 1, sizeof(struct lane_state));
    memory->rates = take(&cursor, shape->steps, sizeof(double));
    memory->order = take(&cursor, shape->training_rows, sizeof(int32_t));
    memory->blocks.parameters = take(&cursor, model->values, sizeof(real));
    memory->blocks.gradients = take(&cursor, model->parameters, sizeof(real));
    if (device_stored_size(shape->precision) != sizeof(real))
        memory->blocks.stored = take(&cursor, model->parameters, device_stored_size(shape->precision));
    for (int i = 0; i < moment_count(shape->settings); i++)
        memory->moments[i] = take(&cursor, model->parameters, sizeof(real));
    if (shape->settings->objective_best)
        memory->best = take(&cursor, model->values, sizeof(real));
    training = evaluation = cursor;
    take_training(&training, memory, shape, shape->micro_rows);
    take_evaluation(&evaluation, memory, shape);
    memory->size = training.size > evaluation.size ? training.size : evaluation.size;
}

size_t memory_size(const struct memory_shape *shape)
{
    struct memory memory;

    lay_out(&memory, NULL, shape);
    return memory.size;
}

/* A batch norm saves by the group: of a whole group, an even share for each row. */
size_t memory_row_size(const struct memory_shape *shape)
{
    struct cursor cursor = {0};
    struct memory memory = {0};
    int64_t rows = shape->norm_batch > 1 ? shape->norm_batch : 1;

    take_training(&cursor, &memory, shape, rows);
    return (cursor.exact + (size_t)rows - 1) / (size_t)rows;
}

int memory_init(struct memory *memory, const struct memory_shape *shape, struct device *device,
                struct error *err)
{
    size_t size = memory_size(shape);
    void *block;

    *memory = (struct memory){0};
    if (device->operations->allocate(device, &block, size, err) != 0)
        return error_prefix(err, "trial of %lld parameters, batches of %lld rows",
                            (long long)shape->model->parameters, (long long)shape->micro_rows);
    lay_out(memory, block, shape);
    return 0;
}

void memory_release(struct memory *memory, struct device *device)
{
    if (memory->block)
        device->operations->release(device, memory->block);
    *memory = (struct memory){0};
}
