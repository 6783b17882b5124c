/* Checkpoints: the trial's flat blocks to named tensors and back. */
#include "worker/training/checkpoint.h"

#include "base/text.h"
#include "worker/training/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "rung-1"
#define BLOCKS (2 + MOMENTS)

/* One flat block of parameter size and what its tensors' names begin with. */
struct block {
    const char *prefix;
    real *memory; /* on the device */
};

static const char *moment_prefix(const struct training_settings *settings, int moment)
{
    if (settings->optimizer == OPTIMIZER_SGD)
        return "optimizer.velocity.";
    return moment == 0 ? "optimizer.mean." : "optimizer.square.";
}

static int list_blocks(const struct checkpoint_subject *subject, bool best, struct block *blocks)
{
    int count = 0;

    blocks[count++] = (struct block){"", subject->memory->parameters};
    for (int i = 0; i < moment_count(subject->settings); i++)
        blocks[count++] = (struct block){moment_prefix(subject->settings, i), subject->memory->moments[i]};
    if (best)
        blocks[count++] = (struct block){"best.", subject->memory->best};
    return count;
}

/* to (columns, rows) = from (rows, columns), transposed: our (inputs, outputs), PyTorch's (outputs, inputs).
 */
static void transpose(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

static void tensor_name(struct tensor *tensor, const char *prefix, int layer, const char *part)
{
    snprintf(tensor->name, sizeof(tensor->name), "%slayers.%d.%s", prefix, layer, part);
}

static void weight_tensor(struct tensor *tensor, const struct block *block, const struct model *model,
                          int layer)
{
    const struct model_layer *shape = &model->layers[layer];

    tensor_name(tensor, block->prefix, layer, "weight");
    tensor->dimensions = 2;
    tensor->shape[0] = shape->outputs;
    tensor->shape[1] = shape->inputs;
}

static void bias_tensor(struct tensor *tensor, const struct block *block, const struct model *model,
                        int layer)
{
    tensor_name(tensor, block->prefix, layer, "bias");
    tensor->dimensions = 1;
    tensor->shape[0] = model->layers[layer].outputs;
}

/* Downloads a block and describes it: two tensors a layer, whose data lie in `values` (2 * parameters
 * floats). */
static void save_block(const struct checkpoint_subject *subject, const struct block *block, float *values,
                       struct tensor *tensors)
{
    const struct model *model = subject->model;
    float *transposed = values + model->parameters;

    subject->device->operations->download(subject->device, values, block->memory,
                                          (size_t)model->parameters * sizeof(*values));
    for (int i = 0; i < model->count; i++) {
        const struct model_layer *layer = &model->layers[i];
        transpose(transposed + layer->weight, values + layer->weight, layer->inputs, layer->outputs);
        weight_tensor(&tensors[2 * i], block, model, i);
        tensors[2 * i].data = transposed + layer->weight;
        bias_tensor(&tensors[2 * i + 1], block, model, i);
        tensors[2 * i + 1].data = values + layer->bias;
    }
}

static const char *model_name(const struct model *model)
{
    return model->count == 1 ? "linear" : "mlp";
}

static const char *activation_name(const struct model *model)
{
    return model->activation == DEVICE_GELU ? "gelu" : "relu";
}

static const char *optimizer_name(const struct training_settings *settings)
{
    return settings->optimizer == OPTIMIZER_SGD ? "sgd" : "adamw";
}

static const char *task_name(const struct dataset *dataset)
{
    return dataset->task == TASK_CLASSIFICATION ? "classification" : "regression";
}

static int set_text(json_t *metadata, const char *key, const char *value)
{
    return json_object_set_new(metadata, key, json_string(value));
}

static int set_integer(json_t *metadata, const char *key, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRId64, value);
    return set_text(metadata, key, digits);
}

static int set_number(json_t *metadata, const char *key, double value)
{
    char digits[NUMBER_SIZE];
    return set_text(metadata, key, number_format(value, digits));
}

/* NULL without memory. */
static json_t *make_metadata(const struct checkpoint_subject *subject, const struct progress *progress)
{
    json_t *metadata = json_object();
    char *preprocessing = json_canonical(subject->dataset->preprocessing);
    int failed =
        set_text(metadata, "format", FORMAT) | set_text(metadata, "model", model_name(subject->model)) |
        set_text(metadata, "activation", activation_name(subject->model)) |
        set_text(metadata, "optimizer", optimizer_name(subject->settings)) |
        set_text(metadata, "task", task_name(subject->dataset)) |
        set_text(metadata, "numerics", subject->device->name) |
        set_text(metadata, "preprocessing", preprocessing) |
        set_number(metadata, "target_mean", subject->dataset->target_mean) |
        set_number(metadata, "target_sd", subject->dataset->target_sd) |
        set_integer(metadata, "epochs", progress->epochs) | set_integer(metadata, "steps", progress->steps) |
        set_integer(metadata, "seed", (int64_t)subject->seed);

    if (progress->best_epoch > 0)
        failed |= set_integer(metadata, "best_epoch", progress->best_epoch) |
                  set_number(metadata, "best_objective", progress->best_objective);
    free(preprocessing);
    if (!failed)
        return metadata;
    json_decref(metadata);
    return NULL;
}

int checkpoint_write(const char *path, const struct checkpoint_subject *subject,
                     const struct progress *progress, struct error *err)
{
    struct block blocks[BLOCKS];
    int count = list_blocks(subject, progress->best_epoch > 0, blocks),
        tensors_each = 2 * subject->model->count;
    size_t block_size = 2 * (size_t)subject->model->parameters;
    float *values = malloc((size_t)count * block_size * sizeof(*values));
    struct tensor *tensors = calloc((size_t)(count * tensors_each), sizeof(*tensors));
    json_t *metadata = make_metadata(subject, progress);
    int result;

    if (!values || !tensors || !metadata) {
        result = error_set(err, ERROR_MEMORY, "%s: no memory for a checkpoint", path);
    } else {
        for (int i = 0; i < count; i++)
            save_block(subject, &blocks[i], values + (size_t)i * block_size, tensors + i * tensors_each);
        result = subject->device->operations->synchronize(subject->device, err);
        if (result == 0)
            result = safetensors_write(path, tensors, count * tensors_each, metadata, err);
    }
    json_decref(metadata);
    free(tensors);
    free(values);
    return result;
}

/* ---- reading ---- */

static int expect(const struct safetensors *file, const char *key, const char *expected, struct error *err)
{
    const char *found = safetensors_metadata(file, key);

    if (found && strcmp(found, expected) == 0)
        return 0;
    return error_set(err, ERROR_RESOURCE, "its %s is %s, this trial's %s", key, found ? found : "not there",
                     expected);
}

static int read_integer(const struct safetensors *file, const char *key, int64_t *value, struct error *err)
{
    const char *text = safetensors_metadata(file, key);
    char *end = NULL;

    if (text)
        *value = strtoll(text, &end, 10);
    if (!text || end == text || *end != '\0' || *value < 0)
        return error_set(err, ERROR_RESOURCE, "its %s is no whole number", key);
    return 0;
}

/* As number_format wrote it: an objective may have overflown. */
static bool read_objective(const char *text, double *objective)
{
    bool negative = text[0] == '-';

    if (strcmp(text + negative, "Infinity") != 0)
        return number_parse(text, objective);
    *objective = negative ? -(double)INFINITY : (double)INFINITY;
    return true;
}

static int read_progress(const struct safetensors *file, struct progress *progress, struct error *err)
{
    const char *objective = safetensors_metadata(file, "best_objective");

    *progress = (struct progress){0};
    if (read_integer(file, "epochs", &progress->epochs, err) != 0 ||
        read_integer(file, "steps", &progress->steps, err) != 0)
        return -1;
    if (!objective)
        return 0;
    if (!read_objective(objective, &progress->best_objective))
        return error_set(err, ERROR_RESOURCE, "its best_objective is no number");
    return read_integer(file, "best_epoch", &progress->best_epoch, err);
}

static int check_subject(const struct safetensors *file, const struct checkpoint_subject *subject,
                         struct error *err)
{
    char seed[24];
    struct tensor next;

    snprintf(seed, sizeof(seed), "%" PRId64, (int64_t)subject->seed);
    if (expect(file, "format", FORMAT, err) != 0 ||
        expect(file, "task", task_name(subject->dataset), err) != 0 ||
        expect(file, "model", model_name(subject->model), err) != 0 ||
        expect(file, "optimizer", optimizer_name(subject->settings), err) != 0 ||
        expect(file, "seed", seed, err) != 0)
        return -1;
    if (subject->model->count > 1 && expect(file, "activation", activation_name(subject->model), err) != 0)
        return -1;
    tensor_name(&next, "", subject->model->count, "weight");
    if (safetensors_has(file, next.name))
        return error_set(err, ERROR_RESOURCE, "it has a tensor '%s', this trial's model has only %d layers",
                         next.name, subject->model->count);
    return 0;
}

/* `values`: parameters floats for the block, and as many to work in. */
static int load_block(const struct safetensors *file, const struct block *block, const struct model *model,
                      float *values, struct error *err)
{
    float *work = values + model->parameters;

    for (int i = 0; i < model->count; i++) {
        const struct model_layer *layer = &model->layers[i];
        struct tensor weight, bias;

        weight_tensor(&weight, block, model, i);
        bias_tensor(&bias, block, model, i);
        if (safetensors_read(file, weight.name, 2, weight.shape, work, err) != 0 ||
            safetensors_read(file, bias.name, 1, bias.shape, values + layer->bias, err) != 0)
            return -1;
        transpose(values + layer->weight, work, layer->outputs, layer->inputs);
    }
    return 0;
}

/* Everything is read before the first byte goes to the device. */
static int load_blocks(const struct safetensors *file, const struct checkpoint_subject *subject, bool best,
                       struct error *err)
{
    struct block blocks[BLOCKS];
    int count = list_blocks(subject, best, blocks), result = 0;
    size_t parameters = (size_t)subject->model->parameters;
    float *values = malloc((size_t)(count + 1) * parameters * sizeof(*values));

    if (!values)
        return error_set(err, ERROR_MEMORY, "no memory to read it");
    for (int i = 0; i < count && result == 0; i++)
        result = load_block(file, &blocks[i], subject->model, values + (size_t)i * parameters, err);
    for (int i = 0; i < count && result == 0; i++)
        subject->device->operations->upload(subject->device, blocks[i].memory,
                                            values + (size_t)i * parameters, parameters * sizeof(*values));
    free(values);
    return result == 0 ? subject->device->operations->synchronize(subject->device, err) : -1;
}

int checkpoint_read(const char *path, const struct checkpoint_subject *subject, struct progress *progress,
                    struct error *err)
{
    struct safetensors file;
    struct progress found;
    int result;

    if (safetensors_open(&file, path, err) != 0)
        return -1;
    result = check_subject(&file, subject, err);
    if (result == 0)
        result = read_progress(&file, &found, err);
    if (result == 0 && !subject->memory->best)
        found.best_epoch = 0;
    if (result == 0)
        result = load_blocks(&file, subject, found.best_epoch > 0, err);
    safetensors_close(&file);
    if (result != 0)
        return error_prefix(err, "%s", path);
    *progress = found;
    return 0;
}
