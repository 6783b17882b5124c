/* Which sweep is served: a new one, or one that the store holds. The only place where a spec becomes what the
 * engine needs. */
#include "coordinator/server_state.h"

#include "base/files.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_NS (30 * NS_PER_SECOND)
#define HEARTBEAT_NS (2 * NS_PER_SECOND)
#define LOSSES_RETRIED 3

static void sweep_id_draw(char id[SWEEP_ID_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (size_t i = 0; i < SWEEP_ID_SIZE - 1; i++) {
        id[i] = letters[randombytes_uniform(sizeof letters - 1)];
    }
    id[SWEEP_ID_SIZE - 1] = '\0';
}

/* ---- settings ---- */

/* `final` as the engine takes it: what asks for no refit is none. */
static const json_t *final_of(const json_t *train)
{
    const json_t *final = json_object_get(train, "final");
    return strcmp(json_get_string(final, "refit", ""), "none") == 0 ? NULL : final;
}

static void engine_settings_build(struct server *server, const char *sweep_id, uint64_t seed)
{
    const struct spec *spec = server->settings.spec;
    server->engine_settings = (struct engine_settings){
        .sweep_name = spec->name,
        .sampler = spec->sampler,
        .space = &spec->space,
        .stopping = spec->stopping,
        .seed = seed,
        .run_cap = spec->run_cap,
        .metric = spec->metric,
        .tie_metric = spec->tie_metric,
        .maximize = spec->maximize,
        .objective_best = spec->objective == OBJECTIVE_BEST,
        .train = server->train,
        .final = final_of(server->train),
        .baseline = server->settings.baseline && spec->metric,
        .devices_per_trial = spec->devices_per_trial,
        .trials_per_device = 1,
        .max_retries = spec->max_retries,
        .max_losses = LOSSES_RETRIED,
        .lease_ns = LEASE_NS,
        .heartbeat_ns = HEARTBEAT_NS,
        .linger = server->settings.linger,
    };
    memcpy(server->engine_settings.sweep_id, sweep_id, SWEEP_ID_SIZE);
    memcpy(server->sweep_id, sweep_id, SWEEP_ID_SIZE);
    size_t used = strlen(server->own_log.context);
    snprintf(server->own_log.context + used, sizeof server->own_log.context - used, "%ssweep=%s",
             used ? " " : "", sweep_id);
}

/* ---- a new sweep ---- */

/* Borrows from the spec: the engine and the store copy. */
static struct sweep_record sweep_record_build(const struct spec *spec, int64_t now_ms)
{
    struct sweep_record sweep = {
        .name = spec->name,
        .state = SWEEP_RUNNING,
        .spec_text = spec->text ? spec->text : "",
        .normalised = spec->normalised,
        .seed = spec->seed,
        .version = RUNG_VERSION,
        .created_ms = now_ms,
    };
    sweep_id_draw(sweep.id);
    sha256_bytes(sweep.spec_text, strlen(sweep.spec_text), sweep.spec_sha256);
    return sweep;
}

static int sweep_begin(struct server *server, struct error *err)
{
    struct now now = clock_now();
    struct sweep_record sweep = sweep_record_build(server->settings.spec, now.utc_ms);
    engine_settings_build(server, sweep.id, sweep.seed);
    server->engine = engine_create(&server->engine_settings, &sweep, now, &server->effects, err);
    return server->engine ? 0 : -1;
}

/* ---- a stored sweep ---- */

/* What may change between runs has changed now; the seed is what it was. */
static int sweep_update(struct sweep_record *sweep, const struct spec *spec, struct error *err)
{
    json_t *normalised = json_copy(spec->normalised);
    char *text = strdup(spec->text ? spec->text : sweep->spec_text ? sweep->spec_text : "");
    json_t *seed = json_object_get(sweep->normalised, "seed");
    if (!normalised || !text || (seed && json_object_set(normalised, "seed", seed))) {
        json_decref(normalised);
        free(text);
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    json_decref(sweep->normalised);
    sweep->normalised = normalised;
    free(sweep->spec_text);
    sweep->spec_text = text;
    sha256_bytes(text, strlen(text), sweep->spec_sha256);
    return 0;
}

static int snapshot_resume(struct server *server, struct snapshot *snapshot, struct error *err)
{
    const struct spec *spec = server->settings.spec;
    struct sweep_record *sweep = &snapshot->sweep;
    if (sweep_update(sweep, spec, err)) {
        return -1;
    }
    struct record record = {.type = RECORD_SWEEP, .sweep = *sweep};
    if (store_commit(server->store, sweep->id, &record, 1, err)) {
        return -1;
    }
    engine_settings_build(server, sweep->id, sweep->seed);
    server->engine = engine_restore(&server->engine_settings, snapshot, clock_now(), &server->effects, err);
    return server->engine ? 0 : -1;
}

static int sweep_resume(struct server *server, const struct sweep_record *stored, struct error *err)
{
    struct snapshot snapshot = {0};
    if (store_load(server->store, stored->id, &snapshot, err)) {
        return error_prefix(err, "resume sweep %s", stored->name);
    }
    int result = server_extension_check(server, &snapshot, err);
    if (result == 0) {
        result = snapshot_resume(server, &snapshot, err);
    }
    snapshot_release(&snapshot);
    return result;
}

/* ---- which of them ---- */

static int sweep_check(const struct server *server, int found, const struct sweep_record *stored,
                       struct error *err)
{
    const struct spec *spec = server->settings.spec;
    const char *name = spec->name, *db = server->settings.db;
    if (found == 0 && server->settings.resume) {
        return error_set(err, ERROR_USAGE, "there is no sweep %s in %s to resume", name, db);
    }
    if (found == 1 && stored->state == SWEEP_STOPPED) {
        return error_set(err, ERROR_USAGE,
                         "sweep %s in %s was stopped by an operator, and stays so; choose another --name",
                         name, db);
    }
    if (found == 1 && stored->state == SWEEP_FINISHED && !server->settings.resume) {
        return error_set(err, ERROR_USAGE,
                         "sweep %s in %s has finished; choose another --name, or raise run_cap with --resume",
                         name, db);
    }
    if (found == 1 && !server->settings.resume) {
        return error_set(
            err, ERROR_USAGE,
            "sweep %s in %s has begun but not finished; go on with --resume, or choose another --name", name,
            db);
    }
    if (found == 1 && !json_is_object(stored->normalised)) {
        return error_set(
            err, ERROR_RESOURCE,
            "database %s is damaged: the spec of sweep %s is missing; use a copy, or choose another "
            "--name",
            db, name);
    }
    if (found == 1 && spec_compare(stored->normalised, spec->normalised, spec->seed_given, err)) {
        return error_prefix(err, "resume sweep %s", name);
    }
    return 0;
}

int server_sweep_open(struct server *server, struct error *err)
{
    struct record stored = {.type = RECORD_SWEEP};
    int found = store_find_sweep(server->store, server->settings.spec->name, &stored.sweep, err);
    if (found < 0) {
        return -1;
    }
    int result = sweep_check(server, found, &stored.sweep, err);
    if (result == 0) {
        result = server_train_build(server, err);
    }
    if (result == 0 && found == 1) {
        result = server_data_check(server, stored.sweep.id, err);
    }
    if (result == 0) {
        result = found == 1 ? sweep_resume(server, &stored.sweep, err) : sweep_begin(server, err);
    }
    if (found == 1) {
        record_release(&stored);
    }
    if (result == 0 && server->effects.record_count > 0) {
        result = store_commit(server->store, server->sweep_id, server->effects.records,
                              server->effects.record_count, err);
        effects_clear(&server->effects);
    }
    if (result || server_data_remember(server, err)) {
        return -1;
    }
    return server_leftovers_find(server, err);
}
