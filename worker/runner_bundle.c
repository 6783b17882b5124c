/* Puts checkpoints together and takes them apart again; what is in them only their trainers know. */
#include "worker/runner_bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_SIZE 40   /* "replicate.100." */
#define CHECKSUM "crc32" /* of one file: the writer gives each its own */

static void prefix_of(int64_t r, char prefix[PREFIX_SIZE])
{
    snprintf(prefix, PREFIX_SIZE, "replicate.%lld.", (long long)r);
}

/* The tensor that a header's entry describes, under the name `name`. */
static int tensor_take(struct tensor *tensor, const struct safetensors *file, const char *name,
                       const json_t *entry, struct error *err)
{
    const json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
    tensor->dimensions = (int)json_array_size(shape);
    if (tensor->dimensions < 1 || tensor->dimensions > 2 || strlen(name) >= sizeof tensor->name) {
        return error_set(err, ERROR_RESOURCE, "tensor %.100s is none of a checkpoint's", name);
    }
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    for (int i = 0; i < tensor->dimensions; i++) {
        tensor->shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
    }
    size_t first = (size_t)json_integer_value(json_array_get(offsets, 0));
    tensor->data = (const float *)(const void *)(file->data + first);
    return 0;
}

/* What is being put together. */
struct draft {
    struct tensor *tensors;
    int count;
    json_t *metadata;
};

static int draft_room(struct draft *draft, size_t more, struct error *err)
{
    struct tensor *tensors =
        reallocarray(draft->tensors, (size_t)draft->count + more + 1, sizeof *draft->tensors);
    if (!tensors) {
        return error_set(err, ERROR_MEMORY, "no memory for a checkpoint");
    }
    draft->tensors = tensors;
    return 0;
}

static int draft_text(struct draft *draft, const char *name, const json_t *text, struct error *err)
{
    return json_object_set(draft->metadata, name, (json_t *)text) == 0
               ? 0
               : error_set(err, ERROR_MEMORY, "no memory for a checkpoint");
}

static void draft_release(struct draft *draft)
{
    free(draft->tensors);
    json_decref(draft->metadata);
}

/* ---- together ---- */

static int draft_add(struct draft *draft, const struct safetensors *file, const char *prefix,
                     struct error *err)
{
    const char *name;
    json_t *entry, *text;
    char full[PREFIX_SIZE + 120];
    if (draft_room(draft, json_object_size(file->header), err) != 0) {
        return -1;
    }
    json_object_foreach(file->header, name, entry)
    {
        snprintf(full, sizeof full, "%s%.120s", prefix, name);
        if (strcmp(name, "__metadata__") != 0 &&
            tensor_take(&draft->tensors[draft->count++], file, full, entry, err) != 0) {
            return -1;
        }
    }
    json_object_foreach(json_object_get(file->header, "__metadata__"), name, text)
    {
        snprintf(full, sizeof full, "%s%.120s", prefix, name);
        if (strcmp(name, CHECKSUM) != 0 && draft_text(draft, full, text, err) != 0) {
            return -1;
        }
    }
    return 0;
}

int bundle_write(const char *path, const char *const *parts, int64_t count, struct error *err)
{
    struct safetensors *files = calloc((size_t)count, sizeof *files);
    struct draft draft = {.metadata = json_object()};
    char prefix[PREFIX_SIZE], number[24];
    int result = files && draft.metadata ? 0 : error_set(err, ERROR_MEMORY, "no memory for a checkpoint");
    int64_t open = 0;
    for (; open < count && result == 0; open++) {
        prefix_of(open, prefix);
        result = safetensors_open(&files[open], parts[open], err);
        if (result != 0) {
            break;
        }
        result = draft_add(&draft, &files[open], prefix, err);
    }
    snprintf(number, sizeof number, "%lld", (long long)count);
    if (result == 0 && json_object_set_new(draft.metadata, "replicates", json_string(number)) != 0) {
        result = error_set(err, ERROR_MEMORY, "no memory for a checkpoint");
    }
    if (result == 0) {
        result = safetensors_write(path, draft.tensors, draft.count, draft.metadata, err);
    }
    for (int64_t r = 0; r < open; r++) {
        safetensors_close(&files[r]);
    }
    free(files);
    draft_release(&draft);
    return result;
}

/* ---- apart ---- */

int bundle_open(struct safetensors *file, const char *path, int64_t count, struct error *err)
{
    char number[24];
    if (safetensors_open(file, path, err) != 0) {
        return -1;
    }
    snprintf(number, sizeof number, "%lld", (long long)count);
    const char *held = safetensors_metadata(file, "replicates");
    if (held && strcmp(held, number) == 0) {
        return 0;
    }
    error_set(err, ERROR_RESOURCE, "%s: holds %.20s replicates, not %s", path, held ? held : "no", number);
    safetensors_close(file);
    return -1;
}

int bundle_part(struct safetensors *part, const struct safetensors *file, int64_t r, struct error *err)
{
    char prefix[PREFIX_SIZE];
    prefix_of(r, prefix);
    return safetensors_part(part, file, prefix, err);
}
