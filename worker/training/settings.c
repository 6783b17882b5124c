/* Reading one trial's settings: the point over the sweep's train object over the table's defaults. */
#include "worker/training/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where values are looked up: the point first, then the sweep's train object, then the table's default. */
struct source {
    const json_t *train, *parameters;
};

/* Follows a dotted name through nested objects, accepting the dotted key itself at the top. Borrowed. */
static const json_t *find(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *dot = strchr(name, '.');
    if (value || !dot)
        return value;
    char group[64];
    snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
    return json_object_get(json_object_get(object, group), dot + 1);
}

static int refuse(const struct setting *setting, const json_t *found, struct error *err, const char *accepted)
{
    char *text = json_canonical(found);
    error_set(err, ERROR_USAGE, "%s: found %s, accepted %s", setting->name, text ? text : "?", accepted);
    free(text);
    return -1;
}

static int check_number(const struct setting *setting, const json_t *value, double *number, struct error *err)
{
    bool whole = setting->type != SETTING_NUMBER;
    if (json_is_number(value)) {
        double x = json_number_value(value);
        bool low = setting->minimum_open ? x > setting->minimum : x >= setting->minimum;
        bool high = setting->maximum_open ? x < setting->maximum : x <= setting->maximum;
        *number = x;
        if (low && high && (!whole || x == floor(x)))
            return 0;
    }
    char least[NUMBER_SIZE], most[NUMBER_SIZE], accepted[160];
    snprintf(accepted, sizeof accepted, "%s %s %s and %s %s", whole ? "an integer" : "a number",
             setting->minimum_open ? "above" : "of at least", number_format(setting->minimum, least),
             setting->maximum_open ? "below" : "at most", number_format(setting->maximum, most));
    return refuse(setting, value, err, accepted);
}

/* The value of one setting as the trial has it: a new reference, NULL when it is absent and has no default.
 */
static json_t *value_of(const struct source *source, const struct setting *setting)
{
    const json_t *value = find(source->parameters, setting->name);
    if (!value)
        value = find(source->train, setting->name);
    if (value && !json_is_null(value))
        return json_incref((json_t *)value);
    return setting->fallback ? json_parse(setting->fallback, strlen(setting->fallback), NULL) : NULL;
}

static int read_number(const struct source *source, const char *name, double absent, double *number,
                       struct error *err)
{
    const struct setting *setting = setting_find(train_settings, name);
    json_t *value = value_of(source, setting);
    *number = absent;
    int failed = value ? check_number(setting, value, number, err) : 0;
    json_decref(value);
    return failed;
}

static int read_integer(const struct source *source, const char *name, int64_t absent, int64_t *integer,
                        struct error *err)
{
    double number;
    if (read_number(source, name, (double)absent, &number, err) < 0)
        return -1;
    *integer = (int64_t)number;
    return 0;
}

static int read_boolean(const struct source *source, const char *name, bool *boolean, struct error *err)
{
    const struct setting *setting = setting_find(train_settings, name);
    json_t *value = value_of(source, setting);
    int failed = json_is_boolean(value) ? 0 : refuse(setting, value, err, "true or false");
    *boolean = json_is_true(value);
    json_decref(value);
    return failed;
}

/* The index of the choice made, in the order of the table's choices; without one and without a default
 * *choice stays. */
static int read_choice(const struct source *source, const char *name, int *choice, struct error *err)
{
    const struct setting *setting = setting_find(train_settings, name);
    json_t *value = value_of(source, setting);
    struct text accepted;
    if (!value)
        return 0;
    text_init(&accepted);
    int failed = -1;
    for (int i = 0; setting->choices[i] && failed; i++) {
        text_printf(&accepted, "%s%s", i ? " | " : "", setting->choices[i]);
        if (json_is_string(value) && !strcmp(json_string_value(value), setting->choices[i])) {
            *choice = i;
            failed = 0;
        }
    }
    if (failed)
        refuse(setting, value, err, accepted.data ? accepted.data : "another value");
    text_release(&accepted);
    json_decref(value);
    return failed;
}

static int read_hidden(const struct source *source, struct training_settings *settings, struct error *err)
{
    const struct setting *setting = setting_find(train_settings, "hidden");
    json_t *value = value_of(source, setting);
    if (json_is_number(value)) { /* one width is a list of one */
        json_t *list = json_array();
        json_array_append_new(list, value);
        value = list;
    }
    int failed = 0;
    if (!json_is_array(value) || json_array_size(value) > HIDDEN_LAYERS)
        failed = refuse(setting, value, err, "a list of at most 16 widths");
    settings->hidden_count = failed ? 0 : (int)json_array_size(value);
    for (int i = 0; i < settings->hidden_count && !failed; i++) {
        double width;
        failed = check_number(setting, json_array_get(value, (size_t)i), &width, err);
        settings->hidden[i] = failed ? 0 : (int64_t)width;
    }
    if (settings->model != MODEL_MLP)
        settings->hidden_count = 0;
    json_decref(value);
    return failed;
}

static int read_norm(const struct source *source, struct training_settings *settings, struct error *err)
{
    int norm = settings->model == MODEL_RESNET ? NORM_BATCH : NORM_NONE;
    if (read_choice(source, "norm", &norm, err) < 0 ||
        read_integer(source, "norm_batch", 0, &settings->norm_batch, err) < 0)
        return -1;
    settings->norm = settings->model == MODEL_LINEAR ? NORM_NONE : (enum norm_kind)norm;
    return 0;
}

static int read_model(const struct source *source, struct training_settings *settings, struct error *err)
{
    int model = 0, activation = 0, init = 0;
    if (read_choice(source, "model", &model, err) < 0 ||
        read_choice(source, "activation", &activation, err) < 0 ||
        read_choice(source, "init", &init, err) < 0 ||
        read_number(source, "dropout", 0, &settings->dropout, err) < 0 ||
        read_integer(source, "width", 0, &settings->width, err) < 0 ||
        read_integer(source, "blocks", 0, &settings->blocks, err) < 0 ||
        read_integer(source, "expansion", 0, &settings->expansion, err) < 0)
        return -1;
    settings->model = (enum model_kind)model;
    settings->activation = (enum activation)activation;
    settings->init = (enum init_kind)init;
    if (read_norm(source, settings, err) < 0)
        return -1;
    return read_hidden(source, settings, err);
}

static int read_loss(const struct source *source, struct training_settings *settings, struct error *err)
{
    int loss = 0, weight = 0, precision = 0;
    if (read_choice(source, "loss", &loss, err) < 0 ||
        read_choice(source, "class_weight", &weight, err) < 0 ||
        read_choice(source, "precision", &precision, err) < 0 ||
        read_number(source, "huber_delta", 0, &settings->huber_delta, err) < 0 ||
        read_number(source, "label_smoothing", 0, &settings->label_smoothing, err) < 0)
        return -1;
    settings->loss = (enum loss_kind)loss;
    settings->class_weight = (enum class_weight)weight;
    settings->precision = (enum precision)precision;
    return 0;
}

static int read_optimizer(const struct source *source, struct training_settings *settings, struct error *err)
{
    int optimizer = 0, schedule = 0;
    if (read_choice(source, "optimizer", &optimizer, err) < 0 ||
        read_choice(source, "schedule", &schedule, err) < 0)
        return -1;
    static const double decays[] = {
        [OPTIMIZER_ADAMW] = 0.01, [OPTIMIZER_LAMB] = 0.01, [OPTIMIZER_LARS] = 1e-4};
    settings->optimizer = (enum optimizer_kind)optimizer;
    settings->schedule = (enum schedule_kind)schedule;
    double decay = decays[settings->optimizer];
    double epsilon = settings->optimizer == OPTIMIZER_LAMB ? 1e-6 : 1e-8;
    if (read_number(source, "learning_rate", 0, &settings->learning_rate, err) < 0 ||
        read_number(source, "momentum", 0, &settings->momentum, err) < 0 ||
        read_boolean(source, "nesterov", &settings->nesterov, err) < 0 ||
        read_number(source, "weight_decay", decay, &settings->weight_decay, err) < 0 ||
        read_number(source, "beta1", 0, &settings->beta1, err) < 0 ||
        read_number(source, "beta2", 0, &settings->beta2, err) < 0 ||
        read_number(source, "epsilon", epsilon, &settings->epsilon, err) < 0 ||
        read_number(source, "clip_norm", 0, &settings->clip_norm, err) < 0)
        return -1;
    bool momentum = settings->optimizer == OPTIMIZER_SGD || settings->optimizer == OPTIMIZER_LARS;
    if (momentum && settings->nesterov && settings->momentum == 0)
        return error_set(err, ERROR_USAGE,
                         "nesterov: found true with momentum 0, accepted only with a momentum above 0");
    return 0;
}

static int read_scaling(const struct source *source, struct training_settings *settings, struct error *err)
{
    int rule = 0;
    if (read_choice(source, "lr_scaling.rule", &rule, err) < 0 ||
        read_number(source, "lr_scaling.base_batch_size", 0, &settings->base_batch_size, err) < 0 ||
        read_number(source, "lr_scaling.power", -1, &settings->power, err) < 0 ||
        read_boolean(source, "lr_scaling.scale_betas", &settings->scale_betas, err) < 0 ||
        read_boolean(source, "lr_scaling.scale_weight_decay", &settings->scale_weight_decay, err) < 0 ||
        read_number(source, "lr_scaling.warmup_epochs", 0, &settings->warmup_epochs, err) < 0)
        return -1;
    enum scaling_rule automatic = settings->optimizer == OPTIMIZER_SGD ? SCALING_LINEAR : SCALING_SQRT;
    const enum scaling_rule rules[] = {automatic, SCALING_NONE, SCALING_LINEAR, SCALING_SQRT, SCALING_POWER};
    settings->rule = settings->base_batch_size > 0 ? rules[rule] : SCALING_NONE;
    if (rules[rule] == SCALING_POWER && settings->power < 0)
        return error_set(err, ERROR_USAGE, "lr_scaling.power: missing, required by rule power");
    return 0;
}

#define SETTINGS_NAMED 200 /* more than there are */

/* Every name of the point must be a setting: a misspelt one would silently train the same thing again and
 * again. */
static int check_names(const json_t *parameters, struct error *err)
{
    const char *words[SETTINGS_NAMED];
    size_t count = 0;
    for (const struct setting *setting = train_settings; setting->name && count + 1 < SETTINGS_NAMED;
         setting++)
        words[count++] = setting->name;
    words[count] = NULL;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)parameters, name, value)
    {
        const struct setting *setting = setting_find(train_settings, name);
        const char *near = setting ? NULL : nearest_word(name, words);
        if (!setting)
            return error_set(err, ERROR_USAGE, "%s: no such train setting%s%s%s", name,
                             near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
        if (!setting->searchable)
            return error_set(err, ERROR_USAGE, "%s: is the same for every trial, so it cannot be a parameter",
                             name);
    }
    return 0;
}

int training_settings_read(struct training_settings *settings, const json_t *train, const json_t *parameters,
                           struct error *err)
{
    struct source source = {train, parameters};
    memset(settings, 0, sizeof *settings);
    if (check_names(parameters, err) < 0 || read_model(&source, settings, err) < 0 ||
        read_loss(&source, settings, err) < 0 || read_optimizer(&source, settings, err) < 0 ||
        read_scaling(&source, settings, err) < 0 ||
        read_integer(&source, "batch_size", 0, &settings->batch_size, err) < 0 ||
        read_integer(&source, "micro_batch", 0, &settings->micro_batch, err) < 0 ||
        read_integer(&source, "epochs", 0, &settings->epochs, err) < 0 ||
        read_number(&source, "step_epochs", ceil((double)settings->epochs / 3), &settings->step_epochs, err) <
            0 ||
        read_number(&source, "step_factor", 0, &settings->step_factor, err) < 0 ||
        read_integer(&source, "replicates", 1, &settings->replicates, err) < 0 ||
        read_integer(&source, "seed", -1, &settings->seed, err) < 0)
        return -1;
    return 0;
}
