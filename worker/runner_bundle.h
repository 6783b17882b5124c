/* Several checkpoints as one: a safetensors file in which what is replicate R's stands behind "replicate.R.",
 * tensors and metadata alike, with "replicates", their number, among the metadata. */
#ifndef RUNG_WORKER_RUNNER_BUNDLE_H
#define RUNG_WORKER_RUNNER_BUNDLE_H

#include "base/error.h"

#include <stdint.h>

/* Of the files `parts`, in their order. */
int bundle_write(const char *path, const char *const *parts, int64_t count, struct error *err);
/* Back into them. ERROR_RESOURCE: damaged, or of another number of replicates. */
int bundle_split(const char *path, const char *const *parts, int64_t count, struct error *err);

#endif
