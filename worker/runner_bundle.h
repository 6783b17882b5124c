/* Several checkpoints as one: a safetensors file in which what is replicate R's stands behind "replicate.R.",
 * tensors and metadata alike, with "replicates", their number, among the metadata. */
#ifndef RUNG_WORKER_RUNNER_BUNDLE_H
#define RUNG_WORKER_RUNNER_BUNDLE_H

#include "worker/training/safetensors.h"

/* Of the files `parts`, in their order. */
int bundle_write(const char *path, const char *const *parts, int64_t count, struct error *err);
/* Opens one again. ERROR_RESOURCE: damaged, or of another number of replicates. */
int bundle_open(struct safetensors *file, const char *path, int64_t count, struct error *err);
/* Replicate r's checkpoint in it, which borrows from it. ERROR_MEMORY. */
int bundle_part(struct safetensors *part, const struct safetensors *file, int64_t r, struct error *err);

#endif
