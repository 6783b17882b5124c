/* Checkpoints: read, checked, and put back into the trial's flat blocks. */
#include "worker/training/checkpoint_private.h"

#include "base/text.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_identity(const struct safetensors *file, const struct checkpoint_subject *subject,
                          struct error *err)
{
    struct checkpoint_identity identities[CHECKPOINT_IDENTITIES];
    char seed[24];

    checkpoint_identities(subject, seed, identities);
    for (int i = 0; identities[i].key; i++) {
        const char *found = safetensors_metadata(file, identities[i].key);
        if (i == 0 && found && strcmp(found, "rung-1") == 0)
            return error_set(err, ERROR_RESOURCE,
                             "it was made by an earlier version of rung, whose checkpoints lack what a trial "
                             "now needs to go on; the trial has to start again");
        if (!found || strcmp(found, identities[i].value) != 0)
            return error_set(err, ERROR_RESOURCE, "its %s is %s, this trial's %s", identities[i].key,
                             found ? found : "not there", identities[i].value);
    }
    return 0;
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

static int read_small(const struct safetensors *file, const char *key, int32_t *value, struct error *err)
{
    int64_t wide;

    if (read_integer(file, key, &wide, err) != 0)
        return -1;
    if (wide > INT32_MAX)
        return error_set(err, ERROR_RESOURCE, "its %s is too large", key);
    *value = (int32_t)wide;
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

/* Without one in the file (it is of another precision) the trial begins with fp16's first. */
static int read_loss_scale(const struct safetensors *file, struct lane_state *state, struct error *err)
{
    const char *text = safetensors_metadata(file, "loss_scale");

    if (!state->scaled || !text)
        return 0;
    if (!number_parse(text, &state->loss_scale) || !(state->loss_scale > 0))
        return error_set(err, ERROR_RESOURCE, "its loss_scale is no number above 0");
    if (read_small(file, "clean_steps", &state->clean_steps, err) != 0)
        return -1;
    return read_small(file, "small_steps", &state->small_steps, err);
}

static int read_progress(const struct safetensors *file, const struct checkpoint_subject *subject,
                         struct progress *progress, struct error *err)
{
    const char *objective = safetensors_metadata(file, "best_objective");
    struct lane_state *state = &progress->state;

    if (read_integer(file, "epochs", &progress->epochs, err) != 0 ||
        read_integer(file, "steps", &state->step, err) != 0 ||
        read_integer(file, "updates", &state->updates, err) != 0 ||
        read_integer(file, "skipped", &state->skipped, err) != 0 || read_loss_scale(file, state, err) != 0)
        return -1;
    if (progress->epochs > INT64_MAX / subject->derived->steps_per_epoch ||
        state->step != progress->epochs * subject->derived->steps_per_epoch)
        return error_set(err, ERROR_RESOURCE, "its %lld steps are not %lld epochs of this trial's %lld",
                         (long long)state->step, (long long)progress->epochs,
                         (long long)subject->derived->steps_per_epoch);
    progress->best_epoch = 0;
    if (!objective || !subject->memory->best)
        return 0;
    if (!read_objective(objective, &progress->best_objective))
        return error_set(err, ERROR_RESOURCE, "its best_objective is no number");
    return read_integer(file, "best_epoch", &progress->best_epoch, err);
}

/* `values`: count floats for the block, zero, since what lies between tensors must stay so; `work`: as many.
 */
static int load_block(const struct safetensors *file, const struct checkpoint_block *block,
                      const struct model *model, float *values, float *work, struct tensor *tensors,
                      struct error *err)
{
    for (int i = 0; i < model->parameter_count; i++) {
        const struct parameter *parameter = &model->list[i];
        bool turned = parameter->kind == PARAMETER_WEIGHT;
        if (parameter->at >= block->count)
            continue;
        checkpoint_tensor(tensors, block, parameter);
        if (safetensors_read(file, tensors->name, tensors->dimensions, tensors->shape,
                             turned ? work : values + parameter->at, err) != 0)
            return -1;
        if (turned)
            checkpoint_transpose(values + parameter->at, work, parameter->columns, parameter->rows);
        tensors++;
    }
    return 0;
}

/* A file of the same kind of model with more in it is of a larger one. */
static int check_others(const struct safetensors *file, const struct tensor *tensors, int count, bool best,
                        struct error *err)
{
    const char *other = safetensors_other(file, tensors, count, best ? NULL : "best.");

    if (!other)
        return 0;
    return error_set(err, ERROR_RESOURCE, "it has a tensor '%s', which this trial's model has not", other);
}

/* Everything is read before the first byte goes to the device. */
static int load_blocks(const struct safetensors *file, const struct checkpoint_subject *subject, bool best,
                       struct error *err)
{
    const struct model *model = subject->model;
    struct checkpoint_block blocks[CHECKPOINT_BLOCKS];
    int count = checkpoint_blocks(subject, best, blocks), result = 0, tensor_count = 0;
    size_t size = (size_t)model->values;
    float *values = calloc((size_t)(count + 1) * size, sizeof(*values));
    struct tensor *tensors = calloc((size_t)count * (size_t)model->parameter_count, sizeof(*tensors));

    if (!values || !tensors)
        result = error_set(err, ERROR_MEMORY, "no memory to read it");
    for (int i = 0; i < count && result == 0; i++) {
        result = load_block(file, &blocks[i], model, values + (size_t)i * size, values + (size_t)count * size,
                            tensors + tensor_count, err);
        tensor_count += checkpoint_tensor_count(model, &blocks[i]);
    }
    if (result == 0)
        result = check_others(file, tensors, tensor_count, best, err);
    for (int i = 0; i < count && result == 0; i++)
        subject->device->operations->upload(subject->device, blocks[i].memory, values + (size_t)i * size,
                                            (size_t)blocks[i].count * sizeof(*values));
    free(tensors);
    free(values);
    return result == 0 ? subject->device->operations->synchronize(subject->device, err) : -1;
}

static int read_numerics(const struct safetensors *file, const struct checkpoint_subject *subject,
                         char **numerics, struct error *err)
{
    const char *found = safetensors_metadata(file, "numerics");
    char own[NUMERICS_SIZE];

    *numerics = NULL;
    checkpoint_numerics(subject, own);
    if (!found || strcmp(found, own) == 0)
        return 0;
    *numerics = strdup(found);
    return *numerics ? 0 : error_set(err, ERROR_MEMORY, "no memory to read it");
}

int checkpoint_read(const struct safetensors *file, const struct checkpoint_subject *subject,
                    struct progress *progress, char **numerics, struct error *err)
{
    struct progress found = *progress;

    *numerics = NULL;
    if (check_identity(file, subject, err) == 0 && read_progress(file, subject, &found, err) == 0 &&
        read_numerics(file, subject, numerics, err) == 0 &&
        load_blocks(file, subject, found.best_epoch > 0, err) == 0) {
        *progress = found;
        return 0;
    }
    free(*numerics);
    *numerics = NULL;
    return -1;
}
