/* What the data says against a spec that is right in itself: batches larger than the data or of a single row,
 * a refit that nothing scores. */
#include "cli/check_report.h"

#include "worker/training/settings.h"

#include <string.h>

#define POINTS 32 /* of the space that are looked at */

static int add_warning(json_t *notes, const char *key, const char *message)
{
    return json_array_append_new(notes, json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", "warning", "line", 0,
                                                  "column", 0, "key", key, "message", message));
}

static int warn_of_large_batches(json_t *notes, const struct dataset *dataset, const json_t *derived)
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

/* One row less its own mean is 0, whatever it was. */
static int warn_of_single_rows(json_t *notes, const struct spec *spec)
{
    for (int64_t number = 1; number <= POINTS; number++) {
        struct training_settings settings;
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, number);
        bool none = !point;
        bool read = point && training_settings_read(&settings, spec->train, point, NULL) == 0;
        json_decref(point);
        if (none) {
            return 0;
        }
        if (read && settings.norm == NORM_BATCH && settings.batch_size == 1) {
            return add_warning(
                notes, "batch_size",
                "1 is too few for norm batch, whose statistics of one row leave nothing of it: such "
                "a trial cannot learn (norm: layer can)");
        }
    }
    return 0;
}

static int warn_of_no_score(json_t *notes, const struct spec *spec, const struct dataset *dataset)
{
    const json_t *final = json_object_get(spec->train, "final");
    const char *refit = json_get_string(final, "refit", "train+validation");
    if (!json_is_object(final) || strcmp(refit, "none") == 0 || dataset->rows[SPLIT_TEST] > 0) {
        return 0;
    }
    return add_warning(
        notes, "train.final",
        "there are no test rows (data.test: 0), so nothing scores the winner that is trained again");
}

int check_warn(json_t *notes, const struct spec *spec, const struct dataset *dataset, const json_t *derived)
{
    int status = warn_of_large_batches(notes, dataset, derived);
    if (status == 0) {
        status = warn_of_single_rows(notes, spec);
    }
    return status == 0 ? warn_of_no_score(notes, spec, dataset) : status;
}
