/* What a linear model comes to on the same data, beside the trials. */
#include "cli/baseline_table.h"

#include "base/json.h"
#include "cli/listing.h"

#include <math.h>
#include <string.h>

/* Borrowed; NULL: none. */
static json_t *baseline_objective(const json_t *sweep)
{
    const json_t *metrics = json_object_get(json_object_get(sweep, "baseline"), "metrics");
    return json_object_get(metrics, json_get_string(sweep, "metric", ""));
}

json_t *baseline_row(const json_t *sweep)
{
    json_t *baseline = json_object_get(sweep, "baseline"), *objective = baseline_objective(sweep);
    if (!objective) {
        return NULL;
    }
    return json_pack("{s:s, s:s, s:O, s:s, s:O?, s:O?, s:O?, s:O?}", "rank", "-", "trial", "baseline",
                     "objective", objective, "outcome", "linear", "resource",
                     json_object_get(baseline, "epochs"), "metrics", json_object_get(baseline, "metrics"),
                     "seconds", json_object_get(baseline, "seconds"), "device",
                     json_object_get(baseline, "device"));
}

static bool is_beaten(const json_t *sweep, double best, double baseline)
{
    bool maximize = strcmp(json_get_string(sweep, "goal", ""), "maximize") == 0;
    return isnan(baseline) || (maximize ? best > baseline : best < baseline);
}

void baseline_append_note(struct text *text, const json_t *sweep)
{
    const json_t *failed = json_object_get(json_object_get(sweep, "baseline"), "failed");
    const json_t *best = json_object_get(sweep, "best"), *objective = baseline_objective(sweep);
    double best_value, value;
    if (failed) {
        text_append(text, "no linear baseline: ");
        listing_append(text, failed, LISTING_VALUE);
        text_append(text, "\n");
    } else if (json_number_get(best, &best_value) && json_number_get(objective, &value) &&
               !is_beaten(sweep, best_value, value)) {
        text_printf(text, "note: trial %lld, the best, does not beat the linear baseline: ",
                    (long long)json_get_integer(sweep, "best_trial", 0));
        listing_append(text, best, LISTING_VALUE);
        text_append(text, " against ");
        listing_append(text, objective, LISTING_VALUE);
        text_append(text, "\n");
    }
}
