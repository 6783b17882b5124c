/* What the data says against a spec that is right in itself: classes too small to be split, batches larger
 * than the data. */
#include "cli/check_report.h"

#include <stdlib.h>

/* Below it a class is missing from training, validation or test. */
#define CLASS_LEAST 3

static int add_warning(json_t *notes, const char *key, const char *message)
{
    return json_array_append_new(notes, json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", "warning", "line", 0,
                                                  "column", 0, "key", key, "message", message));
}

static int warn_of_class(json_t *notes, const struct dataset *dataset, int64_t label, int64_t rows)
{
    const json_t *names = json_object_get(dataset->preprocessing, "classes");
    struct text text;
    text_init(&text);
    text_append(&text, "class ");
    json_append(&text, json_array_get(names, (size_t)label));
    text_printf(&text, " has %lld row%s: no split has one in each of its parts", (long long)rows,
                rows == 1 ? "" : "s");
    int status = text.failed ? -1 : add_warning(notes, "train.data.target", text.data);
    text_release(&text);
    return status;
}

static int warn_of_classes(json_t *notes, const struct dataset *dataset)
{
    int64_t *counts = calloc((size_t)dataset->classes + 1, sizeof(*counts));
    int status = counts ? 0 : -1;
    for (int split = 0; status == 0 && split < SPLIT_COUNT; split++) {
        for (int64_t row = 0; row < dataset->rows[split]; row++) {
            counts[dataset->label[split][row]]++;
        }
    }
    for (int64_t label = 0; status == 0 && label < dataset->classes; label++) {
        status = counts[label] < CLASS_LEAST ? warn_of_class(notes, dataset, label, counts[label]) : 0;
    }
    free(counts);
    return status;
}

static int warn_of_batches(json_t *notes, const struct dataset *dataset, const json_t *derived)
{
    int64_t largest = 0;
    size_t index;
    json_t *row;
    json_array_foreach(json_object_get(derived, "batch_sizes"), index, row)
    {
        int64_t given = json_get_integer(row, "given_batch_size", 0);
        largest = given > largest ? given : largest;
    }
    if (largest <= dataset->rows[SPLIT_TRAIN]) {
        return 0;
    }
    char message[200];
    snprintf(message, sizeof message,
             "%lld is more than the %lld rows to train on: such a trial takes all of them at once",
             (long long)largest, (long long)dataset->rows[SPLIT_TRAIN]);
    return add_warning(notes, "batch_size", message);
}

int check_warn(json_t *notes, const struct dataset *dataset, const json_t *derived)
{
    int status = dataset->task == TASK_CLASSIFICATION ? warn_of_classes(notes, dataset) : 0;
    return status == 0 ? warn_of_batches(notes, dataset, derived) : status;
}
