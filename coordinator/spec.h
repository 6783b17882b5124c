/* The spec: one YAML file, checked, as one struct. spec.c reads YAML (the only includer of yaml.h is yaml.c)
 * and lists ALL errors of a file at once, each as "file:line:column: key: found ..., accepted ... (did you
 * mean ...?)".
 *
 * The table of train settings comes from the caller (cli passes worker/training's), so the coordinator knows
 * no training. Ownership: spec_release frees all. */
#ifndef RUNG_COORDINATOR_SPEC_H
#define RUNG_COORDINATOR_SPEC_H

#include "base/error.h"
#include "base/json.h"
#include "base/setting.h"
#include "search/sampler.h"
#include "search/space.h"
#include "search/stopping.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum objective { OBJECTIVE_LAST, OBJECTIVE_BEST };

struct spec {
    char *name, *description;
    char *file;   /* path as given, "-" for standard input */
    char *folder; /* relative paths in the spec start here */
    char *text;   /* the file's bytes */
    const struct sampler_methods *sampler;
    char *metric;     /* NULL: no metric (unranked) */
    char *tie_metric; /* validation_loss where the metric is an accuracy; NULL: none */
    bool maximize;
    enum objective objective;
    int64_t run_cap; /* -1: none */
    uint64_t seed;
    bool seed_given;
    struct space space;
    struct stopping_settings stopping; /* kind NONE: min_iter = max_iter = epochs; trials filled in */
    json_t
        *train; /* object: every train setting given or defaulted, nested by name; data.path made absolute */
    json_t *train_given;       /* object: as written */
    int64_t devices_per_trial; /* 1 */
    int64_t max_retries;       /* of crashed attempts; 1 */
    json_t *normalised; /* canonical object of everything above: what --resume compares and the store keeps */
    /* Array of {"level": "warning" | "note", "line", "column", "key", "message"}, for check and the log. A
     * note explains how a scalar was read (key is ""); a warning says that something may not be what was
     * meant. Line 0: --set. */
    json_t *notes;
};

struct spec_options {
    const struct setting *train_settings; /* table, ends with name NULL; may be NULL (no train: allowed) */
    /* Names the program reports, NULL-terminated: another metric.name is an error. NULL: any name is taken.
     */
    const char *const *metric_names;
    const char *const
        *overrides;   /* "key=value", NULL-terminated, or NULL: --set, over the spec, dotted keys */
    const char *name; /* --name, or NULL */
};

/* 0, or -1 with err (ERROR_USAGE; the message holds at most its size, `*problems` all lines; free() it).
 * `problems` may be NULL. A seed left out is drawn from the system; seed_given is false then. */
int spec_load(struct spec *spec, const char *path, const struct spec_options *options, char **problems,
              struct error *err);
/* The same from memory; `file` is the name for messages. */
int spec_parse(struct spec *spec, const char *text, size_t size, const char *file,
               const struct spec_options *options, char **problems, struct error *err);
/* From a normalised object (the store's), for --resume. */
int spec_restore(struct spec *spec, const json_t *normalised, const struct spec_options *options,
                 struct error *err);
void spec_release(struct spec *spec);

/* --resume: 0 if `next` may continue `stored` (only run_cap, resources, description, max_retries differ, seed
 * unless given); else -1 with a diff of the offending keys. */
int spec_compare(const json_t *stored, const json_t *next, bool seed_given, struct error *err);

#endif
