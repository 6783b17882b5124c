/* rung coordinator SPEC: serve a sweep to workers that attach from anywhere. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/serve.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_ADDRESS "tcp://127.0.0.1:7155"
#define MAX_BINDS 16

static const char usage[] =
    "usage: rung coordinator SPEC [OPTION]...\n"
    "       rung coordinator --resume [SWEEP] [OPTION]...\n"
    "Serves a sweep; attach workers at any time with: rung worker ENDPOINT.\n"
    "SPEC may be - (standard input).\n"
    "\n"
    "  --bind ADDRESS       on tcp://HOST:PORT (default " DEFAULT_ADDRESS ";\n"
    "                       port 0: any free one), ipc://PATH; may be repeated\n" SERVE_OPTIONS_HELP;

static const struct option options_table[] = {
    SERVE_LONG_OPTIONS, {"bind", required_argument, NULL, OPTION_OWN}, {NULL, 0, NULL, 0}};

static void print_start(const struct serve *serve)
{
    const char *address;
    serve_print_start(serve);
    for (size_t i = 0; (address = server_address(serve->server, i)) != NULL; i++)
        serve_print_attach(address, "attach workers with: ");
}

static void print_end(const struct serve *serve)
{
    fprintf(stderr, "the sweep has ended: rung leaderboard %s --db %s\n", serve->spec.name,
            serve->options->db);
}

int command_coordinator(int argc, char **argv)
{
    struct serve_options options;
    struct serve serve = {0};
    size_t binds = 0;
    int code;
    interrupt_begin();
    serve_options_init(&options);
    options_start();
    while ((code = options_next("coordinator", argc, argv, options_table)) != -1) {
        if (code == 'h') {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
        if (code == '?')
            return EXIT_USAGE;
        if (code == OPTION_OWN && binds == MAX_BINDS)
            return command_usage_error("coordinator", "more than %d --bind options", MAX_BINDS);
        if (code == OPTION_OWN)
            serve.binds[binds++] = optarg;
        else
            serve_option(&options, code, optarg);
    }
    if (argc - optind > 1)
        return command_usage_error("coordinator", "one SPEC at a time; found also '%s'", argv[optind + 1]);
    const char *what = optind < argc ? argv[optind] : NULL;
    if (!what && !options.resume)
        return command_usage_error("coordinator", "SPEC is missing");
    if (binds == 0)
        serve.binds[0] = DEFAULT_ADDRESS;
    int result = serve_load(&serve, "coordinator", &options, what);
    if (result == 0)
        result = serve_open(&serve);
    if (result == 0) {
        if (!options.quiet)
            print_start(&serve);
        result = serve_run(&serve, NULL, NULL);
        if (!options.quiet && (result == EXIT_DONE || result == EXIT_UNRANKED))
            print_end(&serve);
    }
    serve_close(&serve);
    return result;
}
