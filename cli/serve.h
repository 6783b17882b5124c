/* Serving a sweep from a command: what `run` and `coordinator` share. Signals, progress, the endpoint file,
 * the end. */
#ifndef RUNG_CLI_SERVE_H
#define RUNG_CLI_SERVE_H

#include "base/error.h"
#include "base/log.h"
#include "cli/progress.h"
#include "coordinator/server.h"

#include <stdbool.h>

/* Options that both commands know, read by serve_option from getopt_long. */
struct serve_options {
    const char *db;            /* rung.db, RUNG_DB, --db */
    const char *name;          /* --name */
    const char *overrides[64]; /* --set, NULL-terminated */
    size_t override_count;     /* may say more than fit; serve_open refuses that */
    const char *endpoint_file; /* --endpoint-file */
    const char *config;        /* --config: folder of the keys */
    bool resume, linger, insecure, quiet, verbose;
};

enum serve_option_code {
    OPTION_DB = 1000,
    OPTION_NAME,
    OPTION_SET,
    OPTION_ENDPOINT_FILE,
    OPTION_CONFIG,
    OPTION_RESUME,
    OPTION_LINGER,
    OPTION_INSECURE,
    OPTION_OWN, /* a command's own options count from here */
};
#define SERVE_LONG_OPTIONS                                                                                   \
    {"db", required_argument, NULL, OPTION_DB}, {"name", required_argument, NULL, OPTION_NAME},              \
        {"set", required_argument, NULL, OPTION_SET},                                                        \
        {"endpoint-file", required_argument, NULL, OPTION_ENDPOINT_FILE},                                    \
        {"config", required_argument, NULL, OPTION_CONFIG}, {"resume", no_argument, NULL, OPTION_RESUME},    \
        {"linger", no_argument, NULL, OPTION_LINGER}, {"insecure", no_argument, NULL, OPTION_INSECURE},      \
        {"quiet", no_argument, NULL, 'q'}, {"verbose", no_argument, NULL, 'v'},                              \
    {                                                                                                        \
        "help", no_argument, NULL, 'h'                                                                       \
    }

#define SERVE_OPTIONS_HELP                                                                                   \
    "  --db PATH            database (default rung.db, or RUNG_DB)\n"                                        \
    "  --name NAME          name of the sweep, over the spec's\n"                                            \
    "  --set KEY=VALUE      over the spec, dotted keys; may be repeated\n"                                   \
    "  --resume             go on with a stored sweep: of the SPEC's name, or the one\n"                     \
    "                       named instead of a SPEC, or the newest\n"                                        \
    "  --endpoint-file PATH write the address for workers there, once it is bound\n"                         \
    "  --config DIR         folder of the keys (default ~/.config/rung)\n"                                   \
    "  --insecure           no encryption, no allow-list: only in a closed network\n"                        \
    "  --linger             keep serving after the sweep has ended\n"                                        \
    "  -q, --quiet          only warnings and errors;  -v, --verbose: more\n"

void serve_options_init(struct serve_options *options);
/* Takes one option; false when it is not one of these. */
bool serve_option(struct serve_options *options, int code, char *value);

#define DATA_FILE_KEYS 4 /* settings of train.data that name a file */

/* A sweep being served by this process. */
struct serve {
    const char *command;
    struct serve_options *options;
    struct spec spec;
    struct security security;
    struct log log;
    struct progress progress;
    struct server *server;
    const char *own_worker; /* as in server_settings */
    const char *binds[20];  /* NULL-terminated; borrowed; filled before serve_open */
    struct data_file data_files[DATA_FILE_KEYS + 1];
    struct each *each; /* what the server's progress calls reach */
};

/* Loads the spec (or with --resume the stored one; `what` is the SPEC, the sweep's name or NULL) and the keys
 * (unless insecure). 0, or the exit code, with everything said on stderr. */
int serve_load(struct serve *serve, const char *command, struct serve_options *options, const char *what);
/* Then opens the server on `binds`. The same. */
int serve_open(struct serve *serve);
/* Handles signals and serves to the end; the exit code (0, 1, 4, 130). `each_f` is called with every progress
 * update; it may request a stop. */
int serve_run(struct serve *serve, void (*each_f)(void *user, struct serve *serve), void *user);
/* What is served, where and with which seed, on stderr. */
void serve_print_start(const struct serve *serve);
/* "rung worker ADDRESS" for every address that `bound` can be reached at, each behind `before`. */
void serve_print_attach(const char *bound, const char *before);
void serve_close(struct serve *serve);

#endif
