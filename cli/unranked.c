/* The cause of failure is not hidden behind "no successful trial". */
#include "cli/unranked.h"

#include "base/json.h"
#include "base/text.h"
#include "coordinator/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 800 /* of the end of a text */

/* What most rows came to: *state and *reason are borrowed from them. Returns how many. */
static size_t find_most(const json_t *rows, const char **state, const char **reason)
{
    size_t most = 0, i, k;
    const json_t *row, *other;
    json_array_foreach(rows, i, row)
    {
        size_t count = 0;
        const char *row_state = json_get_string(row, "state", ""), *why = json_get_string(row, "reason", "");
        json_array_foreach(rows, k, other)
        {
            count += strcmp(json_get_string(other, "state", ""), row_state) == 0 &&
                     strcmp(json_get_string(other, "reason", ""), why) == 0;
        }
        if (count > most) {
            most = count;
            *state = row_state;
            *reason = why;
        }
        if (2 * most >= json_array_size(rows))
            break;
    }
    return most;
}

/* 0: none failed. */
static int64_t find_first_failure(const json_t *rows)
{
    int64_t first = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        int64_t trial = json_get_integer(row, "trial", 0);
        if (strcmp(json_get_string(row, "state", ""), "failed") == 0 && (first == 0 || trial < first))
            first = trial;
    }
    return first;
}

static void append_reason(struct text *line, const json_t *rows)
{
    const char *state = "", *reason = "";
    size_t all = json_array_size(rows), most = find_most(rows, &state, &reason);
    if (all == 0)
        text_append(line, "none was trained");
    else if (strcmp(state, "failed") == 0)
        text_printf(line, "%zu of %zu failed (%s)", most, all, reason);
    else if (strcmp(state, "completed") == 0)
        text_printf(line, "%zu of %zu ended without one", most, all);
    else
        text_printf(line, "%zu of %zu are %s%s%s%s", most, all, state, *reason ? " (" : "", reason,
                    *reason ? ")" : "");
}

/* The last attempt's error: its end, from the beginning of a line. */
static void append_failure(struct text *line, const json_t *trial, const char *sweep_id, const char *db)
{
    const json_t *attempts = json_object_get(trial, "attempts");
    size_t count = json_array_size(attempts);
    const char *error = count > 0 ? json_get_string(json_array_get(attempts, count - 1), "error", "") : "";
    size_t size = strlen(error);
    long long number = json_get_integer(trial, "trial", 0);
    if (size == 0) {
        text_printf(line, "; see: rung show %s %lld --db %s", sweep_id, number, db);
        return;
    }
    if (size > SHOWN_BYTES) {
        const char *end = strchr(error + size - SHOWN_BYTES, '\n');
        error = end ? end + 1 : error + size - SHOWN_BYTES;
    }
    text_printf(line, "; trial %lld said: %s", number, error);
}

int unranked_explain(const char *command, const char *db, const char *sweep_id, const char *metric,
                     struct error *err)
{
    struct leaderboard_query query = {0};
    struct store *store = store_open(db, STORE_READ, NULL, err);
    json_t *rows = store ? store_leaderboard(store, sweep_id, &query, err) : NULL;
    int64_t failed = rows ? find_first_failure(rows) : 0;
    json_t *trial = failed ? store_trial(store, sweep_id, failed, err) : NULL;
    int result = rows && (failed == 0 || trial) ? 0 : -1;
    if (result == 0) {
        struct text line;
        text_init(&line);
        if (metric)
            text_printf(&line, "no trial has a finite %s: ", metric);
        else
            text_append(&line, "no trial was completed: ");
        append_reason(&line, rows);
        if (trial)
            append_failure(&line, trial, sweep_id, db);
        char *said = text_steal(&line);
        if (said)
            utf8_mend(said);
        size_t size = said ? strlen(said) : 0;
        if (said)
            fprintf(stderr, "rung %s: %s%s", command, said, said[size - 1] == '\n' ? "" : "\n");
        free(said);
    }
    json_decref(trial);
    json_decref(rows);
    store_close(store);
    return result;
}
