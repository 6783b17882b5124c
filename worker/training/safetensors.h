/* The safetensors format: 8 bytes of little-endian header length, a JSON header {name: {dtype, shape,
 * data_offsets},
 * "__metadata__": {string: string}} padded with spaces to 8 bytes, then the tensors without gaps. Float32
 * only. Files written here open with the public packages. */
#ifndef RUNG_WORKER_TRAINING_SAFETENSORS_H
#define RUNG_WORKER_TRAINING_SAFETENSORS_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor {
    char name[80];
    int dimensions; /* 1 or 2 */
    int64_t shape[2];
    const float *data; /* borrowed; row-major */
};

/* Under a temporary name, then renamed: whole or not at all; not synced to the disk.
 * `metadata`: an object of strings; gets one more, "crc32" of the tensors' bytes and the other metadata. */
int safetensors_write(const char *path, const struct tensor *tensors, int count, json_t *metadata,
                      struct error *err);

struct safetensors {
    char *bytes; /* the whole file */
    json_t *header;
    const char *data; /* behind the header */
    size_t data_size;
};
/* Reads and checks everything: lengths, JSON, types, shapes against sizes, no gap, no overlap, nothing behind
 * the end, and the checksum where there is one. ERROR_RESOURCE says what is wrong with which file. */
int safetensors_open(struct safetensors *file, const char *path, struct error *err);
void safetensors_close(struct safetensors *file);
/* What is behind `prefix` in the names of `whole`'s tensors and metadata, as a file of its own that borrows
 * its data: to be closed first. ERROR_MEMORY. */
int safetensors_part(struct safetensors *part, const struct safetensors *whole, const char *prefix,
                     struct error *err);
/* The metadata of that key (borrowed), or NULL. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);
/* The name of a tensor that is none of those and does not begin with `ignored` (may be NULL); NULL: none.
 * Borrowed. */
const char *safetensors_other(const struct safetensors *file, const struct tensor *tensors, int count,
                              const char *ignored);
/* Copies the tensor of that name, which must have `shape`, to `to`. */
int safetensors_read(const struct safetensors *file, const char *name, int dimensions, const int64_t *shape,
                     float *to, struct error *err);

#endif
