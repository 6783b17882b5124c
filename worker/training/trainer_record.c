/* What a trial's record says besides its metrics, and what `rung check` says of it beforehand. */
#include "worker/training/trainer_private.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static void note(json_t *notes, const char *format, ...)
{
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    json_array_append_new(notes, json_string(text));
}

/* Settings that have other effects than they seem to. */
static void note_settings(json_t *notes, const struct trainer *trainer)
{
    const struct training_settings *settings = &trainer->settings;
    const struct derived *derived = &trainer->plan.derived;

    if (settings->schedule == SCHEDULE_ONE_CYCLE && settings->warmup_epochs > 0)
        note(notes, "one_cycle rises by itself: lr_scaling.warmup_epochs is not used");
    else if (settings->warmup_epochs > (double)settings->epochs)
        note(notes, "lr_scaling.warmup_epochs is more than the %lld epochs: the rate rises to the last step",
             (long long)settings->epochs);
    if (derived->norm_batch == 1)
        note(notes, "norm batch of a single row leaves nothing of the row: take a batch_size of 2 or more");
}

/* What this device cannot do as the settings say. */
static void note_device(json_t *notes, const struct trainer *trainer)
{
    enum device_precision precision = trainer->lanes.precision;
    const struct derived *derived = &trainer->plan.derived;
    struct derived asked;

    training_derive(&trainer->settings, trainer->dataset->rows[SPLIT_TRAIN], &asked);
    if (!trainer->device->precisions[precision])
        note(notes, "%s is emulated on %s: its results, not its speed", precision_name(precision),
             trainer->device->name);
    if (derived->micro_batch < asked.micro_batch)
        note(notes,
             "%lld rows at once do not fit the device's memory: %lld at a time, to the same batch of %lld",
             (long long)asked.micro_batch, (long long)derived->micro_batch, (long long)derived->batch_size);
    if (trainer->unrecorded[0])
        note(notes, "steps are launched one by one, which takes longer: %s", trainer->unrecorded);
}

static json_t *make_notes(const struct trainer *trainer)
{
    json_t *notes = json_array();

    if (trainer->divergence)
        note(notes, "diverged in epoch %lld: %s", (long long)trainer->progress.epochs, trainer->divergence);
    note_settings(notes, trainer);
    note_device(notes, trainer);
    if (trainer->loaded_from)
        note(notes, "went on from a checkpoint of %s: from there on equal up to rounding",
             trainer->loaded_from);
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
                     int64_t evaluation_rows, size_t available, struct error *err)
{
    static const enum device_precision of[] = {
        [PRECISION_AUTO] = DEVICE_FP32, [PRECISION_FP32] = DEVICE_FP32, [PRECISION_TF32] = DEVICE_TF32,
        [PRECISION_BF16] = DEVICE_BF16, [PRECISION_FP16] = DEVICE_FP16,
    };
    struct plan plan;
    json_t *json = NULL;

    if (plan_init(&plan, settings, dataset, of[settings->precision], evaluation_rows, err) == 0) {
        plan_fit(&plan, available);
        json = plan_to_json(&plan);
        if (!json)
            error_set(err, ERROR_MEMORY, "no memory for a plan");
    }
    plan_release(&plan);
    return json;
}
