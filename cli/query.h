/* Where the commands that only look get their answers: a database file, or a live coordinator. */
#ifndef RUNG_CLI_QUERY_H
#define RUNG_CLI_QUERY_H

#include "base/error.h"
#include "cli/client.h"
#include "cli/listing.h"

#include <getopt.h>
#include <jansson.h>

struct query_options {
    const char *db; /* NULL: RUNG_DB or rung.db */
    bool live;      /* --endpoint was given */
    struct client client;
    enum listing_format format;
};

enum query_option_code {
    QUERY_DB = 1000,
    QUERY_ENDPOINT,
    QUERY_CONFIG,
    QUERY_KEY,
    QUERY_INSECURE,
    QUERY_FORMAT,
    QUERY_OWN
};
#define QUERY_LONG_OPTIONS                                                                                   \
    {"db", required_argument, NULL, QUERY_DB}, {"endpoint", required_argument, NULL, QUERY_ENDPOINT},        \
        {"config", required_argument, NULL, QUERY_CONFIG},                                                   \
        {"server-key", required_argument, NULL, QUERY_KEY}, {"insecure", no_argument, NULL, QUERY_INSECURE}, \
        {"format", required_argument, NULL, QUERY_FORMAT},                                                   \
    {                                                                                                        \
        "help", no_argument, NULL, 'h'                                                                       \
    }
#define QUERY_OPTIONS_HELP                                                                                   \
    "  --db PATH         database (default rung.db, or RUNG_DB)\n"                                           \
    "  --endpoint E      ask a live coordinator: tcp://HOST:PORT, ipc://PATH, @FILE\n"                       \
    "  --format F        table (default), json or csv\n"                                                     \
    "  --config DIR      folder of the keys (default ~/.config/rung)\n"                                      \
    "  --server-key KEY  the coordinator's public key (default: that folder's)\n"                            \
    "  --insecure        the coordinator was started with --insecure\n"

/* Takes one option. 0: taken; 1: it is none of these; -1: a wrong value, told on stderr for `command`. */
int query_option(struct query_options *options, const char *command, int code, const char *value);
/* Text from the command line that becomes part of a question: 0, or EXIT_USAGE when it is no UTF-8. */
int query_text_check(const char *command, const char *option, const char *value);
const char *query_database(const struct query_options *options);

/* The body of the answer; `body` is borrowed, NULL: none. */
json_t *query_ask(const struct query_options *options, const char *query, json_t *body, struct error *err);
/* The row of `rung list` for the sweep called `asked` (name or id; NULL: the newest); a new reference, or
 * NULL. */
json_t *query_sweep(const struct query_options *options, const char *asked, struct error *err);

/* The keys of an answer from the wire in the store's order; non-zero without memory. */
int query_order(const char *query, json_t *answer);

/* Prints rows in the asked format: the text of `shown`, the CSV of `all`, or all of the JSON. Returns an exit
 * code. */
int query_print(const struct query_options *options, const char *command, const struct listing *shown,
                const struct listing *all, const json_t *rows);
/* Prints a value as JSON and a newline. */
int query_print_json(const char *command, const json_t *value);
/* Reads a number from 0 up; false: it is none. */
bool query_integer(const char *text, int64_t *value);

#endif
