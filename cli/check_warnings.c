/* What the data says against a spec that is right in itself: batches larger than the data. */
#include "cli/check_report.h"

#include <stdlib.h>

static int add_warning(json_t *notes, const char *key, const char *message)
{
    return json_array_append_new(notes, json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", "warning", "line", 0,
                                                  "column", 0, "key", key, "message", message));
}

int check_warn(json_t *notes, const struct dataset *dataset, const json_t *derived)
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
