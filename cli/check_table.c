/* The report of `rung check` for people. */
#include "cli/check_report.h"

#include "base/text.h"
#include "cli/listing.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_WIDTH 60 /* of a list of choices; the rest is counted */

struct heading {
    const char *path, *text;
};

static int out_width(FILE *out)
{
    return terminal_width(fileno(out));
}

/* A paragraph that stands `indent` blanks in; takes the text. */
static void print_wrapped(struct text *paragraph, int indent, FILE *out)
{
    struct text text;
    text_init(&text);
    text_wrap(&text, paragraph->data ? paragraph->data : "", out_width(out), indent);
    fputs(text.data ? text.data : "", out);
    text_release(&text);
    text_release(paragraph);
}

/* Rows as aligned columns, two blanks in. */
static void print_listing(const struct listing *listing, const json_t *rows, FILE *out)
{
    struct text text;
    text_init(&text);
    int width = out_width(out);
    if (listing_text(listing, rows, width > 2 ? width - 2 : 0, &text, NULL, NULL) == 0 && text.data) {
        for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
            fprintf(out, "  %s\n", line);
        }
    }
    text_release(&text);
}

static void print_rows(const json_t *rows, const struct heading *headings, size_t count, FILE *out)
{
    struct listing listing;
    listing_init(&listing);
    for (size_t i = 0; i < count; i++) {
        listing_add(&listing, headings[i].path, headings[i].text, LISTING_VALUE);
    }
    print_listing(&listing, rows, out);
    listing_release(&listing);
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
    text_init(&text);
    if (json_object_get(parameter, "values")) {
        return values_text(json_object_get(parameter, "values"));
    }
    bool normal = json_object_get(parameter, "mu") != NULL;
    text_append(&text, normal ? "mu " : "");
    json_append(&text, json_object_get(parameter, normal ? "mu" : "min"));
    text_append(&text, normal ? ", sigma " : " .. ");
    json_append(&text, json_object_get(parameter, normal ? "sigma" : "max"));
    if (json_object_get(parameter, "step")) {
        text_append(&text, ", step ");
        json_append(&text, json_object_get(parameter, "step"));
    }
    return text_steal(&text);
}

static void print_space(const json_t *report, FILE *out)
{
    static const struct heading headings[] = {{"name", "parameter"},
                                              {"distribution", "distribution"},
                                              {"range", "range or choices"},
                                              {"choices", "points"}};
    json_t *rows = json_array();
    size_t index;
    json_t *parameter;
    json_array_foreach(json_object_get(report, "parameters"), index, parameter)
    {
        json_t *row = json_copy(parameter);
        char *range = range_text(parameter);
        json_object_set_new(row, "range", json_string(range ? range : ""));
        free(range);
        json_array_append_new(rows, row);
    }
    fputc('\n', out);
    print_rows(rows, headings, sizeof headings / sizeof headings[0], out);
    json_decref(rows);
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
    struct text line;
    text_init(&line);
    long long features = (long long)json_get_integer(data, "features", 0);
    long long embedded = (long long)json_get_integer(data, "embedded", 0);
    text_printf(&line, "  data    %lld rows to train, %lld to validate, %lld to test; %lld feature%s",
                (long long)json_get_integer(data, "train", 0),
                (long long)json_get_integer(data, "validation", 0),
                (long long)json_get_integer(data, "test", 0), features, features == 1 ? "" : "s");
    if (embedded) {
        text_printf(&line, ", %lld embedded column%s", embedded, embedded == 1 ? "" : "s");
    }
    if (strcmp(json_get_string(data, "task", ""), "classification") == 0) {
        text_printf(&line, ", %lld classes", (long long)json_get_integer(data, "classes", 0));
    } else {
        text_append(&line, ", regression");
    }
    fputc('\n', out);
    print_wrapped(&line, 10, out);
}

static void print_rungs(const json_t *report, FILE *out)
{
    const json_t *rungs = json_object_get(report, "rungs"), *epochs = json_object_get(report, "epochs");
    const char *rule = json_get_string(report, "rule", "none");
    double planned = json_get_number(epochs, "planned", 0), without = json_get_number(epochs, "without", 0);
    long long replicates = (long long)json_get_integer(report, "replicates", 1);
    long long last =
        (long long)json_get_integer(json_array_get(rungs, json_array_size(rungs) - 1), "resource", 0);
    if (strcmp(rule, "none") == 0) {
        fprintf(out, "\n  no early stopping: every trial trains %lld epoch%s", last, last == 1 ? "" : "s");
        replicates > 1 ? fprintf(out, " for each of %lld replicates", replicates) : 0;
        fprintf(out, planned > 0 ? ", %.0f in all\n" : "\n", planned);
        return;
    }
    fprintf(out, "\n  %s\n", rule);
    static const struct heading headings[] = {
        {"rung", "rung"}, {"resource", "at epoch"}, {"trials", "trials"}, {"epochs", "epochs"}};
    print_rows(rungs, headings, planned > 0 ? 4 : 2, out);
    if (planned > 0) {
        /* ASHA promotes as results come in, so its counts are what they tend to. */
        bool exact = strcmp(rule, "successive_halving") == 0;
        fprintf(out, "  %s%.0f epochs", exact ? "" : "about ", planned);
        replicates > 1 ? fprintf(out, " of %lld replicates", replicates) : 0;
        fprintf(out, ", against %.0f without early stopping (%.1f times fewer)\n", without,
                without / planned);
    }
}

/* "0.001 .. 0.1", or one number where the rate is not searched. */
static json_t *rate_text(const json_t *range)
{
    double low = json_number_value(json_array_get(range, 0)),
           high = json_number_value(json_array_get(range, 1));
    char text[80];
    snprintf(text, sizeof text, low == high ? "%.4g" : "%.4g .. %.4g", low, high);
    return json_string(text);
}

static void print_derived(const json_t *report, FILE *out)
{
    static const struct heading headings[] = {
        {"batch_size", "batch_size"},   {"optimizer", "optimizer"},         {"scale", "scale"},
        {"peak", "peak learning rate"}, {"steps_per_epoch", "steps/epoch"}, {"warmup_steps", "warm-up"},
        {"micro_batch", "micro batch"}, {"accumulation", "accumulated"}};
    size_t count = sizeof headings / sizeof headings[0] - 2;
    json_t *rows = json_array();
    size_t index;
    json_t *derived;
    json_array_foreach(json_object_get(json_object_get(report, "derived"), "batch_sizes"), index, derived)
    {
        json_t *row = json_copy(derived);
        json_object_set_new(row, "peak", rate_text(json_object_get(derived, "peak_learning_rate")));
        json_array_append_new(rows, row);
        if (json_get_integer(row, "accumulation", 1) > 1) {
            count = sizeof headings / sizeof headings[0]; /* else a micro batch is the batch */
        }
    }
    if (json_array_size(rows) > 0) {
        fputc('\n', out);
        print_rows(rows, headings, count, out);
    }
    json_decref(rows);
}

/* "1.2 MiB". */
static json_t *bytes_text(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    size_t unit = 0;
    char text[40];
    for (; amount >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) {
        amount /= 1024;
    }
    snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.3g %s", amount, units[unit]);
    return json_string(text);
}

static void add_plan(json_t *rows, const json_t *plan, const char *which)
{
    if (!json_is_object(plan)) {
        return;
    }
    json_t *row = json_copy((json_t *)plan);
    int64_t replicates = json_get_integer(plan, "replicates", 1),
            data = json_get_integer(plan, "data_bytes", 0);
    json_object_set_new(row, "which", json_string(which));
    json_object_set_new(row, "memory",
                        bytes_text(data + (json_get_integer(plan, "bytes", 0) - data) * replicates));
    json_object_set_new(row, "verdict", json_string(json_get_boolean(plan, "fits", true) ? "yes" : "no"));
    json_array_append_new(rows, row);
}

/* Do two points' rows read alike? */
static bool is_same_plan(const json_t *a, const json_t *b, const struct heading *headings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(headings[i].path, "which") != 0 &&
            !json_equal(json_object_get(a, headings[i].path), json_object_get(b, headings[i].path))) {
            return false;
        }
    }
    return true;
}

/* Of the smallest and the largest point; one row where they take the same. */
static void print_plan(const json_t *report, FILE *out)
{
    static const struct heading headings[] = {{"which", "point"},
                                              {"parameters", "weights"},
                                              {"precision", "precision"},
                                              {"micro_batch", "micro batch"},
                                              {"accumulation", "accumulated"},
                                              {"memory", "memory"},
                                              {"verdict", "fits"}};
    const json_t *plan = json_object_get(report, "plan"), *device = json_object_get(plan, "device");
    const json_t *smallest = json_object_get(plan, "smallest"), *largest = json_object_get(plan, "largest");
    if (!json_is_object(largest)) {
        return;
    }
    json_t *rows = json_array(), *memory = bytes_text(json_get_integer(device, "memory_bytes", 0));
    add_plan(rows, smallest, "smallest");
    add_plan(rows, largest, "largest");
    if (is_same_plan(json_array_get(rows, 0), json_array_get(rows, 1), headings,
                     sizeof headings / sizeof headings[0])) {
        json_array_remove(rows, 1);
        json_object_set_new(json_array_get(rows, 0), "which", json_string("all"));
    }
    bool gpu = strcmp(json_get_string(device, "kind", "cpu"), "cpu") != 0;
    fprintf(out, "\n  on %s%s%s%s%s%s\n", json_get_string(device, "id", ""), gpu ? " (" : "",
            gpu ? json_get_string(device, "name", "") : "", gpu ? ", " : "",
            gpu ? json_string_value(memory) : "", gpu ? ")" : "");
    print_rows(rows, headings, sizeof headings / sizeof headings[0], out);
    if (!json_get_boolean(plan, "fits", true)) {
        fputs("  some points do not fit: their trials would end as out_of_memory\n", out);
    }
    json_decref(memory);
    json_decref(rows);
}

static void print_sample(const json_t *report, FILE *out)
{
    const json_t *sample = json_object_get(report, "sample");
    struct listing listing;
    if (json_array_size(sample) == 0) {
        return;
    }
    listing_init(&listing);
    listing_add(&listing, "trial", NULL, LISTING_VALUE);
    listing_add_keys(&listing, sample, "parameters", false);
    fputc('\n', out);
    print_listing(&listing, sample, out);
    listing_release(&listing);
}

/* Is a score minimized because nobody said otherwise? That note comes before all else. */
static bool is_of_goal(const json_t *report, const json_t *note)
{
    return strcmp(json_get_string(note, "key", ""), "metric.goal") == 0 &&
           note == json_array_get(json_object_get(report, "notes"), 0);
}

static void print_notes(const json_t *report, bool of_goal, FILE *out)
{
    size_t index, printed = 0;
    json_t *note;
    json_array_foreach(json_object_get(report, "notes"), index, note)
    {
        const char *key = json_get_string(note, "key", "");
        if (is_of_goal(report, note) != of_goal) {
            continue;
        }
        long long line = (long long)json_get_integer(note, "line", 0);
        struct text text;
        text_init(&text);
        text_printf(&text, "  %s", json_get_string(note, "level", "note"));
        if (line > 0) {
            text_printf(&text, " (line %lld)", line);
        }
        text_printf(&text, ": %s%s%s", key, *key ? ": " : "", json_get_string(note, "message", ""));
        fputs(printed++ == 0 && !of_goal ? "\n" : "", out);
        print_wrapped(&text, 4, out);
    }
    fputs(of_goal && printed > 0 ? "\n" : "", out);
}

void check_print(const json_t *report, FILE *out)
{
    const json_t *metric = json_object_get(report, "metric");
    char *seed = json_canonical(json_object_get(report, "seed"));
    struct text title;
    text_init(&title);
    text_printf(&title, "%s: %s search", json_get_string(report, "name", ""),
                json_get_string(report, "method", ""));
    if (json_is_object(metric)) {
        bool highest = strcmp(json_get_string(metric, "goal", ""), "maximize") == 0;
        bool best = strcmp(json_get_string(metric, "objective", "last"), "best") == 0;
        text_printf(&title, " for the %s %s (%s epoch)", highest ? "highest" : "lowest",
                    json_get_string(metric, "name", ""), best ? "best" : "last");
    }
    text_printf(&title, ", seed %s", seed ? seed : "");
    if (!json_is_true(json_object_get(report, "seed_given"))) {
        text_printf(&title, " (drawn; rung run draws another one, unless --set seed=%s)", seed ? seed : "");
    }
    free(seed);
    print_notes(report, true, out);
    print_wrapped(&title, 2, out);
    print_space(report, out);
    print_size(report, out);
    print_rungs(report, out);
    print_derived(report, out);
    print_plan(report, out);
    print_sample(report, out);
    print_notes(report, false, out);
}
