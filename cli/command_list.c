/* rung list: the sweeps in a database. */
#include "cli/command.h"
#include "cli/options.h"
#include "cli/query.h"

#include <stdio.h>

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
    {"method", LISTING_VALUE, true},    {"metric", LISTING_VALUE, true},      {"goal", LISTING_VALUE, false},
    {"best", LISTING_VALUE, true},      {"best_trial", LISTING_VALUE, false}, {"trials", LISTING_VALUE, true},
    {"completed", LISTING_VALUE, true}, {"stopped", LISTING_VALUE, true},     {"failed", LISTING_VALUE, true},
    {"created_ms", LISTING_TIME, true}, {"ended_ms", LISTING_TIME, true},
};

static int print_sweeps(const struct query_options *options, const json_t *rows)
{
    struct listing shown, all;
    listing_init(&shown);
    listing_init(&all);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const char *heading =
            columns[i].style == LISTING_TIME ? (columns[i].path[0] == 'c' ? "created" : "ended") : NULL;
        if (columns[i].shown) {
            listing_add(&shown, columns[i].path, heading, columns[i].style);
        }
        listing_add(&all, columns[i].path, NULL, columns[i].style);
    }
    int result = query_print(options, "list", &shown, &all, rows);
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
