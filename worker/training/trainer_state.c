/* What is kept of a trial: the best epoch, checkpoints, and what its record says. */
#include "worker/training/trainer_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t values_bytes(const struct trainer *trainer)
{
    return (size_t)trainer->plan.model.values * sizeof(real);
}

void trainer_store(struct trainer *trainer)
{
    const struct blocks *blocks = &trainer->memory.blocks;

    if (blocks->stored)
        trainer->device->operations->store(trainer->device, trainer->lanes, blocks->stored,
                                           blocks->parameters, trainer->plan.model.parameters);
}

void trainer_keep_best(struct trainer *trainer, double objective)
{
    if (!trainer->memory.best)
        return;
    trainer->device->operations->copy(trainer->device, trainer->lanes, trainer->memory.best,
                                      trainer->memory.blocks.parameters, values_bytes(trainer));
    trainer->progress.best_epoch = trainer->progress.epochs;
    trainer->progress.best_objective = objective;
}

bool trainer_best(const struct trainer *trainer, double *objective, int64_t *resource)
{
    *objective = trainer->progress.best_objective;
    if (resource)
        *resource = trainer->progress.best_epoch;
    return trainer->progress.best_epoch > 0;
}

void trainer_restore_best(struct trainer *trainer)
{
    if (trainer->progress.best_epoch == 0)
        return;
    trainer->device->operations->copy(trainer->device, trainer->lanes, trainer->memory.blocks.parameters,
                                      trainer->memory.best, values_bytes(trainer));
    trainer_store(trainer);
}

/* ---- checkpoints ---- */

struct checkpoint_subject trainer_subject(const struct trainer *trainer)
{
    return (struct checkpoint_subject){
        .settings = &trainer->settings,
        .derived = &trainer->plan.derived,
        .dataset = trainer->dataset,
        .model = &trainer->plan.model,
        .loss = trainer->plan.loss,
        .memory = &trainer->memory,
        .device = trainer->device,
        .precision = trainer->lanes.precision,
        .seed = trainer->seed,
    };
}

int trainer_save(struct trainer *trainer, const char *path, struct error *err)
{
    struct checkpoint_subject subject = trainer_subject(trainer);

    return checkpoint_write(path, &subject, &trainer->progress, err);
}

int trainer_load(struct trainer *trainer, const char *path, struct error *err)
{
    struct checkpoint_subject subject = trainer_subject(trainer);
    char *numerics;

    if (checkpoint_read(path, &subject, &trainer->progress, &numerics, err) != 0)
        return -1;
    free(trainer->loaded_from);
    trainer->loaded_from = numerics;
    free(trainer->remembered);
    trainer->remembered = NULL;
    trainer_store(trainer);
    return trainer->device->operations->synchronize(trainer->device, err);
}

/* ---- the record ---- */

static void note(json_t *notes, const char *text)
{
    json_array_append_new(notes, json_string(text));
}

static json_t *make_notes(const struct trainer *trainer)
{
    enum device_precision precision = trainer->lanes.precision;
    const struct training_settings *settings = &trainer->settings;
    json_t *notes = json_array();
    char text[300];

    if (!trainer->device->precisions[precision]) {
        snprintf(text, sizeof(text), "%s is emulated on %s: its results, not its speed",
                 precision_name(precision), trainer->device->name);
        note(notes, text);
    }
    if (settings->schedule == SCHEDULE_ONE_CYCLE && settings->warmup_epochs > 0)
        note(notes, "one_cycle rises by itself: lr_scaling.warmup_epochs is not used");
    if (trainer->loaded_from) {
        snprintf(text, sizeof(text), "went on from a checkpoint of %s: from there on equal up to rounding",
                 trainer->loaded_from);
        note(notes, text);
    }
    if (trainer->unrecorded[0]) {
        snprintf(text, sizeof(text), "steps are launched one by one, which takes longer: %s",
                 trainer->unrecorded);
        note(notes, text);
    }
    return notes;
}

json_t *trainer_details(const struct trainer *trainer)
{
    const struct lane_state *state = &trainer->progress.state;
    json_t *notes = make_notes(trainer);
    json_t *details =
        json_pack("{s:o, s:s, s:o}", "derived", derived_to_json(&trainer->plan.derived), "precision",
                  precision_name(trainer->lanes.precision), "memory", plan_to_json(&trainer->plan));

    if (details && state->scaled) {
        json_object_set_new(details, "loss_scale", json_number(state->loss_scale));
        json_object_set_new(details, "skipped_steps", json_integer(state->skipped));
    }
    if (details && json_array_size(notes) > 0)
        json_object_set(details, "notes", notes);
    json_decref(notes);
    return details;
}

json_t *trainer_plan(const struct training_settings *settings, const struct dataset *dataset,
                     size_t available, struct error *err)
{
    static const enum device_precision of[] = {
        [PRECISION_AUTO] = DEVICE_FP32, [PRECISION_FP32] = DEVICE_FP32, [PRECISION_TF32] = DEVICE_TF32,
        [PRECISION_BF16] = DEVICE_BF16, [PRECISION_FP16] = DEVICE_FP16,
    };
    struct plan plan;
    json_t *json = NULL;

    if (plan_init(&plan, settings, dataset, of[settings->precision], PLAN_EVALUATION_ROWS, err) == 0) {
        plan_fit(&plan, available);
        json = plan_to_json(&plan);
        if (!json)
            error_set(err, ERROR_MEMORY, "no memory for a plan");
    }
    plan_release(&plan);
    return json;
}
