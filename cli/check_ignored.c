/* Settings that were given and change nothing: those of another model, optimizer or schedule than any point
 * has. */
#include "cli/check_report.h"

#include "worker/training/settings.h"

#include <stdio.h>
#include <string.h>

#define POINTS 32 /* of the space; a setting is said to be ignored if all of these ignore it */

/* A setting is of use where another one has one of these values. */
struct use {
    const char *setting, *other;
    const char *const *values; /* NULL-terminated; NULL: any value will do */
};

#define VALUES(...)                                                                                          \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

static const struct use uses[] = {
    {"hidden", "model", VALUES("mlp")},
    {"width", "model", VALUES("resnet")},
    {"blocks", "model", VALUES("resnet")},
    {"expansion", "model", VALUES("resnet")},
    {"norm", "model", VALUES("mlp", "resnet")},
    {"activation", "model", VALUES("mlp", "resnet")},
    {"dropout", "model", VALUES("mlp", "resnet")},
    {"momentum", "optimizer", VALUES("sgd", "lars")},
    {"nesterov", "optimizer", VALUES("sgd", "lars")},
    {"beta1", "optimizer", VALUES("adam", "adamw", "lamb")},
    {"beta2", "optimizer", VALUES("adam", "adamw", "lamb")},
    {"epsilon", "optimizer", VALUES("adam", "adamw", "lamb")},
    {"step_epochs", "schedule", VALUES("step")},
    {"step_factor", "schedule", VALUES("step")},
    {"huber_delta", "loss", VALUES("huber")},
    {"lr_scaling.power", "lr_scaling.rule", VALUES("power")},
    {"lr_scaling.rule", "lr_scaling.base_batch_size", NULL},
    {"lr_scaling.scale_betas", "lr_scaling.base_batch_size", NULL},
    {"lr_scaling.scale_weight_decay", "lr_scaling.base_batch_size", NULL},
    {"lr_scaling.warmup_epochs", "schedule", VALUES("constant", "step", "cosine", "linear", "wsd")},
};

/* Nested or dotted. Borrowed. */
static const json_t *find(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *dot = strchr(name, '.');
    if (value || !dot) {
        return value;
    }
    char group[64];
    snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
    return json_object_get(json_object_get(object, group), dot + 1);
}

static bool is_given(const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->space.count; i++) {
        if (strcmp(spec->space.parameters[i].name, name) == 0) {
            return true;
        }
    }
    return find(spec->train_given, name) != NULL;
}

static bool is_used_by(const struct use *use, const struct spec *spec, const json_t *point)
{
    const json_t *value = find(point, use->other);
    value = value ? value : find(spec->train, use->other);
    if (!use->values) {
        return value && !json_is_null(value);
    }
    for (size_t i = 0; use->values[i]; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), use->values[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_used(const struct use *use, const struct spec *spec)
{
    for (int64_t number = 1; number <= POINTS; number++) {
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, number);
        bool used = point && is_used_by(use, spec, point);
        json_decref(point);
        if (used || !point) {
            return used;
        }
    }
    return false;
}

static int add_note(json_t *notes, const char *key, const char *message)
{
    return json_array_append_new(notes, json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", "note", "line", 0,
                                                  "column", 0, "key", key, "message", message));
}

static int note_use(json_t *notes, const struct use *use)
{
    char message[300];
    size_t used = (size_t)snprintf(message, sizeof message, "changes nothing here: it is of %s", use->other);
    for (size_t i = 0; use->values && use->values[i]; i++) {
        const char *joint = i == 0 ? "" : use->values[i + 1] ? "," : " or";
        used += (size_t)snprintf(message + used, sizeof message - used, "%s %s", joint, use->values[i]);
    }
    if (!use->values) {
        snprintf(message + used, sizeof message - used, ", which is not given");
    }
    return add_note(notes, use->setting, message);
}

/* norm batch is resnet's default, so that what was given does not tell. */
static bool has_batch_norm(const struct spec *spec)
{
    for (int64_t number = 1; number <= POINTS; number++) {
        struct training_settings settings;
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, number);
        bool read = point && training_settings_read(&settings, spec->train, point, NULL) == 0;
        bool none = !point;
        json_decref(point);
        if ((read && settings.norm == NORM_BATCH) || none) {
            return !none;
        }
    }
    return false;
}

int check_ignored(json_t *notes, const struct spec *spec, const struct dataset *dataset)
{
    static const char *const of_classes[] = {"label_smoothing", "class_weight"};
    int status = 0;
    for (size_t i = 0; i < sizeof uses / sizeof *uses && status == 0; i++) {
        if (is_given(spec, uses[i].setting) && !is_used(&uses[i], spec)) {
            status = note_use(notes, &uses[i]);
        }
    }
    if (status == 0 && is_given(spec, "norm_batch") && !has_batch_norm(spec)) {
        status = add_note(notes, "norm_batch", "changes nothing here: it is of norm batch");
    }
    for (size_t i = 0; i < 2 && status == 0; i++) {
        if (is_given(spec, of_classes[i]) && dataset->task == TASK_REGRESSION) {
            status = add_note(notes, of_classes[i], "changes nothing here: it is of classes");
        }
    }
    return status;
}
