/* A parameter with min and max: uniform, on a logarithmic scale, or in steps; whole or real. */
#include "coordinator/spec_draft.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INTEGER_LIMIT 9007199254740992.0 /* 2^53: bounds are held as doubles */

const char *draft_key(struct draft *draft, const char *name)
{
    snprintf(draft->inner, sizeof draft->inner, "%s.%s", draft->key, name);
    return draft->inner;
}

static bool is_numeric(const struct setting *setting)
{
    return setting->type == SETTING_INTEGER || setting->type == SETTING_NUMBER ||
           setting->type == SETTING_INTEGER_LIST;
}

static void check_bound(struct draft *draft, const struct node *node, const char *name, double bound)
{
    if (draft->setting && is_numeric(draft->setting) && !setting_takes(draft->setting, bound)) {
        struct text text;
        text_init(&text);
        problem_found(draft->reader, node, draft_key(draft, name), "%s",
                      setting_accepted(draft->setting, &text));
        text_release(&text);
    }
}

bool draft_takes_range(struct draft *draft, bool integer)
{
    const struct setting *setting = draft->setting;
    struct text text;
    if (!setting || setting->type == SETTING_NUMBER || (is_numeric(setting) && integer)) {
        return true;
    }
    if (is_numeric(setting)) {
        problem_at(
            draft->reader, draft->map, draft->key,
            "found real numbers, accepted integers: whole min and max, without distribution (log: true for a "
            "logarithmic scale)");
        return false;
    }
    text_init(&text);
    problem_at(draft->reader, draft->map, draft->key, "found a range, accepted values: %s",
               setting_accepted(setting, &text));
    text_release(&text);
    return false;
}

/* One bound; *whole: written as an integer. */
static bool read_bound(struct draft *draft, const char *name, double *bound, bool *whole)
{
    const struct node *node = node_find(draft->map, name);
    if (!node) {
        problem_at(draft->reader, draft->map, draft_key(draft, name),
                   "found nothing, accepted a number beside %s", strcmp(name, "min") == 0 ? "max" : "min");
        return false;
    }
    *whole = node->kind == NODE_INTEGER;
    bool explicit_integer = draft->distribution && strcmp(draft->distribution, "int_uniform") == 0;
    if (!explicit_integer) {
        return read_number(draft->reader, node, draft_key(draft, name), "a number", bound);
    }
    int64_t integer;
    *whole = true;
    if (!read_integer(draft->reader, node, draft_key(draft, name), -INFINITY, INFINITY, &integer)) {
        return false;
    }
    *bound = (double)integer;
    return true;
}

static bool read_bounds(struct draft *draft, bool *integer)
{
    struct parameter *parameter = draft->parameter;
    bool low_whole = false, high_whole = false;
    bool low = read_bound(draft, "min", &parameter->minimum, &low_whole);
    bool high = read_bound(draft, "max", &parameter->maximum, &high_whole);
    if (!low || !high) {
        return false;
    }
    const struct node *max = node_find(draft->map, "max");
    if (parameter->minimum >= parameter->maximum) {
        char found[FOUND_SIZE];
        problem_found(draft->reader, max, draft_key(draft, "max"), "a number above min, which is %s",
                      node_found(node_find(draft->map, "min"), found));
        return false;
    }
    *integer = low_whole && high_whole;
    bool wide =
        *integer && (fabs(parameter->minimum) > INTEGER_LIMIT || fabs(parameter->maximum) > INTEGER_LIMIT);
    if (wide || !isfinite(parameter->maximum - parameter->minimum)) {
        problem_found(draft->reader, max, draft_key(draft, "max"), "a narrower range (integers up to 2^53)");
        return false;
    }
    return true;
}

/* min, max and step: low + k*step inside the bounds. */
static void fill_lattice(struct draft *draft, const struct node *step, bool integer)
{
    struct parameter *parameter = draft->parameter;
    const char *key = draft_key(draft, "step");
    if (!read_number(draft->reader, step, key, "a number > 0", &parameter->step)) {
        return;
    }
    double range = parameter->maximum - parameter->minimum;
    char text[NUMBER_SIZE];
    if (parameter->step <= 0 || parameter->step > range) {
        problem_found(draft->reader, step, key, "a number > 0 and <= max - min, which is %s",
                      number_format(range, text));
        return;
    }
    if (range / parameter->step > INTEGER_LIMIT) {
        problem_found(draft->reader, step, key, "a larger step: fewer than 2^53 of them between min and max");
        return;
    }
    bool whole = step->kind == NODE_INTEGER;
    if (draft->distribution && strcmp(draft->distribution, "int_uniform") == 0 && !whole) {
        problem_found(draft->reader, step, key, "an integer");
        return;
    }
    parameter->distribution = DISTRIBUTION_LATTICE;
    parameter->integer = integer && whole;
    if (draft_takes_range(draft, parameter->integer)) {
        check_bound(draft, node_find(draft->map, "min"), "min", parameter->minimum);
        check_bound(draft, node_find(draft->map, "max"), "max",
                    parameter->minimum + floor(range / parameter->step * (1 + 1e-12)) * parameter->step);
    }
}

static void fill_log(struct draft *draft, bool integer)
{
    struct parameter *parameter = draft->parameter;
    const struct node *min = node_find(draft->map, "min");
    parameter->distribution = integer ? DISTRIBUTION_INT_LOG_UNIFORM : DISTRIBUTION_LOG_UNIFORM_VALUES;
    parameter->integer = integer;
    if (parameter->minimum <= 0) {
        problem_found(draft->reader, min, draft_key(draft, "min"),
                      "a number > 0, as it is drawn on a logarithmic scale");
        return;
    }
    if (draft_takes_range(draft, integer)) {
        check_bound(draft, min, "min", parameter->minimum);
        check_bound(draft, node_find(draft->map, "max"), "max", parameter->maximum);
    }
}

static void fill_uniform(struct draft *draft, bool integer)
{
    struct parameter *parameter = draft->parameter;
    parameter->distribution = integer ? DISTRIBUTION_INT_UNIFORM : DISTRIBUTION_UNIFORM;
    parameter->integer = integer;
    if (!draft_takes_range(draft, integer)) {
        return;
    }
    check_bound(draft, node_find(draft->map, "min"), "min", parameter->minimum);
    check_bound(draft, node_find(draft->map, "max"), "max", parameter->maximum);
    if (integer && !draft->distribution && draft->setting && draft->setting->type == SETTING_NUMBER) {
        note_at(
            draft->reader, draft->map, draft->key,
            "min and max are integers, so only whole numbers are drawn; write %.0f.0 for any number between",
            parameter->maximum);
    }
}

void draft_range(struct draft *draft, bool log_scale)
{
    const struct node *step = node_find(draft->map, "step"), *log = node_find(draft->map, "log");
    bool integer = false;
    bool asked = log_scale;
    if (log && !read_boolean(draft->reader, log, draft_key(draft, "log"), &asked)) {
        return;
    }
    if (!read_bounds(draft, &integer)) {
        return;
    }
    /* A distribution that is named says whole or real, whatever the bounds look like. */
    const char *named = draft->distribution;
    if (named) {
        integer = strcmp(named, "int_uniform") == 0 || (step && strcmp(named, "uniform") != 0 && integer);
    }
    if (step && (asked || log_scale)) {
        problem_at(draft->reader, step, draft_key(draft, "step"),
                   "found step beside a logarithmic scale, accepted one "
                   "of them");
    } else if (step) {
        fill_lattice(draft, step, integer);
    } else if (asked || log_scale) {
        fill_log(draft, integer);
    } else {
        fill_uniform(draft, integer);
    }
}
