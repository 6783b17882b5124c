/* rung leaderboard [SWEEP]: the ranked trials. */
#include "cli/command.h"
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
    "  --where E         only some trials: 'batch_size >= 64 and state = completed', 'model in (mlp, "
    "linear)'\n"
    "  --sort NAME       by a column, parameter or metric, -NAME downwards (default: by rank)\n"
    "  --columns A,B     these columns: rank, sweep, trial, state, reason, objective, resource, seconds, "
    "worker,\n"
    "                    device, attempts, or the name of a parameter, metric or derived "
    "value\n" QUERY_OPTIONS_HELP;

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

static const char *const plain_columns[] = {"rank",   "sweep",     "trial",    "state",
                                            "reason", "objective", "resource", "seconds",
                                            "worker", "device",    "attempts", NULL};
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
}

/* What people look at first. The objective is headed by the metric's name. */
static void add_default(struct listing *listing, const json_t *sweep)
{
    size_t i;
    json_t *name;
    listing_add(listing, "rank", NULL, LISTING_VALUE);
    listing_add(listing, "trial", NULL, LISTING_VALUE);
    listing_add(listing, "objective", json_get_string(sweep, "metric", "objective"), LISTING_VALUE);
    listing_add(listing, "resource", NULL, LISTING_VALUE);
    listing_add(listing, "outcome", "state", LISTING_VALUE);
    json_array_foreach(json_object_get(sweep, "parameters"), i, name)
    {
        listing_add_key(listing, "parameters", json_string_value(name), false);
    }
    listing_add(listing, "seconds", NULL, LISTING_SECONDS);
    listing_add(listing, "worker", NULL, LISTING_VALUE);
}

/* Adds "outcome", the state with its reason, to each row: stopped/pruned. */
static void add_outcomes(json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *reason = json_get_string(row, "reason", "");
        bool said = reason[0] == '\0' || strcmp(reason, "finished") == 0;
        json_object_set_new(
            row, "outcome",
            json_sprintf("%s%s%s", json_get_string(row, "state", ""), said ? "" : "/", said ? "" : reason));
    }
}

/* Adds the column that a user's word stands for. */
static bool add_named(struct listing *listing, const json_t *rows, const char *name)
{
    if (is_plain(name)) {
        listing_add(listing, name, NULL, LISTING_VALUE);
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
                listing_add_key(listing, nested_columns[k], name, false);
                return true;
            }
        }
    }
    return false;
}

/* No row to look names up in: anything may be a column. */
static int add_chosen(struct listing *listing, const json_t *rows, const char *names)
{
    char *copy = strdup(names), *rest = copy, *name;
    int result = copy != NULL ? 0 : EXIT_RESOURCE;
    while (result == 0 && (name = strsep(&rest, ",")) != NULL) {
        name += strspn(name, " ");
        if (!add_named(listing, rows, name)) {
            if (json_array_size(rows) == 0) {
                listing_add(listing, name, NULL, LISTING_VALUE);
            } else {
                const char *nearest = nearest_word(name, plain_columns);
                result = command_usage_error("leaderboard", "--columns: no column '%s'%s%s%s", name,
                                             nearest != NULL ? "; did you mean '" : "",
                                             nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
            }
        }
    }
    free(copy);
    return result;
}

/* "test_accuracy 0.9722 ± 0.0031, ..." of the refitted winner: means over its seeds, or plain numbers. */
static void append_scores(struct text *text, const json_t *final)
{
    const char *name;
    json_t *value;
    int count = 0;
    json_object_foreach((json_t *) final, name, value)
    {
        bool is_score = json_is_number(value) || json_object_get(value, "mean") != NULL;
        if (strncmp(name, "test_", 5) == 0 && is_score) {
            text_printf(text, "%s%s ", count++ > 0 ? ", " : "", name);
            listing_append(text, value, LISTING_VALUE);
        }
    }
}

static void print_final(const json_t *sweep)
{
    const json_t *final = json_object_get(sweep, "final");
    struct text text;
    if (!json_is_object(final)) {
        return;
    }
    text_init(&text);
    const char *failed = json_get_string(final, "failed", NULL);
    if (failed != NULL) {
        text_printf(&text, "refit of the winner failed: %s", failed);
    } else {
        text_append(&text, "refit of the winner");
        int64_t seeds = json_get_integer(final, "seeds", 0), epochs = json_get_integer(final, "epochs", 0);
        if (seeds > 0 && epochs > 0) {
            text_printf(&text, " (%lld epochs, %lld seeds)", (long long)epochs, (long long)seeds);
        }
        text_append(&text, ": ");
        append_scores(&text, final);
    }
    if (!text.failed) {
        printf("\n%s\n", text.data);
    }
    text_release(&text);
}

static int print_rows(const struct leaderboard *board, const json_t *sweep, json_t *rows)
{
    struct listing shown, all;
    listing_init(&shown);
    listing_init(&all);
    int result = board->columns != NULL ? add_chosen(&shown, rows, board->columns) : 0;
    if (result == 0 && board->columns == NULL) {
        add_default(&shown, sweep);
        add_all(&all, rows);
    }
    if (result == 0 && board->columns != NULL && board->query.format == LISTING_JSON) {
        json_t *reduced = listing_rows(&shown, rows);
        result = query_print_json("leaderboard", reduced);
        json_decref(reduced);
    } else if (result == 0 && json_array_size(rows) == 0 && board->query.format == LISTING_TABLE) {
        fprintf(stderr, board->where != NULL ? "no trial is so\n" : "sweep %s has no trials yet\n",
                json_get_string(sweep, "name", ""));
    } else if (result == 0) {
        if (board->query.format == LISTING_TABLE) {
            add_outcomes(rows);
        }
        result =
            query_print(&board->query, "leaderboard", &shown, board->columns != NULL ? &shown : &all, rows);
    }
    if (result == 0 && board->query.format == LISTING_TABLE) {
        print_final(sweep);
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
        return 0;
    case OPTION_SORT:
        board->sort = value;
        return 0;
    case OPTION_COLUMNS:
        board->columns = value;
        return 0;
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
