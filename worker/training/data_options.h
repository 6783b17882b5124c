/* The train.data object, read and checked. */
#ifndef RUNG_WORKER_TRAINING_DATA_OPTIONS_H
#define RUNG_WORKER_TRAINING_DATA_OPTIONS_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data.h"
#include "worker/training/data_features.h"
#include "worker/training/data_source.h"
#include "worker/training/data_split.h"
#include "worker/training/data_target.h"

struct options {
    const json_t *data;
    struct source path, labels, test, test_labels; /* path NULL: there is none (but of `path`) */
    enum header header;
    enum task_request task;
    bool deduplicate;
    struct split_options split;
    struct cell_rules rules; /* released by data_options_release */
    struct feature_options features;
};

/* files: may be NULL. ERROR_USAGE names the setting, what was found and what is accepted; ERROR_MEMORY.
 * Borrows `data` and `files`. */
int data_options_read(struct options *options, const json_t *data, const struct data_files *files,
                      uint64_t seed, struct error *err);
void data_options_release(struct options *options);

#endif
