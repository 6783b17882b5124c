/* rung list: the sweeps in a database. */
#include "cli/command.h"
#include "cli/options.h"
#include "cli/query.h"

#include <stdio.h>
#include <time.h>

static const char usage[] = "usage: rung list [OPTION]...\n"
                            "The sweeps in a database, newest first, with their state and counts.\n"
                            "\n" QUERY_OPTIONS_HELP;

static const struct option options_table[] = {QUERY_LONG_OPTIONS, {NULL, 0, NULL, 0}};

static const struct {
    const char *path;
    enum listing_style style;
    bool shown; /* to people as well */
} columns[] = {
    {"name", LISTING_VALUE, true},      {"id", LISTING_VALUE, true},          {"state", LISTING_VALUE, true},
    {"live", LISTING_VALUE, false},     {"best", LISTING_VALUE, true},        {"metric", LISTING_VALUE, true},
    {"goal", LISTING_VALUE, false},     {"best_trial", LISTING_VALUE, false}, {"trials", LISTING_VALUE, true},
    {"completed", LISTING_VALUE, true}, {"stopped", LISTING_VALUE, true},     {"failed", LISTING_VALUE, true},
    {"created_ms", LISTING_TIME, true}, {"ended_ms", LISTING_TIME, true},     {"method", LISTING_VALUE, true},
};

/* For people: a sweep that has not ended and that no coordinator serves is interrupted. */
static json_t *told_states(const json_t *rows)
{
    json_t *told = json_array(), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_t *copy = json_copy(row);
        if (!json_is_true(json_object_get(row, "live")) && json_is_null(json_object_get(row, "ended_ms"))) {
            json_object_set_new(copy, "state", json_string("interrupted"));
        }
        json_array_append_new(told, copy);
    }
    return told;
}

static int print_sweeps(const struct query_options *options, const json_t *rows)
{
    struct listing shown, all;
    char zone[32];
    time_t now = time(NULL);
    struct tm local;
    strftime(zone, sizeof zone, "%Z", localtime_r(&now, &local));
    listing_init(&shown);
    listing_init(&all);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char heading[64];
        bool time = columns[i].style == LISTING_TIME;
        snprintf(heading, sizeof heading, "%s (%s)", columns[i].path[0] == 'c' ? "created" : "ended", zone);
        if (columns[i].shown) {
            listing_add(&shown, columns[i].path, time ? heading : NULL, columns[i].style);
        }
        listing_add(&all, columns[i].path, NULL, columns[i].style);
    }
    json_t *told = options->format == LISTING_TABLE ? told_states(rows) : json_incref((json_t *)rows);
    int result = query_print(options, "list", &shown, &all, told);
    json_decref(told);
    listing_release(&shown);
    listing_release(&all);
    return result;
}

int command_list(int argc, char **argv)
{
    struct query_options options = {0};
    struct error err = {0};
    int code;
    options_start();
    while ((code = options_next("list", argc, argv, options_table)) != -1) {
        if (code == 'h') {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
        if (query_option(&options, "list", code, optarg) != 0) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        return command_usage_error("list", "no argument is expected, found '%s'", argv[optind]);
    }
    json_t *rows = query_ask(&options, "list", NULL, &err);
    if (rows == NULL) {
        return command_fail("list", &err);
    }
    int result = EXIT_DONE;
    if (json_array_size(rows) == 0 && options.format == LISTING_TABLE) {
        fprintf(stderr, "no sweeps yet\n");
    } else {
        result = print_sweeps(&options, rows);
    }
    json_decref(rows);
    return result;
}
