/* rung leaderboard [SWEEP]: the ranked trials. */
#include "cli/baseline_table.h"
#include "cli/command.h"
#include "cli/final_table.h"
#include "cli/options.h"
#include "cli/query.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: rung leaderboard [SWEEP] [OPTION]...\n"
    "Ranked trials of SWEEP (a name or id; default the newest), best first.\n"
    "\n"
    "  --top N           the first N rows only\n"
    "  --where E         only some trials: 'batch_size >= 64 and state = completed',\n"
    "                    'model in (mlp, linear)'\n"
    "  --sort NAME       by a column, parameter or metric, -NAME downwards\n"
    "  --columns A,B     these columns: rank, sweep, trial, state, reason, objective,\n"
    "                    resource, seconds, worker, device, attempts, or the name of\n"
    "                    a parameter, metric or derived value\n" QUERY_OPTIONS_HELP;

enum { OPTION_TOP = QUERY_OWN, OPTION_WHERE, OPTION_SORT, OPTION_COLUMNS };

static const struct option options_table[] = {QUERY_LONG_OPTIONS,
                                              {"top", required_argument, NULL, OPTION_TOP},
                                              {"where", required_argument, NULL, OPTION_WHERE},
                                              {"sort", required_argument, NULL, OPTION_SORT},
                                              {"columns", required_argument, NULL, OPTION_COLUMNS},
                                              {NULL, 0, NULL, 0}};

struct leaderboard {
    struct query_options query;
    const char *sweep, *where, *sort, *columns;
    int64_t top;
};

static const char *const plain_columns[] = {"rank",      "sweep",         "trial",   "state",  "reason",
                                            "objective", "resource",      "seconds", "worker", "device",
                                            "attempts",  "within_one_se", NULL};
static const char *const nested_columns[] = {"parameters", "metrics", "derived"};

static bool is_plain(const char *name)
{
    for (size_t i = 0; plain_columns[i] != NULL; i++) {
        if (strcmp(plain_columns[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Every column, in the order of the JSON keys. */
static void add_all(struct listing *listing, const json_t *rows)
{
    static const char *const before[] = {"rank",   "sweep",     "trial",   "state",
                                         "reason", "objective", "resource"};
    static const char *const nested[] = {"parameters", "derived", "metrics"};
    static const char *const after[] = {"seconds", "worker", "device", "attempts"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        listing_add(listing, before[i], NULL, LISTING_VALUE);
    }
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        listing_add_keys(listing, rows, nested[i], true);
    }
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        listing_add(listing, after[i], NULL, LISTING_VALUE);
    }
    if (json_object_get(json_array_get(rows, 0), "within_one_se") != NULL) { /* with replicates only */
        listing_add(listing, "within_one_se", NULL, LISTING_VALUE);
    }
}

/* What people look at first, first: a narrow terminal leaves out columns from the right. The objective is
 * headed by the metric's name. */
static void add_default(struct listing *listing, const json_t *sweep, const json_t *rows)
{
    size_t i;
    json_t *name;
    listing_add(listing, "rank", NULL, LISTING_VALUE);
    listing_add(listing, "trial", NULL, LISTING_VALUE);
    listing_add(listing, "objective", json_get_string(sweep, "metric", "objective"), LISTING_VALUE);
    if (json_object_get(json_array_get(rows, 0), "within_one_se") != NULL) {
        listing_add(listing, "mark", "", LISTING_VALUE);
    }
    json_array_foreach(json_object_get(sweep, "parameters"), i, name)
    {
        listing_add_key(listing, "parameters", json_string_value(name), false, LISTING_BRIEF);
    }
    listing_add(listing, "resource", NULL, LISTING_VALUE);
    listing_add(listing, "outcome", "state", LISTING_VALUE);
    listing_add(listing, "seconds", NULL, LISTING_SECONDS);
    listing_add(listing, "worker", NULL, LISTING_VALUE);
}

/* Adds "outcome", the one word that says most: pruned, crashed, or the state; and "mark", a star where a row
 * is as good as the best. */
static void add_outcomes(json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *reason = json_get_string(row, "reason", "");
        bool plain = reason[0] == '\0' || strcmp(reason, "finished") == 0 || strcmp(reason, "user") == 0;
        bool near = json_is_true(json_object_get(row, "within_one_se"));
        json_object_set_new(row, "mark", json_string(near ? "*" : ""));
        json_object_set_new(row, "outcome", json_string(plain ? json_get_string(row, "state", "") : reason));
    }
}

/* The last row of the whole board. It is no trial, so that no condition finds it. */
static void add_baseline(const struct leaderboard *board, const json_t *sweep, json_t *rows)
{
    json_t *row = board->where == NULL ? baseline_row(sweep) : NULL;
    if (row != NULL) {
        json_array_append_new(rows, row);
    }
}

/* Adds the column that a user's word stands for. */
static bool add_named(struct listing *listing, const json_t *rows, const char *name)
{
    if (is_plain(name)) {
        listing_add(listing, name, NULL, strcmp(name, "seconds") == 0 ? LISTING_SECONDS : LISTING_VALUE);
        return true;
    }
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (listing_value(row, name) != NULL) { /* written with its prefix */
            listing_add(listing, name, NULL, LISTING_VALUE);
            return true;
        }
        for (size_t k = 0; k < sizeof nested_columns / sizeof *nested_columns; k++) {
            if (json_object_get(json_object_get(row, nested_columns[k]), name) != NULL) {
                listing_add_key(listing, nested_columns[k], name, false, LISTING_VALUE);
                return true;
            }
        }
    }
    return false;
}

/* Every word that --columns takes for these rows: plain columns, then keys, once each. New array. */
static json_t *column_names(const json_t *rows)
{
    json_t *names = json_object(), *list = json_array();
    const char *name;
    json_t *row, *value;
    size_t i;
    for (i = 0; plain_columns[i] != NULL; i++) {
        json_object_set_new(names, plain_columns[i], json_null());
    }
    for (size_t k = 0; k < sizeof nested_columns / sizeof *nested_columns; k++) {
        json_array_foreach(rows, i, row)
        {
            json_object_foreach(json_object_get(row, nested_columns[k]), name, value)
            {
                json_object_set_new(names, name, json_null());
            }
        }
    }
    json_object_foreach(names, name, value)
    {
        json_array_append_new(list, json_string(name));
    }
    json_decref(names);
    return list;
}

static int refuse_column(const json_t *rows, const char *name)
{
    json_t *names = column_names(rows), *word;
    const char **words = calloc(json_array_size(names) + 1, sizeof *words);
    struct text all;
    size_t i;
    text_init(&all);
    json_array_foreach(names, i, word)
    {
        text_printf(&all, "%s%s", i > 0 ? ", " : "", json_string_value(word));
        if (words != NULL) {
            words[i] = json_string_value(word);
        }
    }
    const char *nearest = words != NULL ? nearest_word(name, words) : NULL;
    int result =
        command_usage_error("leaderboard", "--columns: no column '%s'%s%s%s; there are %s", name,
                            nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                            nearest != NULL ? "'?" : "", all.data != NULL ? all.data : "none");
    text_release(&all);
    free(words);
    json_decref(names);
    return result;
}

/* No row to look names up in: anything may be a column. */
static int add_chosen(struct listing *listing, const json_t *rows, const char *names)
{
    char *copy = strdup(names), *rest = copy, *name;
    int result = copy != NULL ? 0 : EXIT_RESOURCE;
    while (result == 0 && (name = strsep(&rest, ",")) != NULL) {
        name += strspn(name, " ");
        if (add_named(listing, rows, name)) {
            continue;
        }
        if (json_array_size(rows) == 0) {
            listing_add(listing, name, NULL, LISTING_VALUE);
        } else {
            result = refuse_column(rows, name);
        }
    }
    free(copy);
    return result;
}

/* Where the refitted winner is. A result that cannot be asked for any more is not worth failing for. */
static void append_model(struct text *text, const struct leaderboard *board, const json_t *sweep)
{
    const json_t *final = json_object_get(sweep, "final");
    struct error err;
    if (!json_is_object(final) || json_object_get(final, "failed") != NULL) {
        return;
    }
    json_t *body = json_pack("{s:s, s:i}", "sweep", json_get_string(sweep, "id", ""), "trial", 0);
    json_t *trial = query_ask(&board->query, "show", body, &err);
    model_append(text, &board->query, trial);
    json_decref(trial);
    json_decref(body);
}

/* Under the ranked trials of the whole sweep; what --where leaves out is not its winner's affair. */
static int print_final(const struct leaderboard *board, const json_t *sweep, const json_t *rows)
{
    struct text text;
    struct error err = {0};
    text_init(&text);
    if (json_object_get(json_array_get(rows, 0), "within_one_se") != NULL) {
        text_append(&text, "* within one standard error of the best, over its seeds\n");
    }
    baseline_append_note(&text, sweep);
    text_append(&text, text.size > 0 && !json_is_null(json_object_get(sweep, "final")) ? "\n" : "");
    int result = final_append(&text, sweep, &err);
    append_model(&text, board, sweep);
    if (result == 0 && text.size > 0) {
        printf("\n%s", text.data);
    }
    text_release(&text);
    return result == 0 ? EXIT_DONE : command_fail("leaderboard", &err);
}

static int print_rows(const struct leaderboard *board, const json_t *sweep, json_t *rows)
{
    struct listing shown, all;
    listing_init(&shown);
    listing_init(&all);
    int result = board->columns != NULL ? add_chosen(&shown, rows, board->columns) : 0;
    if (result == 0 && board->columns == NULL) {
        add_default(&shown, sweep, rows);
        add_all(&all, rows);
    }
    if (result == 0 && board->columns != NULL && board->query.format == LISTING_JSON) {
        json_t *reduced = listing_rows(&shown, rows);
        result = query_print_json("leaderboard", reduced);
        json_decref(reduced);
    } else if (result == 0 && json_array_size(rows) == 0 && board->query.format == LISTING_TABLE) {
        const char *name = json_get_string(sweep, "name", "");
        board->where != NULL ? fprintf(stderr, "no trial of %s matches --where '%s'\n", name, board->where)
                             : fprintf(stderr, "sweep %s has no trials yet\n", name);
    } else if (result == 0) {
        if (board->query.format == LISTING_TABLE) {
            add_outcomes(rows);
            add_baseline(board, sweep, rows);
        }
        result =
            query_print(&board->query, "leaderboard", &shown, board->columns != NULL ? &shown : &all, rows);
    }
    if (result == 0 && json_array_size(rows) > 0 && board->query.format == LISTING_TABLE) {
        result = print_final(board, sweep, rows);
    }
    listing_release(&shown);
    listing_release(&all);
    return result;
}

static int ask_and_print(const struct leaderboard *board)
{
    struct error err = {0};
    json_t *sweep = query_sweep(&board->query, board->sweep, &err);
    if (sweep == NULL) {
        return command_fail("leaderboard", &err);
    }
    json_t *body = json_pack("{s:s, s:s?, s:s?, s:I}", "sweep", json_get_string(sweep, "id", ""), "where",
                             board->where, "sort", board->sort, "top", (json_int_t)board->top);
    json_t *rows = query_ask(&board->query, "leaderboard", body, &err);
    int result = rows != NULL ? print_rows(board, sweep, rows) : command_fail("leaderboard", &err);
    json_decref(rows);
    json_decref(body);
    json_decref(sweep);
    return result;
}

static int take_option(struct leaderboard *board, int code, const char *value)
{
    switch (code) {
    case OPTION_TOP:
        return query_integer(value, &board->top) && board->top > 0
                   ? 0
                   : command_usage_error("leaderboard", "--top '%s': a number from 1 up", value);
    case OPTION_WHERE:
        board->where = value;
        return query_text_check("leaderboard", "--where", value);
    case OPTION_SORT:
        board->sort = value;
        return query_text_check("leaderboard", "--sort", value);
    case OPTION_COLUMNS:
        board->columns = value;
        return query_text_check("leaderboard", "--columns", value);
    default:
        return query_option(&board->query, "leaderboard", code, value) == 0 ? 0 : EXIT_USAGE;
    }
}

int command_leaderboard(int argc, char **argv)
{
    struct leaderboard board = {0};
    int code;
    options_start();
    while ((code = options_next("leaderboard", argc, argv, options_table)) != -1) {
        if (code == 'h') {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
        int result = take_option(&board, code, optarg);
        if (result != 0) {
            return result;
        }
    }
    if (argc - optind > 1) {
        return command_usage_error("leaderboard", "one SWEEP at a time; found also '%s'", argv[optind + 1]);
    }
    board.sweep = optind < argc ? argv[optind] : NULL;
    return ask_and_print(&board);
}
