/* The report of `rung check` for people. */
#include "cli/check_report.h"

#include "base/text.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_WIDTH 60 /* of a list of choices; the rest is counted */

static const char *number_text(double value, char buffer[NUMBER_SIZE])
{
    return number_format(value, buffer);
}

/* Choices as they are written, separated by commas, cut at VALUES_WIDTH. free() it. */
static char *values_text(const json_t *values)
{
    struct text text;
    size_t index;
    json_t *value;
    text_init(&text);
    json_array_foreach(values, index, value)
    {
        char *own = json_canonical(value);
        if (index > 0 && own && text.size + strlen(own) + 2 > VALUES_WIDTH) {
            text_printf(&text, ", ... (%zu)", json_array_size(values));
            free(own);
            break;
        }
        text_printf(&text, "%s%s", index > 0 ? ", " : "", own ? own : "");
        free(own);
    }
    return text_steal(&text);
}

static char *range_text(const json_t *parameter)
{
    struct text text;
    char *values;
    text_init(&text);
    if (json_object_get(parameter, "values")) {
        return values_text(json_object_get(parameter, "values"));
    }
    if (json_object_get(parameter, "mu")) {
        char mu[NUMBER_SIZE], sigma[NUMBER_SIZE];
        text_printf(&text, "mu %s, sigma %s", number_text(json_get_number(parameter, "mu", 0), mu),
                    number_text(json_get_number(parameter, "sigma", 0), sigma));
        return text_steal(&text);
    }
    json_append(&text, json_object_get(parameter, "min"));
    text_append(&text, " .. ");
    json_append(&text, json_object_get(parameter, "max"));
    if (json_object_get(parameter, "step")) {
        text_append(&text, ", step ");
        json_append(&text, json_object_get(parameter, "step"));
    }
    values = text_steal(&text);
    return values;
}

static void print_space(const json_t *report, FILE *out)
{
    struct table table;
    size_t index;
    json_t *parameter;
    table_init(&table, 4, 2);
    table.right = 1 << 3;
    table_cell(&table, "parameter");
    table_cell(&table, "distribution");
    table_cell(&table, "range or choices");
    table_cell(&table, "points");
    json_array_foreach(json_object_get(report, "parameters"), index, parameter)
    {
        const json_t *choices = json_object_get(parameter, "choices");
        char *range = range_text(parameter);
        table_cell(&table, "%s", json_get_string(parameter, "name", ""));
        table_cell(&table, "%s", json_get_string(parameter, "distribution", ""));
        table_cell(&table, "%s", range ? range : "");
        if (json_is_integer(choices)) {
            table_cell(&table, "%lld", (long long)json_integer_value(choices));
        } else {
            table_cell(&table, "any");
        }
        free(range);
    }
    fputc('\n', out);
    table_print(&table, out);
    table_release(&table);
}

static void print_size(const json_t *report, FILE *out)
{
    const json_t *points = json_object_get(report, "points"), *trials = json_object_get(report, "trials");
    const json_t *data = json_object_get(report, "data");
    bool grid = strcmp(json_get_string(report, "method", ""), "grid") == 0;
    fputs("\n  points  ", out);
    json_is_integer(points) ? fprintf(out, "%lld", (long long)json_integer_value(points))
                            : fputs("infinite", out);
    fputs("\n  trials  ", out);
    if (json_is_integer(trials)) {
        bool capped = json_is_integer(json_object_get(report, "run_cap")) &&
                      json_equal(json_object_get(report, "run_cap"), (json_t *)trials);
        fprintf(out, "%lld (%s)", (long long)json_integer_value(trials),
                capped ? "run_cap"
                : grid ? "every point once"
                       : "all");
    } else {
        fputs("until stopped (no run_cap)", out);
    }
    fprintf(out, "\n  data    %lld rows to train, %lld to validate, %lld to test; %lld features",
            (long long)json_get_integer(data, "train", 0), (long long)json_get_integer(data, "validation", 0),
            (long long)json_get_integer(data, "test", 0), (long long)json_get_integer(data, "features", 0));
    if (strcmp(json_get_string(data, "task", ""), "classification") == 0) {
        fprintf(out, ", %lld classes\n", (long long)json_get_integer(data, "classes", 0));
    } else {
        fputs(", regression\n", out);
    }
}

static void print_rung_rows(const json_t *rungs, FILE *out)
{
    struct table table;
    size_t index;
    json_t *rung;
    bool finite = json_is_integer(json_object_get(json_array_get(rungs, 0), "trials"));
    table_init(&table, finite ? 4 : 2, 2);
    table.right = 0xf;
    table_cell(&table, "rung");
    table_cell(&table, "at epoch");
    if (finite) {
        table_cell(&table, "trials");
        table_cell(&table, "epochs");
    }
    json_array_foreach(rungs, index, rung)
    {
        table_cell(&table, "%zu", index);
        table_cell(&table, "%lld", (long long)json_get_integer(rung, "resource", 0));
        if (finite) {
            table_cell(&table, "%lld", (long long)json_get_integer(rung, "trials", 0));
            table_cell(&table, "%lld", (long long)json_get_integer(rung, "epochs", 0));
        }
    }
    table_print(&table, out);
    table_release(&table);
}

static void print_rungs(const json_t *report, FILE *out)
{
    const json_t *rungs = json_object_get(report, "rungs"), *epochs = json_object_get(report, "epochs");
    const char *rule = json_get_string(report, "rule", "none");
    double planned = json_get_number(epochs, "planned", 0), without = json_get_number(epochs, "without", 0);
    long long last =
        (long long)json_get_integer(json_array_get(rungs, json_array_size(rungs) - 1), "resource", 0);
    if (strcmp(rule, "none") == 0) {
        fprintf(out, "\n  no early stopping: every trial trains %lld epochs", last);
        fprintf(out, planned > 0 ? ", %.0f in all\n" : "\n", planned);
        return;
    }
    fprintf(out, "\n  %s\n", rule);
    print_rung_rows(rungs, out);
    if (planned > 0) {
        /* ASHA promotes as results come in, so its counts are what they tend to. */
        bool exact = strcmp(rule, "successive_halving") == 0;
        fprintf(out, "  %s%.0f epochs, against %.0f without early stopping (%.1f times fewer)\n",
                exact ? "" : "about ", planned, without, without / planned);
    }
}

static void print_rate_range(struct table *table, const json_t *range)
{
    char low[NUMBER_SIZE], high[NUMBER_SIZE];
    double from = json_number_value(json_array_get(range, 0)),
           to = json_number_value(json_array_get(range, 1));
    if (from == to) {
        table_cell(table, "%.4g", from);
    } else {
        snprintf(low, sizeof low, "%.4g", from);
        snprintf(high, sizeof high, "%.4g", to);
        table_cell(table, "%s .. %s", low, high);
    }
}

static void print_derived(const json_t *report, FILE *out)
{
    const json_t *rows = json_object_get(json_object_get(report, "derived"), "batch_sizes");
    struct table table;
    size_t index;
    json_t *row;
    static const char *const titles[] = {"batch_size",         "optimizer",   "rate times",
                                         "peak learning rate", "micro batch", "steps an epoch",
                                         "warm-up steps"};
    if (json_array_size(rows) == 0) {
        return;
    }
    table_init(&table, 7, 2);
    table.right = 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6;
    for (size_t i = 0; i < 7; i++) {
        table_cell(&table, "%s", titles[i]);
    }
    json_array_foreach(rows, index, row)
    {
        table_cell(&table, "%lld", (long long)json_get_integer(row, "batch_size", 0));
        table_cell(&table, "%s", json_get_string(row, "optimizer", ""));
        table_cell(&table, "%.4g", json_get_number(row, "scale", 1));
        print_rate_range(&table, json_object_get(row, "peak_learning_rate"));
        table_cell(&table, "%lld x %lld", (long long)json_get_integer(row, "micro_batch", 0),
                   (long long)json_get_integer(row, "accumulation", 0));
        table_cell(&table, "%lld", (long long)json_get_integer(row, "steps_per_epoch", 0));
        table_cell(&table, "%lld", (long long)json_get_integer(row, "warmup_steps", 0));
    }
    fputc('\n', out);
    table_print(&table, out);
    table_release(&table);
}

static void print_sample(const json_t *report, FILE *out)
{
    const json_t *sample = json_object_get(report, "sample"),
                 *parameters = json_object_get(report, "parameters");
    struct table table;
    size_t row, column;
    json_t *trial, *parameter;
    if (json_array_size(sample) == 0) {
        return;
    }
    table_init(&table, (int)json_array_size(parameters) + 1, 2);
    table.right = 1;
    table_cell(&table, "trial");
    json_array_foreach(parameters, column, parameter)
    {
        table_cell(&table, "%s", json_get_string(parameter, "name", ""));
    }
    json_array_foreach(sample, row, trial)
    {
        table_cell(&table, "%lld", (long long)json_get_integer(trial, "trial", 0));
        json_array_foreach(parameters, column, parameter)
        {
            char *text = json_canonical(json_object_get(json_object_get(trial, "parameters"),
                                                        json_get_string(parameter, "name", "")));
            table_cell(&table, "%s", text ? text : "");
            free(text);
        }
    }
    fputc('\n', out);
    table_print(&table, out);
    table_release(&table);
}

static void print_notes(const json_t *report, FILE *out)
{
    size_t index;
    json_t *note;
    json_array_foreach(json_object_get(report, "notes"), index, note)
    {
        const char *key = json_get_string(note, "key", "");
        long long line = (long long)json_get_integer(note, "line", 0);
        fprintf(out, index == 0 ? "\n  %s" : "  %s", json_get_string(note, "level", "note"));
        if (line > 0) {
            fprintf(out, " (line %lld)", line);
        }
        fprintf(out, ": %s%s%s\n", key, *key ? ": " : "", json_get_string(note, "message", ""));
    }
}

void check_print(const json_t *report, FILE *out)
{
    const json_t *metric = json_object_get(report, "metric");
    char *seed = json_canonical(json_object_get(report, "seed"));
    fprintf(out, "%s: %s search", json_get_string(report, "name", ""), json_get_string(report, "method", ""));
    if (json_is_object(metric)) {
        bool highest = strcmp(json_get_string(metric, "goal", ""), "maximize") == 0;
        bool best = strcmp(json_get_string(metric, "objective", "last"), "best") == 0;
        fprintf(out, " for the %s %s (%s epoch)", highest ? "highest" : "lowest",
                json_get_string(metric, "name", ""), best ? "best" : "last");
    }
    fprintf(out, ", seed %s\n", seed ? seed : "");
    free(seed);
    print_space(report, out);
    print_size(report, out);
    print_rungs(report, out);
    print_derived(report, out);
    print_sample(report, out);
    print_notes(report, out);
}
