/* rung show SWEEP TRIAL: one trial in full. */
#include "cli/command.h"
#include "cli/final_table.h"
#include "cli/options.h"
#include "cli/query.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer curve is thinned in its middle to about this many lines. */
#define CURVE_LINES 24
#define CURVE_ENDS 6 /* kept whole at either end */
/* Lines of an attempt's error that are shown: the end says what happened. */
#define ERROR_LINES 15

static const char usage[] =
    "usage: rung show [SWEEP] TRIAL [OPTION]...\n"
    "One trial: parameters, derived values, curve, attempts, errors with the end of\n"
    "stderr. SWEEP is a name or id; with TRIAL alone it is the newest. Trial 0 is the\n"
    "refit of the winner.\n"
    "\n"
    "  --all             every point of a long curve (csv is the whole curve)\n" QUERY_OPTIONS_HELP;

enum { OPTION_ALL = QUERY_OWN };

static const struct option options_table[] = {
    QUERY_LONG_OPTIONS, {"all", no_argument, NULL, OPTION_ALL}, {NULL, 0, NULL, 0}};

struct show {
    struct query_options query;
    const char *sweep;
    int64_t trial;
    bool all;
    json_t *row; /* of the sweep, as `rung list` has it */
};

static int append_title(struct text *text, const struct show *show, const json_t *trial, struct error *err)
{
    const char *reason = json_get_string(trial, "reason", "");
    bool said = *reason == '\0' || strcmp(reason, "finished") == 0;
    int64_t number = json_get_integer(trial, "trial", 0);
    text_printf(text, "sweep %s, trial %lld: %s%s%s", json_get_string(show->row, "name", ""),
                (long long)number, json_get_string(trial, "state", ""), said ? "" : ", ", said ? "" : reason);
    if (number == 0) {
        text_append(text, "\n");
        return final_append(text, show->row, err);
    }
    text_printf(text, ", resource %lld, %s ", (long long)json_get_integer(trial, "resource", 0),
                json_get_string(show->row, "metric", "objective"));
    listing_append(text, json_object_get(trial, "objective"), LISTING_VALUE);
    text_append(text, "\n");
    return 0;
}

/* "name  value" lines under a title. */
static void append_values(struct text *text, const char *title, const json_t *values)
{
    const char *name;
    json_t *value;
    int width = 0;
    if (json_object_size(values) == 0) {
        return;
    }
    text_printf(text, "\n%s\n", title);
    json_object_foreach((json_t *)values, name, value)
    {
        int own = text_width(name, strlen(name));
        width = own > width ? own : width;
    }
    json_object_foreach((json_t *)values, name, value)
    {
        text_printf(text, "  %s%*s", name, width - text_width(name, strlen(name)) + 2, "");
        listing_append(text, value, LISTING_VALUE);
        text_append(text, "\n");
    }
}

/* Is point i of n shown? The ends are whole; between them every k-th. */
static bool is_shown(size_t i, size_t n)
{
    if (n <= CURVE_LINES || i < CURVE_ENDS || i + CURVE_ENDS >= n) {
        return true;
    }
    size_t step = (n - 2 * CURVE_ENDS) / (CURVE_LINES - 2 * CURVE_ENDS) + 1;
    return (i - CURVE_ENDS) % step == step - 1;
}

/* The sweep's own metric first: a narrow terminal leaves out columns from the right. The title says that they
 * are of the validation data. */
static void add_metrics(struct listing *listing, const json_t *points, const char *own)
{
    struct listing all;
    struct text path;
    text_init(&path);
    listing_init(&all);
    text_printf(&path, "metrics.%s", own);
    listing_add_keys(&all, points, "metrics", false);
    for (int others = 0; others < 2; others++) {
        for (size_t i = 0; i < all.count && !path.failed; i++) {
            if ((strcmp(all.columns[i].path, path.data) != 0) == others) {
                const char *name = all.columns[i].heading, prefix[] = "validation_";
                bool told = strncmp(name, prefix, strlen(prefix)) == 0;
                listing_add(listing, all.columns[i].path, told ? name + strlen(prefix) : name, LISTING_VALUE);
            }
        }
    }
    listing->failed = listing->failed || all.failed || path.failed;
    listing_release(&all);
    text_release(&path);
}

static int append_curve(struct text *text, const json_t *curve, const struct show *show, struct error *err)
{
    struct listing listing;
    json_t *shown = json_array();
    size_t i, n = json_array_size(curve);
    json_t *point;
    if (n == 0) {
        json_decref(shown);
        return 0;
    }
    json_array_foreach(curve, i, point)
    {
        if (show->all || is_shown(i, n)) {
            json_array_append(shown, point);
        }
    }
    text_append(text, "\ncurve on the validation data");
    if (json_array_size(shown) < n) {
        text_printf(text, " (%zu of %zu points; --all shows them)", json_array_size(shown), n);
    }
    text_append(text, "\n");
    listing_init(&listing);
    listing_add(&listing, "resource", NULL, LISTING_VALUE);
    add_metrics(&listing, shown, json_get_string(show->row, "metric", ""));
    listing_add(&listing, "attempt", NULL, LISTING_VALUE);
    listing_add(&listing, "seconds", NULL, LISTING_SECONDS);
    size_t left_out = 0;
    int result = listing_text(&listing, shown, terminal_width(STDOUT_FILENO), text, &left_out, err);
    listing_append_left_out(text, &listing, left_out, "--format csv or a wider terminal",
                            terminal_width(STDOUT_FILENO));
    listing_release(&listing);
    json_decref(shown);
    return result;
}

/* The last lines of an attempt's error, indented; cells of a table would lose the line breaks. */
static void append_error(struct text *text, const char *error)
{
    size_t size = strlen(error);
    while (size > 0 && (error[size - 1] == '\n' || error[size - 1] == ' ')) {
        size--;
    }
    size_t start = size;
    for (int lines = 0; start > 0; start--) {
        lines += error[start - 1] == '\n';
        if (lines == ERROR_LINES) {
            break;
        }
    }
    text_append(text, start > 0 ? "    ...\n    " : "    ");
    for (size_t i = start; i < size; i++) {
        bool control = (unsigned char)error[i] < 0x20 && error[i] != '\n' && error[i] != '\t';
        text_append_bytes(text, control ? "?" : &error[i], 1);
        text_append(text, error[i] == '\n' ? "    " : "");
    }
    text_append(text, "\n");
}

/* An attempt without reports (the refit has none) took from its start to its end. */
static json_t *attempt_rows(const json_t *attempts)
{
    json_t *rows = json_array();
    size_t i;
    json_t *attempt;
    json_array_foreach(attempts, i, attempt)
    {
        json_t *row = json_copy(attempt);
        int64_t start = json_get_integer(attempt, "started_ms", 0),
                end = json_get_integer(attempt, "ended_ms", 0);
        if (json_get_number(attempt, "seconds", 0) == 0) {
            json_object_set_new(row, "seconds",
                                end > start ? json_real((double)(end - start) / 1e3) : json_null());
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static int append_attempts(struct text *text, const json_t *attempts, struct error *err)
{
    static const struct {
        const char *path, *heading;
        enum listing_style style;
    } columns[] = {
        {"attempt", "attempt", LISTING_VALUE},   {"outcome", "outcome", LISTING_VALUE},
        {"start", "start", LISTING_VALUE},       {"until", "until", LISTING_VALUE},
        {"seconds", "seconds", LISTING_SECONDS}, {"worker", "worker", LISTING_VALUE},
        {"device", "device", LISTING_VALUE},     {"started_ms", "started", LISTING_TIME},
        {"ended_ms", "ended", LISTING_TIME},
    };
    struct listing listing;
    if (json_array_size(attempts) == 0) {
        return 0;
    }
    listing_init(&listing);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        listing_add(&listing, columns[i].path, columns[i].heading, columns[i].style);
    }
    text_append(text, "\nattempts\n");
    size_t left_out = 0;
    json_t *rows = attempt_rows(attempts);
    int result = listing_text(&listing, rows, terminal_width(STDOUT_FILENO), text, &left_out, err);
    listing_append_left_out(text, &listing, left_out, "--format json or a wider terminal",
                            terminal_width(STDOUT_FILENO));
    json_decref(rows);
    listing_release(&listing);
    size_t i;
    json_t *attempt;
    json_array_foreach(attempts, i, attempt)
    {
        const char *error = json_get_string(attempt, "error", NULL);
        if (error != NULL) {
            text_printf(text, "\nerror of attempt %lld\n",
                        (long long)json_get_integer(attempt, "attempt", 0));
            append_error(text, error);
        }
    }
    return result;
}

/* What the newest attempt that said so was trained with, besides the derived values: names of inner values
 * are joined by blanks. */
static json_t *details_of(const json_t *trial)
{
    json_t *details = NULL, *flat = json_object(), *attempt, *value, *inner;
    const char *name, *inner_name;
    size_t i;
    json_array_foreach(json_object_get(trial, "attempts"), i, attempt)
    {
        json_t *own = json_object_get(attempt, "details");
        details = json_is_object(own) ? own : details;
    }
    json_object_foreach(details, name, value)
    {
        if (strcmp(name, "derived") == 0) {
            continue;
        }
        if (!json_is_object(value)) {
            json_object_set(flat, name, value);
            continue;
        }
        json_object_foreach(value, inner_name, inner)
        {
            char key[120];
            snprintf(key, sizeof key, "%.50s %.60s", name, inner_name);
            json_object_set(flat, key, inner);
        }
    }
    return flat;
}

static int print_text(const struct show *show, const json_t *trial)
{
    struct text text;
    struct error err = {0};
    text_init(&text);
    int result = append_title(&text, show, trial, &err);
    model_append(&text, &show->query, trial);
    append_values(&text, "parameters", json_object_get(trial, "parameters"));
    append_values(&text, "derived", json_object_get(trial, "derived"));
    json_t *details = details_of(trial);
    append_values(&text, "details", details);
    json_decref(details);
    if (result == 0) {
        result = append_curve(&text, json_object_get(trial, "curve"), show, &err);
    }
    if (result == 0) {
        result = append_attempts(&text, json_object_get(trial, "attempts"), &err);
    }
    if (result == 0 && text.failed) {
        result = error_set(&err, ERROR_MEMORY, "no memory for the trial");
    }
    if (result == 0) {
        fputs(text.data, stdout);
    }
    text_release(&text);
    return result == 0 ? EXIT_DONE : command_fail("show", &err);
}

static int print_csv(const struct show *show, const json_t *trial)
{
    struct listing listing;
    const json_t *curve = json_object_get(trial, "curve");
    listing_init(&listing);
    listing_add(&listing, "resource", NULL, LISTING_VALUE);
    listing_add(&listing, "attempt", NULL, LISTING_VALUE);
    listing_add(&listing, "seconds", NULL, LISTING_VALUE);
    listing_add_keys(&listing, curve, "metrics", true);
    int result = query_print(&show->query, "show", &listing, &listing, curve);
    listing_release(&listing);
    return result;
}

static int ask_and_print(struct show *show)
{
    struct error err = {0};
    show->row = query_sweep(&show->query, show->sweep, &err);
    json_t *body = json_pack("{s:s, s:I}", "sweep", json_get_string(show->row, "id", ""), "trial",
                             (json_int_t)show->trial);
    json_t *trial = show->row != NULL ? query_ask(&show->query, "show", body, &err) : NULL;
    json_decref(body);
    int result = trial == NULL                        ? command_fail("show", &err)
                 : show->query.format == LISTING_JSON ? query_print_json("show", trial)
                 : show->query.format == LISTING_CSV  ? print_csv(show, trial)
                                                      : print_text(show, trial);
    json_decref(trial);
    json_decref(show->row);
    return result;
}

int command_show(int argc, char **argv)
{
    struct show show = {0};
    int code;
    options_start();
    while ((code = options_next("show", argc, argv, options_table)) != -1) {
        if (code == 'h') {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
        if (code == OPTION_ALL) {
            show.all = true;
        } else if (query_option(&show.query, "show", code, optarg) != 0) {
            return EXIT_USAGE;
        }
    }
    int count = argc - optind;
    if (count < 1 || count > 2) {
        return command_usage_error("show", "SWEEP and TRIAL are expected, found %d arguments", count);
    }
    show.sweep = count == 2 ? argv[optind] : NULL;
    if (!query_integer(argv[argc - 1], &show.trial)) {
        return command_usage_error("show", "TRIAL '%s': a number from 0 up", argv[argc - 1]);
    }
    return ask_and_print(&show);
}
