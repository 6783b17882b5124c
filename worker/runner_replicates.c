/* The seeds of one trial, stepped together. */
#include "worker/runner_replicates.h"

#include "base/random.h"
#include "worker/runner_bundle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM 32 /* behind a path: ".replicate-100" */

struct replicates {
    int64_t count;
    struct trainer *trainers[];
};

static uint64_t replicate_seed(uint64_t seed, int64_t r)
{
    return r == 0 ? seed : trial_seed(seed ^ fnv1a64("replicate", strlen("replicate")), r);
}

struct replicates *replicates_create(const struct training_settings *settings, const struct dataset *dataset,
                                     struct device *device, uint64_t seed, struct error *err)
{
    size_t count = settings->replicates > 1 ? (size_t)settings->replicates : 1;
    struct replicates *replicates = calloc(1, sizeof *replicates + count * sizeof(struct trainer *));
    if (!replicates) {
        error_set(err, ERROR_MEMORY, "no memory for a trial");
        return NULL;
    }
    struct training_settings own = *settings;
    for (; replicates->count < (int64_t)count; replicates->count++) {
        int64_t r = replicates->count;
        own.replicates = (int64_t)count - r; /* what is free is divided among those to come */
        replicates->trainers[r] = trainer_create(&own, dataset, device, replicate_seed(seed, r), err);
        if (!replicates->trainers[r]) {
            replicates_destroy(replicates);
            return NULL;
        }
    }
    return replicates;
}

void replicates_destroy(struct replicates *replicates)
{
    for (int64_t r = 0; replicates && r < replicates->count; r++) {
        trainer_destroy(replicates->trainers[r]);
    }
    free(replicates);
}

const struct derived *replicates_derived(const struct replicates *replicates)
{
    return trainer_derived(replicates->trainers[0]);
}

/* The notes of another trainer's details that are not there yet. */
static void notes_join(json_t *details, const json_t *other)
{
    json_t *notes = json_object_get(details, "notes"), *note, *known;
    size_t i, j;
    if (!notes) {
        notes = json_array();
        json_object_set_new(details, "notes", notes);
    }
    json_array_foreach(json_object_get(other, "notes"), i, note)
    {
        bool is_new = true;
        json_array_foreach(notes, j, known)
        {
            is_new = is_new && !json_equal(note, known);
        }
        if (is_new) {
            json_array_append(notes, note);
        }
    }
}

json_t *replicates_details(const struct replicates *replicates)
{
    json_t *details = trainer_details(replicates->trainers[0]);
    for (int64_t r = 1; details && r < replicates->count; r++) {
        json_t *other = trainer_details(replicates->trainers[r]);
        if (json_object_get(other, "notes")) {
            notes_join(details, other);
        }
        json_decref(other);
    }
    if (details && replicates->count > 1) {
        json_object_set_new(details, "replicates", json_integer(replicates->count));
    }
    return details;
}

int64_t replicates_resource(const struct replicates *replicates)
{
    return trainer_resource(replicates->trainers[0]);
}

/* ---- an epoch ---- */

static double metric_of(const json_t *metrics, const char *name)
{
    double value;
    return json_number_get(json_object_get(metrics, name), &value) ? value : NAN;
}

/* Mean and standard deviation of each metric of the first, over all. */
static json_t *metrics_summary(const json_t *all)
{
    json_t *summary = json_object(), *value;
    const char *name;
    size_t r, count = json_array_size(all);
    json_object_foreach(json_array_get(all, 0), name, value)
    {
        char sd_name[100];
        double sum = 0, squares = 0;
        json_t *metrics;
        json_array_foreach(all, r, metrics)
        {
            sum += metric_of(metrics, name);
        }
        double mean = sum / (double)count;
        json_array_foreach(all, r, metrics)
        {
            double distance = metric_of(metrics, name) - mean;
            squares += distance * distance;
        }
        snprintf(sd_name, sizeof sd_name, "%.90s_sd", name);
        json_object_set_new(summary, name, json_number(mean));
        json_object_set_new(summary, sd_name, json_number(sqrt(squares / (double)(count - 1))));
    }
    return summary;
}

int replicates_epoch(struct replicates *replicates, json_t **metrics, bool *diverged, struct error *err)
{
    if (replicates->count == 1) {
        return trainer_epoch(replicates->trainers[0], metrics, diverged, err);
    }
    json_t *all = json_array();
    int result = 0;
    *diverged = false;
    *metrics = NULL;
    for (int64_t r = 0; r < replicates->count && result == 0; r++) {
        json_t *own = NULL;
        bool own_diverged = false;
        result = trainer_epoch(replicates->trainers[r], &own, &own_diverged, err);
        *diverged = *diverged || own_diverged;
        if (result == 0 && json_array_append_new(all, own) != 0) {
            result = error_set(err, ERROR_MEMORY, "no memory to report metrics");
        }
    }
    *metrics = result == 0 ? metrics_summary(all) : NULL;
    json_decref(all);
    return result;
}

void replicates_keep_best(struct replicates *replicates, double objective)
{
    for (int64_t r = 0; r < replicates->count; r++) {
        trainer_keep_best(replicates->trainers[r], objective);
    }
}

bool replicates_best(const struct replicates *replicates, double *objective)
{
    return trainer_best(replicates->trainers[0], objective, NULL);
}

/* ---- checkpoints ---- */

/* Where replicate r's own checkpoint stands while the bundle is made. */
static char *part_path(const char *path, int64_t r)
{
    size_t size = strlen(path) + PATH_ROOM;
    char *part = malloc(size);
    if (part) {
        snprintf(part, size, "%s.replicate-%lld", path, (long long)r);
    }
    return part;
}

struct parts {
    char **paths;
    int64_t count;
};

static int parts_init(struct parts *parts, const char *path, int64_t count, struct error *err)
{
    parts->count = count;
    parts->paths = calloc((size_t)count, sizeof(char *));
    for (int64_t r = 0; parts->paths && r < count; r++) {
        parts->paths[r] = part_path(path, r);
        if (!parts->paths[r]) {
            return error_set(err, ERROR_MEMORY, "no memory for a checkpoint");
        }
    }
    return parts->paths ? 0 : error_set(err, ERROR_MEMORY, "no memory for a checkpoint");
}

/* The files too. */
static void parts_release(struct parts *parts)
{
    for (int64_t r = 0; parts->paths && r < parts->count; r++) {
        if (parts->paths[r]) {
            unlink(parts->paths[r]);
        }
        free(parts->paths[r]);
    }
    free(parts->paths);
}

int replicates_save(struct replicates *replicates, const char *path, struct error *err)
{
    if (replicates->count == 1) {
        return trainer_save(replicates->trainers[0], path, err);
    }
    struct parts parts = {0};
    int result = parts_init(&parts, path, replicates->count, err);
    for (int64_t r = 0; r < replicates->count && result == 0; r++) {
        result = trainer_save(replicates->trainers[r], parts.paths[r], err);
    }
    if (result == 0) {
        result = bundle_write(path, (const char *const *)parts.paths, replicates->count, err);
    }
    parts_release(&parts);
    return result;
}

int replicates_load(struct replicates *replicates, const char *path, struct error *err)
{
    if (replicates->count == 1) {
        return trainer_load(replicates->trainers[0], path, err);
    }
    struct safetensors file, part;
    if (bundle_open(&file, path, replicates->count, err) != 0) {
        return -1;
    }
    int result = 0;
    for (int64_t r = 0; r < replicates->count && result == 0; r++) {
        result = bundle_part(&part, &file, r, err);
        if (result == 0) {
            result = trainer_take(replicates->trainers[r], &part, err);
            safetensors_close(&part);
        }
        if (result != 0) {
            error_prefix(err, "%s: replicate %lld", path, (long long)r);
        }
    }
    safetensors_close(&file);
    return result;
}
