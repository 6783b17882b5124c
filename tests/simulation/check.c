/* What must hold after each event, at each recovery, and at the end. */
#include "simulation.h"

#include "base/text.h"
#include "coordinator/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void check_event(struct simulation *simulation)
{
    struct engine_counts counts;
    engine_counts(simulation->server.engine, &counts);
    if (counts.proposed > simulation->proposed && counts.waiting > 0)
        simulation_violate(simulation, "trial %lld was begun while %lld waited to go on",
                           (long long)counts.proposed, (long long)counts.waiting);
    simulation->proposed = counts.proposed;
}

/* ---- recovery ---- */

static bool same_trial(const struct trial_record *a, const struct trial_record *b)
{
    return a->state == b->state && a->reason == b->reason && json_equal(a->parameters, b->parameters) &&
           a->has_objective == b->has_objective && a->objective == b->objective &&
           a->resource == b->resource && a->bracket == b->bracket &&
           strcmp(a->checkpoint, b->checkpoint) == 0 && a->retries == b->retries && a->losses == b->losses &&
           a->checkpoint_resource == b->checkpoint_resource;
}

static void compare_engines(struct simulation *simulation, const struct engine *live,
                            const struct engine *recovered)
{
    struct engine_counts a, b;
    engine_counts(live, &a);
    engine_counts(recovered, &b);
    if (a.proposed != b.proposed || a.waiting != b.waiting || a.running != b.running ||
        a.paused != b.paused || a.completed != b.completed || a.stopped != b.stopped ||
        a.failed != b.failed || a.ranked != b.ranked || a.best_trial != b.best_trial ||
        a.resource_done != b.resource_done || a.state != b.state || a.refitting != b.refitting)
        simulation_violate(
            simulation,
            "recovery counts otherwise: waiting %lld, %lld; running %lld, %lld; paused %lld, %lld; ended "
            "%lld, %lld; ranked %lld, %lld; best %lld, %lld; units %g, %g; refitting %d, %d",
            (long long)a.waiting, (long long)b.waiting, (long long)a.running, (long long)b.running,
            (long long)a.paused, (long long)b.paused, (long long)(a.completed + a.stopped + a.failed),
            (long long)(b.completed + b.stopped + b.failed), (long long)a.ranked, (long long)b.ranked,
            (long long)a.best_trial, (long long)b.best_trial, a.resource_done, b.resource_done, a.refitting,
            b.refitting);
    for (int64_t number = 0; number <= a.proposed; number++) {
        const struct trial_record *one = engine_trial(live, number), *other = engine_trial(recovered, number);
        if (!one != !other || (one && !same_trial(one, other)))
            simulation_violate(simulation, "recovery changes trial %lld", (long long)number);
    }
}

void check_recovery(struct simulation *simulation)
{
    struct snapshot snapshot;
    struct effects effects;
    struct error err = {0};
    if (simulation->server.leaving)
        return; /* it holds back work that a recovered engine does at once */
    effects_init(&effects);
    store_snapshot(simulation, &snapshot);
    struct engine *recovered =
        engine_restore(&simulation->settings, &snapshot, simulation_now(simulation), &effects, &err);
    if (!recovered) {
        simulation_violate(simulation, "no recovery: %s", err.message);
    } else {
        compare_engines(simulation, simulation->server.engine, recovered);
        /* While the live one holds work back because it is going away, the recovered one may have some to do.
         */
        if (effects.record_count > 0 && !simulation->server.leaving)
            simulation_violate(simulation, "recovery finds %zu things undone", effects.record_count);
    }
    engine_destroy(recovered);
    effects_release(&effects);
    store_snapshot_release(&snapshot);
}

/* ---- the end ---- */

static const struct trial_record *stored_trial(const struct simulation *simulation, int64_t number)
{
    const struct record *row = store_row(simulation, RECORD_TRIAL, number, 0, 0);
    return row ? &row->trial : NULL;
}

/* The value of the newest attempt that reported a resource in time; NAN when none did. */
static bool point_value(const struct simulation *simulation, int64_t number, int64_t resource, double *value)
{
    bool found = false;
    for (int64_t attempt = 1; store_row(simulation, RECORD_ATTEMPT, number, attempt, 0); attempt++) {
        const struct record *report = store_row(simulation, RECORD_REPORT, number, resource, attempt);
        if (report)
            found = json_number_get(json_object_get(report->report.metrics, "score"), value);
    }
    return found;
}

static void check_objective(struct simulation *simulation, const struct trial_record *trial)
{
    double expected = NAN, value;
    for (int64_t resource = 1; resource <= trial->resource; resource++) {
        if (!point_value(simulation, trial->number, resource, &value)) {
            simulation_violate(simulation, "trial %lld has no report at %lld", (long long)trial->number,
                               (long long)resource);
            continue;
        }
        bool better = simulation->settings.maximize ? value > expected : value < expected;
        if (!simulation->settings.objective_best || isnan(expected) || better)
            expected = value;
    }
    bool ranked = trial->state != TRIAL_FAILED && isfinite(expected);
    if (ranked != trial->has_objective || (ranked && expected != trial->objective))
        simulation_violate(simulation, "the objective of trial %lld is %g, not %g", (long long)trial->number,
                           trial->objective, expected);
}

static void check_attempts(struct simulation *simulation, const struct trial_record *trial)
{
    for (int64_t attempt = 1;; attempt++) {
        const struct record *row = store_row(simulation, RECORD_ATTEMPT, trial->number, attempt, 0);
        if (!row)
            break;
        double seconds = 0;
        for (int64_t resource = 1; resource <= 9; resource++) {
            const struct record *report =
                store_row(simulation, RECORD_REPORT, trial->number, resource, attempt);
            seconds += report ? report->report.seconds : 0;
        }
        if (seconds != row->attempt.seconds)
            simulation_violate(simulation, "attempt %lld of trial %lld counts %g s of %g s",
                               (long long)attempt, (long long)trial->number, row->attempt.seconds, seconds);
        if (row->attempt.outcome == OUTCOME_NONE)
            simulation_violate(simulation, "attempt %lld of trial %lld never ended", (long long)attempt,
                               (long long)trial->number);
    }
}

static void check_entries(struct simulation *simulation, const struct trial_record *trial)
{
    int64_t level = simulation->settings.stopping.min_iter;
    bool reports_it;
    if (trial_diverges_at(trial->parameters, &reports_it))
        return;
    for (int64_t rung = 0;; rung++, level *= 3) {
        const struct record *row = store_row(simulation, RECORD_RUNG_ENTRY, trial->number, rung, 0);
        if (!row)
            break;
        if (row->rung_entry.value != trial_value(trial->parameters, level))
            simulation_violate(simulation, "trial %lld entered rung %lld with another value",
                               (long long)trial->number, (long long)rung);
    }
}

static void check_trials(struct simulation *simulation)
{
    int64_t best = 0, last = simulation->store.trials;
    for (int64_t number = 1; number <= last; number++) {
        const struct trial_record *trial = stored_trial(simulation, number);
        if (!trial || !trial_state_is_end(trial->state)) {
            simulation_violate(simulation, "trial %lld has not ended", (long long)number);
            return;
        }
        check_objective(simulation, trial);
        check_attempts(simulation, trial);
        check_entries(simulation, trial);
        double sign = simulation->settings.maximize ? 1 : -1;
        if (trial->has_objective &&
            (!best || sign * trial->objective > sign * stored_trial(simulation, best)->objective))
            best = number;
    }
    for (int64_t number = 1; number <= last; number++) {
        const struct trial_record *trial = stored_trial(simulation, number);
        if (*trial->checkpoint && (number != best || (!blob_exists(simulation, trial->checkpoint) &&
                                                      !blob_is_lost(simulation, trial->checkpoint))))
            simulation_violate(simulation, "the checkpoint of trial %lld is kept or named without need",
                               (long long)number);
    }
    if (best && stored_trial(simulation, best)->state == TRIAL_COMPLETED &&
        !*stored_trial(simulation, best)->checkpoint && stored_trial(simulation, best)->losses == 0)
        simulation_violate(simulation, "the best trial has no checkpoint");
}

/* A sweep that may want one has it, or says why not: all workers may be gone by then. */
static void check_baseline(struct simulation *simulation)
{
    const struct record *sweep = store_row(simulation, RECORD_SWEEP, 0, 0, 0);
    const struct trial_record *last = stored_trial(simulation, 0);
    const json_t *baseline = sweep->sweep.baseline;
    if (!simulation->settings.baseline && baseline)
        simulation_violate(simulation, "a baseline that nobody asked for");
    if (!simulation->settings.baseline || !last || last->state != TRIAL_COMPLETED)
        return;
    if (json_get_number(json_object_get(baseline, "metrics"), "score", NAN) != BASELINE_SCORE)
        simulation_violate(simulation, "the baseline's result is not what its worker said");
    if (json_object_get(sweep->sweep.final, "baseline"))
        simulation_violate(simulation, "the baseline is part of the refit's result");
    if (!simulation->settings.final && sweep->sweep.final)
        simulation_violate(simulation, "a refit that nobody asked for");
}

static void check_final(struct simulation *simulation)
{
    const struct record *sweep = store_row(simulation, RECORD_SWEEP, 0, 0, 0);
    const struct trial_record *refit = stored_trial(simulation, 0);
    if (sweep->sweep.state != SWEEP_FINISHED || !sweep->sweep.ended_ms)
        simulation_violate(simulation, "the sweep is %s", sweep_state_name(sweep->sweep.state));
    check_baseline(simulation);
    if (!simulation->settings.final)
        return;
    if (!refit || refit->state != TRIAL_COMPLETED || !sweep->sweep.final) {
        if (scheme_is_deterministic(simulation->scheme))
            simulation_violate(simulation, "the winner was not trained again");
        return;
    }
    if (json_get_number(sweep->sweep.final, "test_score", NAN) !=
        trial_value(refit->parameters, refit->resource))
        simulation_violate(simulation, "the refit's result is not what it said");
}

/* Each blob is named by a trial: in a calm run at once, elsewhere when the ended sweep's coordinator has
 * removed what the dead left and what was sent for nothing. */
static void check_blobs(struct simulation *simulation)
{
    const struct trial_record *refit = stored_trial(simulation, 0);
    size_t unnamed;
    if (!simulation->calm)
        server_end(simulation);
    free(blobs_unnamed(simulation, &unnamed));
    if (unnamed > 0)
        simulation_violate(simulation, "%zu blobs are kept without need", unnamed);
    if (refit && *refit->checkpoint && !blob_exists(simulation, refit->checkpoint))
        simulation_violate(simulation, "the model of the refit is gone");
    if (refit && refit->state == TRIAL_COMPLETED && !*refit->checkpoint)
        simulation_violate(simulation, "the refit has no model");
}

/* Stopped: nothing is left to do, and only `stop --now` goes without the refit. */
static void check_stopped(struct simulation *simulation)
{
    const struct record *sweep = store_row(simulation, RECORD_SWEEP, 0, 0, 0);
    const struct trial_record *refit = stored_trial(simulation, 0);
    bool any = false;
    for (int64_t number = 1; number <= simulation->store.trials; number++)
        any |= stored_trial(simulation, number)->has_objective;
    if (sweep->sweep.state != SWEEP_STOPPED || !sweep->sweep.ended_ms)
        simulation_violate(simulation, "the sweep is %s", sweep_state_name(sweep->sweep.state));
    if (refit && !trial_state_is_end(refit->state))
        simulation_violate(simulation, "the refit has not ended");
    if (!simulation->stop_now && simulation->settings.final && any && !refit)
        simulation_violate(simulation, "no refit of the winner");
    check_trials(simulation);
    check_blobs(simulation);
}

void check_end(struct simulation *simulation)
{
    if (simulation->stop_at &&
        store_row(simulation, RECORD_SWEEP, 0, 0, 0)->sweep.state != SWEEP_FINISHED) { /* else: too late */
        check_stopped(simulation);
        return;
    }
    if (simulation->store.trials != simulation->trials)
        simulation_violate(simulation, "%lld trials instead of %lld", (long long)simulation->store.trials,
                           (long long)simulation->trials);
    check_trials(simulation);
    check_final(simulation);
    check_blobs(simulation);
    for (int fault = 0; fault < FAULT_COUNT && !simulation->calm && !simulation->stop_at; fault++)
        if (simulation->fired[fault] < faults_wanted(simulation, (enum fault)fault))
            simulation_violate(simulation, "only %d times: %s", simulation->fired[fault],
                               fault_name((enum fault)fault));
}

char *simulation_leaderboard(const struct simulation *simulation)
{
    struct text text;
    text_init(&text);
    for (int64_t number = 1; number <= simulation->trials; number++) {
        const struct trial_record *trial = stored_trial(simulation, number);
        char objective[NUMBER_SIZE];
        if (!trial)
            continue;
        text_printf(&text, "%lld %s/%s %s at %lld ", (long long)number, trial_state_name(trial->state),
                    trial_reason_name(trial->reason),
                    trial->has_objective ? number_format(trial->objective, objective) : "-",
                    (long long)trial->resource);
        json_append(&text, trial->parameters);
        text_append(&text, "\n");
    }
    return text_steal(&text);
}
