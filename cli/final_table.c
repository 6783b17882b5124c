/* The result of a sweep: its winner, trained again and tested. */
#include "cli/final_table.h"

#include "base/json.h"
#include "cli/listing.h"

#include <string.h>

/* A row for each score: a mean over the seeds, or one number. New array. */
static json_t *score_rows(const json_t *final)
{
    json_t *rows = json_array();
    bool several = json_get_integer(final, "seeds", 2) > 1; /* one has no deviation */
    const char *name;
    json_t *value;
    json_object_foreach((json_t *) final, name, value)
    {
        json_t *mean = json_object_get(value, "mean");
        double number; /* may be no finite one, which is text in JSON */
        if (strncmp(name, "test_", 5) == 0 && (mean != NULL || json_number_get(value, &number))) {
            json_array_append_new(rows, json_pack("{s:s, s:O, s:O?}", "metric", name, "mean",
                                                  mean != NULL ? mean : value, "sd",
                                                  several ? json_object_get(value, "sd") : NULL));
        }
    }
    return rows;
}

static void append_count(struct text *text, int64_t count, const char *what)
{
    if (count > 0) {
        text_printf(text, ", %lld %s%s", (long long)count, what, count == 1 ? "" : "s");
    }
}

static void append_failure(struct text *text, const json_t *final)
{
    const char *error = json_get_string(final, "error", "");
    text_printf(text, ": failed, %s%s", json_get_string(final, "failed", ""), *error != '\0' ? ": " : "");
    json_t *line = json_string(error);
    listing_append(text, line, LISTING_VALUE);
    json_decref(line);
    text_append(text, "\n");
}

int final_append(struct text *text, const json_t *sweep, struct error *err)
{
    const json_t *final = json_object_get(sweep, "final");
    if (!json_is_object(final)) {
        return 0;
    }
    text_printf(text, "refit of trial %lld", (long long)json_get_integer(sweep, "best_trial", 0));
    if (json_object_get(final, "failed") != NULL) {
        append_failure(text, final);
        return 0;
    }
    append_count(text, json_get_integer(final, "epochs", 0), "epoch");
    append_count(text, json_get_integer(final, "seeds", 0), "seed");
    text_append(text, "\n");
    struct listing listing;
    json_t *rows = score_rows(final);
    listing_init(&listing);
    listing_add(&listing, "metric", NULL, LISTING_VALUE);
    listing_add(&listing, "mean", NULL, LISTING_VALUE);
    listing_add(&listing, "sd", NULL, LISTING_BRIEF);
    int result = json_array_size(rows) > 0 ? listing_text(&listing, rows, 0, text, NULL, err) : 0;
    listing_release(&listing);
    json_decref(rows);
    return result;
}

void model_append(struct text *text, const struct query_options *query, const json_t *trial)
{
    const char *name = json_get_string(trial, "checkpoint", NULL);
    if (name == NULL) {
        return;
    }
    bool refit = json_get_integer(trial, "trial", -1) == 0;
    text_printf(text, "%s (safetensors):\n  %s.files/blobs/%s\n",
                refit ? "model of the first seed, which is kept" : "newest checkpoint",
                query->live ? "on the coordinator's machine, DB" : query_database(query), name);
}
