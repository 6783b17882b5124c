/* LIBSVM (SVMlight) files: "LABEL INDEX:VALUE INDEX:VALUE ...", only what is not 0 written down. */
#ifndef RUNG_WORKER_TRAINING_DATA_LIBSVM_H
#define RUNG_WORKER_TRAINING_DATA_LIBSVM_H

#include "base/error.h"
#include "worker/training/data_cell.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stddef.h>

#define LIBSVM_LABEL "label"
#define LIBSVM_QUERY "qid"

/* Whether the first lines of a NUL-terminated text are so written. */
bool libsvm_is(const char *bytes);
/* A dense table of "label", "qid" where some row has one, and "feature_K" for each index from the least
 * (0, or else 1) to the greatest; K is the index as written. "#" begins a comment. ERROR_USAGE with line and
 * remedy, also when the dense table would take more than half of the machine's memory; ERROR_MEMORY. */
int libsvm_parse(struct table *table, char *bytes, size_t size, const char *label,
                 const struct cell_rules *rules, struct error *err);

#endif
