/* `early_terminate`: the stopping rule, its rungs against the epochs, and what it asks of the rest of the
 * spec. */
#include "coordinator/spec_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "{type: successive_halving, min_iter: 1, eta: 3}"

static const char *const types[] = {"successive_halving", "asha", NULL};
static const char *const later_types[] = {"hyperband",          "median",     "patience", "threshold",
                                          "hyperband_brackets", "percentile", "envelope", NULL};

/* A parameter that cannot be one is reported as such, and nothing more is said about it. */
static bool can_be_searched(const struct reader *reader, const char *name)
{
    const struct setting *setting = reader->settings ? setting_find(reader->settings, name) : NULL;
    return !reader->settings || (setting && setting->searchable);
}

/* Resources a trial has: train.epochs, or the most a searched `epochs` gives; 0: not known. */
static int64_t resource_limit(const struct reader *reader)
{
    const struct space *space = &reader->spec->space;
    for (size_t i = 0; i < space->count; i++) {
        const struct parameter *parameter = &space->parameters[i];
        if (strcmp(parameter->name, "epochs") != 0 || !can_be_searched(reader, "epochs")) {
            continue;
        }
        double most = parameter->values ? 0 : parameter->maximum;
        size_t index;
        json_t *value;
        json_array_foreach(parameter->values, index, value)
        {
            most = fmax(most, json_number_value(value));
        }
        return most >= 1 && most < 9e15 ? (int64_t)most : 0;
    }
    int64_t epochs = json_get_integer(reader->spec->train, "epochs", 0);
    return epochs > 0 ? epochs : 0;
}

static enum stopping_kind read_kind(struct reader *reader, const struct node *map, bool halving_method)
{
    const struct node *type = node_find(map, "type"), *mode = node_find(map, "mode");
    static const char *const modes[] = {"promotion", "stopping", NULL};
    int index = 0;
    if (!type && !halving_method) {
        problem_at(reader, map, "early_terminate.type", "found nothing, accepted successive_halving or asha");
        return STOPPING_NONE;
    }
    if (type && type->kind == NODE_STRING && word_is_in(type->text, later_types)) {
        problem_later(reader, type, "early_terminate.type", type->text, types);
        return STOPPING_NONE;
    }
    if (type) {
        index = read_choice(reader, type, "early_terminate.type", types);
    }
    if (index == 1 && halving_method) {
        problem_found(
            reader, type, "early_terminate.type",
            "successive_halving, as method: successive_halving says (for asha write method: random)");
    }
    if (index == 0 && mode) {
        problem_at(reader, mode, "early_terminate.mode",
                   "belongs to type: asha; successive_halving has no modes");
    }
    if (index != 1) {
        return index == 0 ? STOPPING_SUCCESSIVE_HALVING : STOPPING_NONE;
    }
    return mode && read_choice(reader, mode, "early_terminate.mode", modes) == 1 ? STOPPING_ASHA_STOPPING
                                                                                 : STOPPING_ASHA_PROMOTION;
}

static void read_rungs(struct reader *reader, const struct node *map, int64_t limit)
{
    struct stopping_settings *stopping = &reader->spec->stopping;
    const struct node *min = node_find(map, "min_iter"), *max = node_find(map, "max_iter");
    const struct node *eta = node_find(map, "eta");
    const char *max_key = "early_terminate.max_iter";
    stopping->min_iter = 1;
    stopping->max_iter = limit > 0 ? limit : 1;
    stopping->eta = 3;
    bool good = !max || read_integer(reader, max, max_key, 1, INFINITY, &stopping->max_iter);
    if (!max && limit == 0 && !json_object_get(reader->spec->train, "epochs")) {
        problem_at(reader, map, max_key, "found nothing, accepted an integer >= 1");
    } else if (good && max && limit > 0 && stopping->max_iter > limit) {
        problem_found(reader, max, max_key, "at most train.epochs, which is %lld", (long long)limit);
    } else if (good && max && limit > stopping->max_iter) {
        note_at(reader, max, max_key,
                "trials end at %lld of train.epochs: %lld, before the end of the learning rate's schedule",
                (long long)stopping->max_iter, (long long)limit);
    }
    if (min && read_integer(reader, min, "early_terminate.min_iter", 1, INFINITY, &stopping->min_iter) &&
        good && stopping->min_iter > stopping->max_iter) {
        problem_found(reader, min, "early_terminate.min_iter", "at most max_iter, which is %lld",
                      (long long)stopping->max_iter);
    }
    if (eta && read_number(reader, eta, "early_terminate.eta", "a number > 1", &stopping->eta) &&
        !(stopping->eta > 1)) {
        problem_found(reader, eta, "early_terminate.eta", "a number > 1");
    }
}

static void read_bracket(struct reader *reader, const struct node *map)
{
    struct stopping_settings *stopping = &reader->spec->stopping;
    const struct node *node = node_find(map, "bracket_size");
    if (!node) {
        return;
    }
    if (stopping->kind != STOPPING_SUCCESSIVE_HALVING) {
        problem_at(reader, node, "early_terminate.bracket_size", "belongs to type: successive_halving");
    } else {
        read_integer(reader, node, "early_terminate.bracket_size", 0, 1e9, &stopping->bracket_size);
    }
}

/* What rungs ask of the rest: a metric, a number of trials, the same resource for all. */
static void check_companions(struct reader *reader, const struct node *root, const struct node *where)
{
    const struct spec *spec = reader->spec;
    const struct node *parameters = node_find(root, "parameters");
    if (!node_find(root, "metric")) {
        problem_at(
            reader, where, "early_terminate",
            "needs a metric to compare trials by, such as metric: {name: validation_loss, goal: minimize}");
    }
    if (spec->stopping.kind == STOPPING_SUCCESSIVE_HALVING && spec->stopping.trials < 0 &&
        !node_find(root, "run_cap")) {
        problem_at(
            reader, where, "early_terminate",
            "successive_halving needs the number of trials: run_cap, or method: grid with finite parameters");
    }
    for (size_t i = 0; parameters && parameters->kind == NODE_MAP && i < parameters->count; i++) {
        const struct node *key = parameters->entries[i].key;
        bool is_length = strcmp(key->text, "epochs") == 0 || strncmp(key->text, "data.", 5) == 0;
        if (is_length && can_be_searched(reader, key->text)) {
            problem_at(reader, key, "parameters",
                       "%s cannot be searched beside early_terminate: rungs compare trials of the same "
                       "length on the "
                       "same data",
                       key->text);
        }
    }
}

static void check_levels(struct reader *reader, const struct node *where, size_t problems_before)
{
    const struct stopping_settings *stopping = &reader->spec->stopping;
    int64_t levels[STOPPING_LEVELS];
    struct error err = {0};
    if (reader->problem_count > problems_before) {
        return;
    }
    int count = stopping_levels(stopping, levels, &err);
    if (count < 0) {
        problem_at(reader, where, "early_terminate", "%s", err.message);
    } else if (count == 1) {
        note_at(reader, where, "early_terminate",
                "min_iter is max_iter: there is one rung, so nothing is stopped early");
    } else if (stopping->min_iter < 3 && reader->spec->metric && strstr(reader->spec->metric, "loss")) {
        note_at(reader, where, "early_terminate",
                "the first rung compares trials by %s after %lld epoch%s; an accuracy, or min_iter: 3 or "
                "more, tells "
                "more about the end",
                reader->spec->metric, (long long)stopping->min_iter, stopping->min_iter == 1 ? "" : "s");
    }
}

void read_stopping(struct reader *reader, const struct node *root, bool halving_method)
{
    static const char *const known[] = {"type", "mode", "min_iter", "max_iter", "eta", "bracket_size", NULL};
    static const char *const known_to_others[] = {"type",         "mode", "min_iter", "max_iter", "eta",
                                                  "bracket_size", "s",    "strict",   NULL};
    struct stopping_settings *stopping = &reader->spec->stopping;
    const struct node *map = node_find(root, "early_terminate");
    struct node empty = {.kind = NODE_MAP};
    int64_t limit = resource_limit(reader);
    size_t problems_before = reader->problem_count;
    if (map && map->kind == NODE_NULL) {
        map = NULL;
    }
    if (!map && !halving_method) {
        stopping->kind = STOPPING_NONE;
        stopping->min_iter = stopping->max_iter = limit > 0 ? limit : 1;
        stopping->eta = 3;
        return;
    }
    if (map && !read_map(reader, map, "early_terminate", EXAMPLE)) {
        return;
    }
    if (!map) {
        const struct node *method = node_find(root, "method");
        empty.origin = method->origin;
        empty.line = method->line;
        empty.column = method->column;
        map = &empty;
    }
    stopping->kind = read_kind(reader, map, halving_method);
    bool other = stopping->kind == STOPPING_NONE;
    check_keys(reader, map, "early_terminate", other ? known_to_others : known, NULL, UNKNOWN_IGNORED);
    if (other) {
        return; /* reported; the values of another rule would only be noise */
    }
    read_rungs(reader, map, limit);
    read_bracket(reader, map);
    check_companions(reader, root, map);
    check_levels(reader, map, problems_before);
}
