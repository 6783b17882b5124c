/* One parameter: which distribution its keys mean, their values, and whether the setting takes what it can
 * draw. */
#include "coordinator/spec_draft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum shape { SHAPE_CONSTANT, SHAPE_CATEGORICAL, SHAPE_RANGE, SHAPE_LOG_RANGE, SHAPE_NORMAL, SHAPE_NONE };

static const struct {
    const char *name;
    enum shape shape;
} distributions[] = {
    {"constant", SHAPE_CONSTANT}, {"categorical", SHAPE_CATEGORICAL},      {"uniform", SHAPE_RANGE},
    {"int_uniform", SHAPE_RANGE}, {"log_uniform_values", SHAPE_LOG_RANGE}, {"normal", SHAPE_NORMAL},
};
static const char *const distribution_names[] = {
    "uniform", "int_uniform", "log_uniform_values", "categorical", "constant", "normal", NULL};
static const char *const later_distributions[] = {"categorical_w_probabilities",
                                                  "q_uniform",
                                                  "q_log_uniform",
                                                  "q_log_uniform_values",
                                                  "log_uniform",
                                                  "inv_log_uniform",
                                                  "inv_log_uniform_values",
                                                  "q_normal",
                                                  "log_normal",
                                                  "q_log_normal",
                                                  "beta",
                                                  "q_beta",
                                                  NULL};

/* ---- what the setting takes ---- */

/* A value as the point will have it: as written, but an integer where an integer is asked for. NULL:
 * reported. */
static json_t *read_value(struct draft *draft, const struct node *node, const char *key)
{
    json_t *checked = NULL;
    if (node->kind == NODE_NUMBER && !isfinite(node->number)) {
        problem_found(draft->reader, node, key, "a finite number");
        return NULL;
    }
    if (draft->setting) {
        checked = setting_read(draft->reader, draft->setting, node, key);
        if (!checked || draft->setting->type == SETTING_INTEGER || draft->setting->type == SETTING_PATH) {
            return checked;
        }
    }
    json_decref(checked);
    json_t *value = node_to_json(node);
    draft->reader->failed = draft->reader->failed || !value;
    return value;
}

/* ---- the shapes ---- */

static void fill_constant(struct draft *draft)
{
    const struct node *node = node_find(draft->map, "value");
    draft->parameter->distribution = DISTRIBUTION_CONSTANT;
    if (!node) {
        problem_at(draft->reader, draft->map, draft_key(draft, "value"), "found nothing, accepted one value");
        return;
    }
    draft->parameter->values = json_array();
    json_t *value = read_value(draft, node, draft_key(draft, "value"));
    if (value && json_array_append_new(draft->parameter->values, value) != 0) {
        draft->reader->failed = true;
    }
    draft->reader->failed = draft->reader->failed || !draft->parameter->values;
}

static bool is_repeated(const json_t *values, const json_t *value)
{
    size_t index;
    json_t *other;
    json_array_foreach(values, index, other)
    {
        bool numbers = json_is_number(other) && json_is_number(value);
        if (json_equal(other, value) || (numbers && json_number_value(other) == json_number_value(value))) {
            return true;
        }
    }
    return false;
}

#define REPEAT_LIMIT 1000 /* longer lists are not compared all with all */

static void fill_categorical(struct draft *draft)
{
    const struct node *node = node_find(draft->map, "values");
    draft->parameter->distribution = DISTRIBUTION_CATEGORICAL;
    if (!node) {
        problem_at(draft->reader, draft->map, draft_key(draft, "values"),
                   "found nothing, accepted a list of values");
        return;
    }
    if (node->kind != NODE_LIST || node->count == 0) {
        char found[FOUND_SIZE];
        problem_at(draft->reader, node, draft_key(draft, "values"),
                   "found %s, accepted a list of values, such as [1, 2]",
                   node->kind == NODE_LIST ? "an empty list" : node_found(node, found));
        return;
    }
    draft->parameter->values = json_array();
    draft->reader->failed = draft->reader->failed || !draft->parameter->values;
    for (size_t i = 0; i < node->count && draft->parameter->values; i++) {
        const struct node *item = node->items[i];
        json_t *value = read_value(draft, item, draft_key(draft, "values"));
        if (value && i < REPEAT_LIMIT && is_repeated(draft->parameter->values, value)) {
            char found[FOUND_SIZE];
            note_at(draft->reader, item, draft->inner, "%s is listed twice: a grid takes equal values once",
                    node_found(item, found));
        }
        if (value && json_array_append_new(draft->parameter->values, value) != 0) {
            draft->reader->failed = true;
        }
    }
}

static void fill_normal(struct draft *draft)
{
    const struct node *mu = node_find(draft->map, "mu"), *sigma = node_find(draft->map, "sigma");
    struct parameter *parameter = draft->parameter;
    parameter->distribution = DISTRIBUTION_NORMAL;
    parameter->mu = 0;
    parameter->sigma = 1;
    if (!draft_takes_range(draft, false)) {
        return;
    }
    if (mu) {
        read_number(draft->reader, mu, draft_key(draft, "mu"), "a number", &parameter->mu);
    }
    if (sigma &&
        read_number(draft->reader, sigma, draft_key(draft, "sigma"), "a number >= 0", &parameter->sigma) &&
        parameter->sigma < 0) {
        problem_found(draft->reader, sigma, draft->inner, "a number >= 0");
    }
    if (draft->setting && (draft->setting->minimum > -1e300 || draft->setting->maximum < 1e300)) {
        struct text text;
        text_init(&text);
        note_at(draft->reader, draft->map, draft->key,
                "normal has no bounds, and %s takes %s: a draw outside fails its trial as invalid",
                parameter->name, setting_accepted(draft->setting, &text));
        text_release(&text);
    }
}

/* ---- which shape ---- */

static bool has(const struct draft *draft, const char *key)
{
    return node_find(draft->map, key) != NULL;
}

static enum shape infer_shape(struct draft *draft)
{
    bool range = has(draft, "min") || has(draft, "max");
    int found = has(draft, "values") + has(draft, "value") + range;
    if (found == 1) {
        return range ? SHAPE_RANGE : has(draft, "values") ? SHAPE_CATEGORICAL : SHAPE_CONSTANT;
    }
    if (found == 0 && (has(draft, "mu") || has(draft, "sigma"))) {
        problem_at(draft->reader, draft->map, draft->key,
                   "found mu or sigma alone, accepted them with distribution: normal");
    } else {
        problem_at(draft->reader, draft->map, draft->key,
                   "found %s, accepted one of values, value, or min and max",
                   found == 0 ? "none" : "several");
    }
    return SHAPE_NONE;
}

static enum shape named_shape(struct draft *draft, const struct node *node)
{
    const char *name = node->text;
    for (size_t i = 0; node->kind == NODE_STRING && i < sizeof distributions / sizeof distributions[0]; i++) {
        if (strcmp(name, distributions[i].name) == 0) {
            draft->distribution = name;
            return distributions[i].shape;
        }
    }
    const char *key = draft_key(draft, "distribution");
    if (node->kind == NODE_STRING && has(draft, "values") && !has(draft, "probabilities")) {
        /* W&B only warns of it, and the values leave one meaning. */
        note_at(draft->reader, node, key, "\"%.40s\" is no distribution; the values are drawn as categorical",
                name);
        return SHAPE_CATEGORICAL;
    } else {
        read_choice(draft->reader, node, key, distribution_names);
    }
    return SHAPE_NONE;
}

/* Keys that the shape has no use for. */
static void check_shape_keys(struct draft *draft, enum shape shape)
{
    static const char *const used[][6] = {
        [SHAPE_CONSTANT] = {"distribution", "value", NULL},
        [SHAPE_CATEGORICAL] = {"distribution", "values", NULL},
        [SHAPE_RANGE] = {"distribution", "min", "max", "step", "log", NULL},
        [SHAPE_LOG_RANGE] = {"distribution", "min", "max", "step", "log", NULL},
        [SHAPE_NORMAL] = {"distribution", "mu", "sigma", NULL},
    };
    static const char *const known[] = {"distribution", "values", "value", "min",   "max",
                                        "step",         "log",    "mu",    "sigma", NULL};
    for (size_t i = 0; i < draft->map->count; i++) {
        const struct node *key = draft->map->entries[i].key;
        if (word_is_in(key->text, known) && !word_is_in(key->text, used[shape])) {
            note_at(draft->reader, key, draft_key(draft, key->text),
                    "has no meaning beside the rest and is ignored");
        }
    }
}

static bool check_map(struct draft *draft)
{
    static const char *const known[] = {"distribution", "values", "value", "min",   "max",
                                        "step",         "log",    "mu",    "sigma", NULL};
    static const char *const later[] = {"probabilities", "q", "a", "b", "when", "parameters", NULL};
    const struct node *map = draft->map;
    char found[FOUND_SIZE];
    if (map->kind != NODE_MAP) {
        const char *form = map->kind == NODE_LIST ? "{values: [...]}"
                                                  : "{value: 0.1}, {values: [1, 2]} or {min: 0.0, max: 0.5}";
        problem_at(draft->reader, map, draft->key, "found %s, accepted a map, such as %s",
                   node_found(map, found), form);
        return false;
    }
    if (has(draft, "parameters")) {
        problem_at(
            draft->reader, map, draft->key,
            "nested parameters are not available in this version, accepted dotted names, such as %s.NAME",
            draft->parameter->name);
        return false;
    }
    const struct node *distribution = node_find(map, "distribution");
    if (distribution && distribution->kind == NODE_STRING &&
        word_is_in(distribution->text, later_distributions)) {
        /* its own keys would only be noise */
        problem_later(draft->reader, distribution, draft_key(draft, "distribution"), distribution->text,
                      distribution_names);
        return false;
    }
    size_t before = draft->reader->problem_count;
    check_keys(draft->reader, map, draft->key, known, later, UNKNOWN_IGNORED);
    return draft->reader->problem_count == before;
}

void read_parameter(struct reader *reader, struct parameter *parameter, const struct node *map,
                    const struct setting *setting)
{
    struct draft draft = {.reader = reader, .parameter = parameter, .setting = setting, .map = map};
    snprintf(draft.key, sizeof draft.key, "parameters.%s", parameter->name);
    if (!check_map(&draft)) {
        return;
    }
    const struct node *distribution = node_find(map, "distribution");
    enum shape shape = distribution ? named_shape(&draft, distribution) : infer_shape(&draft);
    if (shape == SHAPE_NONE) {
        return;
    }
    check_shape_keys(&draft, shape);
    if (shape == SHAPE_CONSTANT) {
        fill_constant(&draft);
    } else if (shape == SHAPE_CATEGORICAL) {
        fill_categorical(&draft);
    } else if (shape == SHAPE_NORMAL) {
        fill_normal(&draft);
    } else {
        draft_range(&draft, shape == SHAPE_LOG_RANGE);
    }
}
