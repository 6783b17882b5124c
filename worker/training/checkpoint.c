/* Checkpoints: a trial's flat blocks as named tensors, written. */
#include "worker/training/checkpoint_private.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *moment_prefix(const struct training_settings *settings, int moment)
{
    if (settings->optimizer == OPTIMIZER_SGD || settings->optimizer == OPTIMIZER_LARS)
        return "optimizer.velocity.";
    return moment == 0 ? "optimizer.mean." : "optimizer.square.";
}

int checkpoint_blocks(const struct checkpoint_subject *subject, bool best, struct checkpoint_block *blocks)
{
    const struct model *model = subject->model;
    const struct memory *memory = subject->memory;
    int count = 0;

    blocks[count++] = (struct checkpoint_block){"", memory->blocks.parameters, model->values};
    for (int i = 0; i < moment_count(subject->settings); i++)
        blocks[count++] = (struct checkpoint_block){moment_prefix(subject->settings, i), memory->moments[i],
                                                    model->parameters};
    if (best)
        blocks[count++] = (struct checkpoint_block){"best.", memory->best, model->values};
    return count;
}

int checkpoint_tensor_count(const struct model *model, const struct checkpoint_block *block)
{
    int count = 0;

    for (int i = 0; i < model->parameter_count; i++)
        count += model->list[i].at < block->count;
    return count;
}

void checkpoint_tensor(struct tensor *tensor, const struct checkpoint_block *block,
                       const struct parameter *parameter)
{
    snprintf(tensor->name, sizeof(tensor->name), "%s%s", block->prefix, parameter->name);
    tensor->dimensions = 2;
    tensor->shape[0] = parameter->rows;
    tensor->shape[1] = parameter->columns;
    if (parameter->kind == PARAMETER_WEIGHT) {
        tensor->shape[0] = parameter->columns;
        tensor->shape[1] = parameter->rows;
    } else if (parameter->kind != PARAMETER_EMBEDDING) {
        tensor->dimensions = 1;
        tensor->shape[0] = parameter->columns;
    }
}

void checkpoint_transpose(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

void checkpoint_identities(const struct checkpoint_subject *subject, char seed[24],
                           struct checkpoint_identity identities[CHECKPOINT_IDENTITIES])
{
    static const char *const models[] = {
        [MODEL_LINEAR] = "linear", [MODEL_MLP] = "mlp", [MODEL_RESNET] = "resnet"};
    static const char *const norms[] = {[NORM_NONE] = "none", [NORM_LAYER] = "layer", [NORM_BATCH] = "batch"};
    static const char *const activations[] = {[ACTIVATION_RELU] = "relu",
                                              [ACTIVATION_GELU] = "gelu",
                                              [ACTIVATION_SILU] = "silu",
                                              [ACTIVATION_TANH] = "tanh"};
    static const char *const optimizers[] = {[OPTIMIZER_SGD] = "sgd",
                                             [OPTIMIZER_ADAM] = "adam",
                                             [OPTIMIZER_ADAMW] = "adamw",
                                             [OPTIMIZER_LAMB] = "lamb",
                                             [OPTIMIZER_LARS] = "lars"};
    const struct training_settings *settings = subject->settings;
    bool linear = settings->model == MODEL_LINEAR;

    snprintf(seed, 24, "%" PRId64, (int64_t)subject->seed);
    const struct checkpoint_identity all[CHECKPOINT_IDENTITIES] = {
        {"format", CHECKPOINT_FORMAT},
        {"task", subject->dataset->task == TASK_CLASSIFICATION ? "classification" : "regression"},
        {"model", models[settings->model]},
        {"norm", norms[subject->model->norm]},
        {"activation", linear ? "none" : activations[settings->activation]},
        {"loss", loss_name(subject->loss)},
        {"optimizer", optimizers[settings->optimizer]},
        {"seed", seed},
        {NULL, NULL},
    };
    memcpy(identities, all, sizeof(all));
}

void checkpoint_numerics(const struct checkpoint_subject *subject, char numerics[NUMERICS_SIZE])
{
    snprintf(numerics, NUMERICS_SIZE, "%s %s micro_batch=%" PRId64, subject->device->name,
             precision_name(subject->precision), subject->derived->micro_batch);
}

/* ---- writing ---- */

/* Downloads a block and describes its tensors, whose data lie in `values` (2 * count floats). */
static void save_block(const struct checkpoint_subject *subject, const struct checkpoint_block *block,
                       float *values, struct tensor *tensors)
{
    const struct model *model = subject->model;
    float *transposed = values + block->count;

    subject->device->operations->download(subject->device, values, block->memory,
                                          (size_t)block->count * sizeof(*values));
    for (int i = 0; i < model->parameter_count; i++) {
        const struct parameter *parameter = &model->list[i];
        if (parameter->at >= block->count)
            continue;
        checkpoint_tensor(tensors, block, parameter);
        tensors->data = values + parameter->at;
        if (parameter->kind == PARAMETER_WEIGHT) {
            checkpoint_transpose(transposed + parameter->at, values + parameter->at, parameter->rows,
                                 parameter->columns);
            tensors->data = transposed + parameter->at;
        }
        tensors++;
    }
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

static int set_progress(json_t *metadata, const struct progress *progress)
{
    const struct lane_state *state = &progress->state;
    int failed =
        set_integer(metadata, "epochs", progress->epochs) | set_integer(metadata, "steps", state->step) |
        set_integer(metadata, "updates", state->updates) | set_integer(metadata, "skipped", state->skipped);

    if (state->scaled)
        failed |= set_number(metadata, "loss_scale", state->loss_scale) |
                  set_integer(metadata, "clean_steps", state->clean_steps) |
                  set_integer(metadata, "small_steps", state->small_steps);
    if (progress->best_epoch > 0)
        failed |= set_integer(metadata, "best_epoch", progress->best_epoch) |
                  set_number(metadata, "best_objective", progress->best_objective);
    return failed;
}

/* NULL without memory. */
static json_t *make_metadata(const struct checkpoint_subject *subject, const struct progress *progress)
{
    struct checkpoint_identity identities[CHECKPOINT_IDENTITIES];
    char seed[24], numerics[NUMERICS_SIZE];
    json_t *metadata = json_object();
    char *preprocessing = json_canonical(subject->dataset->preprocessing);
    int failed = 0;

    checkpoint_identities(subject, seed, identities);
    for (int i = 0; identities[i].key; i++)
        failed |= set_text(metadata, identities[i].key, identities[i].value);
    checkpoint_numerics(subject, numerics);
    failed |= set_text(metadata, "numerics", numerics) | set_text(metadata, "preprocessing", preprocessing) |
              set_number(metadata, "target_mean", subject->dataset->target_mean) |
              set_number(metadata, "target_sd", subject->dataset->target_sd) |
              set_progress(metadata, progress);
    free(preprocessing);
    if (!failed)
        return metadata;
    json_decref(metadata);
    return NULL;
}

int checkpoint_write(const char *path, const struct checkpoint_subject *subject,
                     const struct progress *progress, struct error *err)
{
    struct checkpoint_block blocks[CHECKPOINT_BLOCKS];
    int count = checkpoint_blocks(subject, progress->best_epoch > 0, blocks), tensor_count = 0, result;
    size_t block_size = 2 * (size_t)subject->model->values;
    float *values = malloc((size_t)count * block_size * sizeof(*values));
    struct tensor *tensors =
        calloc((size_t)count * (size_t)subject->model->parameter_count, sizeof(*tensors));
    json_t *metadata = make_metadata(subject, progress);

    if (!values || !tensors || !metadata) {
        result = error_set(err, ERROR_MEMORY, "%s: no memory for a checkpoint", path);
    } else {
        for (int i = 0; i < count; i++) {
            save_block(subject, &blocks[i], values + (size_t)i * block_size, tensors + tensor_count);
            tensor_count += checkpoint_tensor_count(subject->model, &blocks[i]);
        }
        result = subject->device->operations->synchronize(subject->device, err);
        if (result == 0)
            result = safetensors_write(path, tensors, tensor_count, metadata, err);
    }
    json_decref(metadata);
    free(tensors);
    free(values);
    return result;
}
