/* Reading and writing safetensors files. */
#include "worker/training/safetensors.h"

#include "base/files.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LENGTH_SIZE 8
#define HEADER_LIMIT (100u << 20) /* the public packages refuse longer ones too */
#define METADATA "__metadata__"
#define CHECKSUM "crc32"
#define CHECKSUM_TEXT 16

static size_t tensor_size(int dimensions, const int64_t *shape)
{
    size_t size = sizeof(float);
    for (int i = 0; i < dimensions; i++)
        size *= (size_t)shape[i];
    return size;
}

/* CRC-32 of what `sum` was of, and then `bytes`. */
static uint32_t checksum(uint32_t sum, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(sum, bytes, size);
}

/* `sum` of the tensors, and then of the metadata's canonical text without the checksum; -1 without memory. */
static int checksum_text(uint32_t sum, const json_t *metadata, char digits[CHECKSUM_TEXT])
{
    json_t *rest = json_object();
    /* Not json_copy, which leaves out what it has no memory for. */
    int failed = metadata ? json_object_update(rest, (json_t *)metadata) : 0;
    struct text text;

    json_object_del(rest, CHECKSUM);
    text_init(&text);
    json_append(&text, failed ? NULL : rest);
    json_decref(rest);
    failed = text.failed ? -1 : 0;
    if (!failed)
        snprintf(digits, CHECKSUM_TEXT, "%08x", checksum(sum, text.data, text.size));
    text_release(&text);
    return failed;
}

/* ---- writing ---- */

static json_t *describe(const struct tensor *tensor, size_t offset)
{
    json_t *shape = tensor->dimensions == 1
                        ? json_pack("[I]", (json_int_t)tensor->shape[0])
                        : json_pack("[I, I]", (json_int_t)tensor->shape[0], (json_int_t)tensor->shape[1]);

    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                     (json_int_t)offset,
                     (json_int_t)(offset + tensor_size(tensor->dimensions, tensor->shape)));
}

/* Header text, padded so that the tensors begin at a multiple of 8. */
static char *header_text(const struct tensor *tensors, int count, json_t *metadata, size_t *size)
{
    json_t *header = json_object();
    size_t offset = 0;
    struct text text;
    int failed = json_object_set(header, METADATA, metadata);

    for (int i = 0; i < count; i++) {
        failed |= json_object_set_new(header, tensors[i].name, describe(&tensors[i], offset));
        offset += tensor_size(tensors[i].dimensions, tensors[i].shape);
    }
    text_init(&text);
    json_append(&text, failed ? NULL : header);
    json_decref(header);
    while (!text.failed && text.size % LENGTH_SIZE != 0)
        text_append(&text, " ");
    *size = text.size;
    return text_steal(&text);
}

static void write_length(char *to, uint64_t length)
{
    for (int i = 0; i < LENGTH_SIZE; i++)
        to[i] = (char)(length >> (8 * i));
}

int safetensors_write(const char *path, const struct tensor *tensors, int count, json_t *metadata,
                      struct error *err)
{
    size_t size = LENGTH_SIZE, header_size = 0, offset;
    uint32_t sum = 0;
    char *header, *bytes;
    char digits[CHECKSUM_TEXT];
    int result;

    for (int i = 0; i < count; i++) {
        size += tensor_size(tensors[i].dimensions, tensors[i].shape);
        sum = checksum(sum, tensors[i].data, tensor_size(tensors[i].dimensions, tensors[i].shape));
    }
    header = NULL;
    if (checksum_text(sum, metadata, digits) == 0 &&
        json_object_set_new(metadata, CHECKSUM, json_string(digits)) == 0)
        header = header_text(tensors, count, metadata, &header_size);
    bytes = header ? malloc(size + header_size) : NULL;
    if (!bytes) {
        free(header);
        return error_set(err, ERROR_MEMORY, "%s: no memory for a checkpoint", path);
    }
    write_length(bytes, header_size);
    memcpy(bytes + LENGTH_SIZE, header, header_size);
    offset = LENGTH_SIZE + header_size;
    for (int i = 0; i < count; i++) {
        size_t tensor = tensor_size(tensors[i].dimensions, tensors[i].shape);
        memcpy(bytes + offset, tensors[i].data, tensor);
        offset += tensor;
    }
    /* Not waiting for the disk: 4 to 16 ms a pause, where an epoch may take one. A file that a power cut tore
     * is refused by its checksum, and what must be durable is the copy the coordinator stores. */
    result = file_write_unsynced(path, bytes, offset, 0644, err);
    free(bytes);
    free(header);
    return result;
}

/* ---- reading ---- */

struct extent {
    size_t begin, end;
};

static int extent_compare(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end); /* an empty tensor comes before the one behind it */
}

/* One entry of the header: its extent, if all its fields are sound. */
static bool entry_check(const json_t *entry, size_t data_size, struct extent *extent)
{
    const json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    json_int_t begin, end;
    uint64_t count = 1;

    if (!type || strcmp(type, "F32") != 0 || !json_is_array(shape) || json_array_size(offsets) != 2)
        return false;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0 ||
            __builtin_mul_overflow(count, (uint64_t)json_integer_value(size), &count))
            return false;
    }
    if (!json_is_integer(json_array_get(offsets, 0)) || !json_is_integer(json_array_get(offsets, 1)))
        return false;
    begin = json_integer_value(json_array_get(offsets, 0));
    end = json_integer_value(json_array_get(offsets, 1));
    if (begin < 0 || end < begin || (uint64_t)end > data_size || count > data_size / sizeof(float) ||
        (uint64_t)(end - begin) != count * sizeof(float))
        return false;
    *extent = (struct extent){(size_t)begin, (size_t)end};
    return true;
}

/* All entries sound, and together exactly the data. */
static int entries_check(const struct safetensors *file, const char *path, struct error *err)
{
    struct extent *extents = calloc(json_object_size(file->header) + 1, sizeof(*extents));
    size_t count = 0, at = 0;
    const char *name;
    json_t *entry;
    int result = 0;

    if (!extents)
        return error_set(err, ERROR_MEMORY, "%s: no memory to check it", path);
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, METADATA) == 0)
            continue;
        if (result == 0 && !entry_check(entry, file->data_size, &extents[count++]))
            result =
                error_set(err, ERROR_RESOURCE, "%s: tensor '%s' is malformed or beyond the end", path, name);
    }
    qsort(extents, count, sizeof(*extents), extent_compare);
    for (size_t i = 0; i < count && result == 0; i++) {
        if (extents[i].begin != at)
            result =
                error_set(err, ERROR_RESOURCE, "%s: tensors overlap or leave a gap at byte %zu", path, at);
        at = extents[i].end;
    }
    free(extents);
    if (result == 0 && at != file->data_size)
        return error_set(err, ERROR_RESOURCE, "%s: %zu bytes of tensors, %zu in the file", path, at,
                         file->data_size);
    return result;
}

static int content_check(const struct safetensors *file, const char *path, struct error *err)
{
    const char *expected = safetensors_metadata(file, CHECKSUM);
    char digits[CHECKSUM_TEXT];

    if (entries_check(file, path, err) != 0)
        return -1;
    if (checksum_text(checksum(0, file->data, file->data_size), json_object_get(file->header, METADATA),
                      digits) != 0)
        return error_set(err, ERROR_MEMORY, "%s: no memory to check it", path);
    if (expected && strcmp(expected, digits) != 0)
        return error_set(err, ERROR_RESOURCE, "%s: is corrupt (checksum %s, expected %s)", path, digits,
                         expected);
    return 0;
}

int safetensors_open(struct safetensors *file, const char *path, struct error *err)
{
    struct error parse;
    size_t size;
    uint64_t length = 0;

    *file = (struct safetensors){0};
    file->bytes = file_read(path, 0, &size, err);
    if (!file->bytes)
        return -1;
    for (int i = 0; i < LENGTH_SIZE && size >= LENGTH_SIZE; i++)
        length |= (uint64_t)(unsigned char)file->bytes[i] << (8 * i);
    if (size < LENGTH_SIZE || length > size - LENGTH_SIZE || length > HEADER_LIMIT) {
        error_set(err, ERROR_RESOURCE, "%s: is truncated or no safetensors file (%zu bytes)", path, size);
        goto fail;
    }
    file->header = json_parse(file->bytes + LENGTH_SIZE, (size_t)length, &parse);
    if (!json_is_object(file->header)) {
        error_set(err, ERROR_RESOURCE, "%s: its header is no JSON object", path);
        goto fail;
    }
    file->data = file->bytes + LENGTH_SIZE + length;
    file->data_size = size - LENGTH_SIZE - (size_t)length;
    if (content_check(file, path, err) == 0)
        return 0;
fail:
    safetensors_close(file);
    return -1;
}

void safetensors_close(struct safetensors *file)
{
    json_decref(file->header);
    free(file->bytes);
    *file = (struct safetensors){0};
}

/* to = what is behind the prefix in from. -1 without memory. */
static int take_part(json_t *to, const json_t *from, const char *prefix)
{
    size_t length = strlen(prefix);
    const char *name;
    json_t *value;
    int failed = to ? 0 : -1;

    json_object_foreach((json_t *)from, name, value)
    {
        if (strncmp(name, prefix, length) == 0)
            failed |= json_object_set(to, name + length, value);
    }
    return failed;
}

int safetensors_part(struct safetensors *part, const struct safetensors *whole, const char *prefix,
                     struct error *err)
{
    json_t *metadata = json_object();

    *part = (struct safetensors){.header = json_object(), .data = whole->data, .data_size = whole->data_size};
    if (take_part(part->header, whole->header, prefix) == 0 &&
        take_part(metadata, json_object_get(whole->header, METADATA), prefix) == 0 &&
        json_object_set(part->header, METADATA, metadata) == 0) {
        json_decref(metadata);
        return 0;
    }
    json_decref(metadata);
    safetensors_close(part);
    return error_set(err, ERROR_MEMORY, "no memory to read a part of it");
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

const char *safetensors_other(const struct safetensors *file, const struct tensor *tensors, int count,
                              const char *ignored)
{
    const char *name;
    json_t *entry;

    json_object_foreach(file->header, name, entry)
    {
        bool known = strcmp(name, METADATA) == 0 || (ignored && strncmp(name, ignored, strlen(ignored)) == 0);
        for (int i = 0; i < count && !known; i++)
            known = strcmp(name, tensors[i].name) == 0;
        if (!known)
            return name;
    }
    return NULL;
}

int safetensors_read(const struct safetensors *file, const char *name, int dimensions, const int64_t *shape,
                     float *to, struct error *err)
{
    const json_t *entry = json_object_get(file->header, name), *sizes = json_object_get(entry, "shape");
    bool equal = json_array_size(sizes) == (size_t)dimensions;

    if (!entry)
        return error_set(err, ERROR_RESOURCE, "no tensor '%s'", name);
    for (int i = 0; i < dimensions && equal; i++)
        equal = json_integer_value(json_array_get(sizes, (size_t)i)) == shape[i];
    if (!equal) {
        char *found = json_canonical(sizes), expected[64];
        snprintf(expected, sizeof(expected), dimensions == 2 ? "[%lld,%lld]" : "[%lld]", (long long)shape[0],
                 (long long)shape[dimensions - 1]);
        error_set(err, ERROR_RESOURCE, "tensor '%s' has shape %s, expected %s", name, found ? found : "?",
                  expected);
        free(found);
        return -1;
    }
    size_t begin = (size_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    memcpy(to, file->data + begin, tensor_size(dimensions, shape));
    return 0;
}
