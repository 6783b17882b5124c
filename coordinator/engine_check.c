/* Whether stored rows can be what an engine kept. A database that was cut, mixed or edited must not be gone
 * on with: a trial that can never run would be waited for, and results would be compared that were never
 * reported. */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include "base/files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_LIMIT (1LL << 53) /* what messages carry */

/* What the other tables say of a trial. */
struct told {
    int64_t attempts;
    bool is_open;     /* the newest attempt has not ended */
    bool has_reports; /* one at the trial's resource */
    int entries;
    bool may_go_on; /* from its last rung */
};

struct check {
    const struct engine_settings *settings;
    const struct snapshot *snapshot;
    const struct trial_record **trials; /* by number; NULL: none */
    struct told *told;                  /* likewise */
    int64_t last;
    int64_t levels[STOPPING_LEVELS];
    int level_count;
    struct error *err;
};

static int damaged(const struct check *check, int64_t trial, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int damaged(const struct check *check, int64_t trial, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return error_set(check->err, ERROR_RESOURCE,
                     "the database is damaged: trial %lld %s; use a copy, or begin anew with another --name",
                     (long long)trial, text);
}

int64_t engine_resource_limit(const struct engine_settings *settings, bool is_final)
{
    return is_final ? FINAL_EPOCHS_LIMIT : settings->stopping.max_iter;
}

static int check_number(const struct check *check, int64_t trial, const char *what, int64_t value,
                        int64_t limit)
{
    return value >= 0 && value <= limit ? 0
                                        : damaged(check, trial, "has %lld as %s, beyond 0 to %lld",
                                                  (long long)value, what, (long long)limit);
}

/* ---- trials ---- */

static int check_state(const struct check *check, const struct trial_record *row)
{
    bool any = check->told[row->number].attempts > 0, open = check->told[row->number].is_open;
    const char *state = trial_state_name(row->state);
    if (trial_state_is_end(row->state) != (row->reason != REASON_NONE))
        return damaged(check, row->number, "is %s for the reason \"%s\"", state,
                       trial_reason_name(row->reason));
    if (open != (row->state == TRIAL_RUNNING))
        return damaged(check, row->number, "is %s, and its newest attempt %s", state,
                       open  ? "has not ended"
                       : any ? "has ended"
                             : "is not there");
    if (!any && row->state != TRIAL_WAITING && row->state != TRIAL_CANCELLED)
        return damaged(check, row->number, "is %s and has no attempt", state);
    if (row->resource > 0 && !row->is_final && !check->told[row->number].has_reports)
        return damaged(check, row->number, "came to %lld and has no report there", (long long)row->resource);
    return 0;
}

static int check_parameters(const struct check *check, const struct trial_record *row)
{
    const struct engine_settings *settings = check->settings;
    if (!json_is_object(row->parameters))
        return damaged(check, row->number, "has no parameters");
    if (row->is_final)
        return 0;
    int64_t size = settings->sampler->size(settings->space);
    if (size >= 0 && row->number > size)
        return damaged(check, row->number, "is beyond the %lld points of the space", (long long)size);
    json_t *point = settings->sampler->propose(settings->space, settings->seed, row->number);
    if (!point)
        return error_set(check->err, ERROR_MEMORY, "no memory to check the rows");
    bool same = json_equal(point, row->parameters);
    json_decref(point);
    return same ? 0 : damaged(check, row->number, "has other parameters than the seed gives to that number");
}

static int check_trial(const struct check *check, const struct trial_record *row)
{
    int64_t number = row->number, limit = engine_resource_limit(check->settings, row->is_final);
    if (row->is_final != (number == 0))
        return damaged(check, number, "is taken for the refit, or the refit for a trial");
    if (*row->checkpoint && !sha256_is_valid(row->checkpoint))
        return damaged(check, number, "names a checkpoint that is no SHA-256");
    if (check_number(check, number, "resource", row->resource, limit) < 0 ||
        check_number(check, number, "resource of the checkpoint", row->checkpoint_resource, limit) < 0 ||
        check_number(check, number, "size of the checkpoint", row->checkpoint_bytes, NUMBER_LIMIT) < 0 ||
        check_number(check, number, "retries", row->retries, NUMBER_LIMIT) < 0 ||
        check_number(check, number, "losses", row->losses, NUMBER_LIMIT) < 0)
        return -1;
    return check_parameters(check, row) < 0 || check_state(check, row) < 0 ? -1 : 0;
}

/* Numbers from 1 without a gap, perhaps 0 before them. */
static int trials_take(struct check *check)
{
    const struct snapshot *snapshot = check->snapshot;
    for (size_t i = 0; i < snapshot->trial_count; i++) {
        const struct trial_record *row = &snapshot->trials[i];
        if (row->number != 0 && row->number != check->last + 1)
            return damaged(check, check->last + 1, "is missing");
        check->last = row->number > check->last ? row->number : check->last;
        check->trials[row->number] = row;
    }
    return 0;
}

static bool trial_exists(const struct check *check, int64_t number)
{
    return number >= 0 && number <= check->last && check->trials[number];
}

/* ---- what belongs to a trial ---- */

static int attempts_take(struct check *check)
{
    for (size_t i = 0; i < check->snapshot->attempt_count; i++) {
        const struct attempt_record *row = &check->snapshot->attempts[i];
        if (!trial_exists(check, row->trial))
            return damaged(check, row->trial, "is missing, but has attempts");
        struct told *told = &check->told[row->trial];
        int64_t limit = engine_resource_limit(check->settings, row->trial == 0);
        if (row->number != told->attempts + 1 || told->is_open)
            return damaged(check, row->trial, "has attempt %lld without an end of the one before",
                           (long long)row->number);
        if (!row->worker)
            return damaged(check, row->trial, "has attempt %lld of no worker", (long long)row->number);
        if (check_number(check, row->trial, "start of an attempt", row->start, limit) < 0 ||
            check_number(check, row->trial, "bound of an attempt", row->until, limit) < 0 ||
            check_number(check, row->trial, "sequence of an attempt", row->last_sequence, NUMBER_LIMIT) < 0)
            return -1;
        told->attempts++;
        told->is_open = row->outcome == OUTCOME_NONE;
    }
    return 0;
}

static int reports_take(struct check *check)
{
    for (size_t i = 0; i < check->snapshot->report_count; i++) {
        const struct report_record *row = &check->snapshot->reports[i];
        if (!trial_exists(check, row->trial) || row->attempt < 1 ||
            row->attempt > check->told[row->trial].attempts)
            return damaged(check, row->trial, "has a report of attempt %lld, which is missing",
                           (long long)row->attempt);
        if (check_number(check, row->trial, "resource of a report", row->resource,
                         engine_resource_limit(check->settings, row->trial == 0)) < 0)
            return -1;
        if (!json_is_object(row->metrics))
            return damaged(check, row->trial, "has a report without metrics at %lld",
                           (long long)row->resource);
        check->told[row->trial].has_reports |= row->resource == check->trials[row->trial]->resource;
    }
    return 0;
}

static int entries_take(struct check *check)
{
    int64_t order = 0;
    for (size_t i = 0; i < check->snapshot->rung_entry_count; i++) {
        const struct rung_entry_record *row = &check->snapshot->rung_entries[i];
        if (row->trial < 1 || !trial_exists(check, row->trial))
            return damaged(check, row->trial, "is missing, but entered a rung");
        struct told *told = &check->told[row->trial];
        if (row->rung != told->entries || row->rung >= check->level_count ||
            (told->entries > 0 && !told->may_go_on))
            return damaged(check, row->trial, "entered rung %lld without the one before",
                           (long long)row->rung);
        if (row->bracket != check->trials[row->trial]->bracket)
            return damaged(check, row->trial, "entered a rung of another bracket");
        if (row->order <= order)
            return damaged(check, row->trial, "entered rung %lld at the same time as another",
                           (long long)row->rung);
        order = row->order;
        told->entries++;
        told->may_go_on = row->promoted;
    }
    return 0;
}

/* A report at a rung made an entry there, in the same commit. */
static int check_entries(const struct check *check, const struct trial_record *row)
{
    const struct told *told = &check->told[row->number];
    bool open = told->entries == 0 || told->may_go_on;
    if (row->state == TRIAL_PAUSED && (told->entries == 0 || told->may_go_on))
        return damaged(check, row->number, "is paused, but not at a rung");
    if (row->number > 0 && open && told->entries < check->level_count &&
        row->resource >= check->levels[told->entries])
        return damaged(check, row->number, "came to %lld, but never entered the rung at %lld",
                       (long long)row->resource, (long long)check->levels[told->entries]);
    return 0;
}

static int check_all(struct check *check)
{
    const struct stopping_settings *stopping = &check->settings->stopping;
    if (stopping->kind != STOPPING_NONE) {
        check->level_count = stopping_levels(stopping, check->levels, check->err);
        if (check->level_count < 0)
            return -1;
    }
    if (trials_take(check) < 0 || attempts_take(check) < 0 || reports_take(check) < 0 ||
        entries_take(check) < 0)
        return -1;
    for (int64_t number = 0; number <= check->last; number++) {
        const struct trial_record *row = check->trials[number];
        if (row && (check_trial(check, row) < 0 || check_entries(check, row) < 0))
            return -1;
    }
    return 0;
}

int engine_check_snapshot(const struct engine_settings *settings, const struct snapshot *snapshot,
                          struct error *err)
{
    struct check check = {.settings = settings, .snapshot = snapshot, .err = err};
    check.trials = calloc(snapshot->trial_count + 2, sizeof(*check.trials));
    check.told = calloc(snapshot->trial_count + 2, sizeof(*check.told));
    int result = check.trials && check.told ? check_all(&check)
                                            : error_set(err, ERROR_MEMORY, "no memory to check the rows");
    free(check.trials);
    free(check.told);
    return result;
}
