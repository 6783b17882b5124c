/* rung: the command table and its dispatch. */
#include "cli/command.h"

#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct command commands[] = {
    {"run", command_run, "run a sweep on this machine; the leaderboard at the end"},
    {"coordinator", command_coordinator, "serve a sweep to workers that attach from anywhere"},
    {"worker", command_worker, "attach this machine to a coordinator"},
    {"leaderboard", command_leaderboard, "ranked trials of a sweep"},
    {"show", command_show, "one trial: parameters, curve, attempts, errors"},
    {"logs", command_logs, "what a trial's program printed"},
    {"list", command_list, "the sweeps in a database"},
    {"check", command_check, "validate a spec and show what it would do"},
    {"status", command_status, "state of a live coordinator"},
    {"pause", command_pause, "start no more trials until resume"},
    {"resume", command_resume, "go on after a pause"},
    {"stop", command_stop, "end a sweep: running trials finish, or --now"},
    {"keygen", command_keygen, "keys for other machines and people"},
    {"runner", command_runner, NULL},
    {NULL, NULL, NULL},
};

static void usage(FILE *out)
{
    fputs("rung " RUNG_VERSION ": hyperparameter optimization over any number of machines\n\n"
          "usage: rung COMMAND [OPTION]... (rung COMMAND --help says more)\n\n",
          out);
    for (const struct command *command = commands; command->name; command++)
        if (command->help)
            fprintf(out, "  %-12s %s\n", command->name, command->help);
    fputs("\na first sweep: rung run configs/digits.yaml\n", out);
}

int command_fail(const char *command, const struct error *err)
{
    fprintf(stderr, "rung %s: %s\n", command, err->message);
    return error_exit_code(err);
}

int command_usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rung %s: ", command);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\ntry 'rung %s --help'\n", command);
    va_end(arguments);
    return EXIT_USAGE;
}

static const struct command *command_find(const char *name)
{
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *words[sizeof(commands) / sizeof(commands[0])];
    size_t count = 0;
    for (const struct command *command = commands; command->name; command++)
        if (command->help)
            words[count++] = command->name;
    words[count] = NULL;
    const char *nearest = nearest_word(name, words);
    fprintf(stderr, "rung: no command '%s'", name);
    if (nearest)
        fprintf(stderr, "; did you mean '%s'?", nearest);
    fputs("\ntry 'rung --help'\n", stderr);
    return EXIT_USAGE;
}

/* stdout went away or the disk is full: say so instead of losing results silently. A command that failed has
 * said so itself, unless the last write is the one that fails. */
static int finish(int code)
{
    int failed = fflush(stdout), reason = errno;
    if (failed && reason == EPIPE) /* head, or a pager that was left: it has what it wanted */
        return code;
    if (failed)
        fprintf(stderr, "rung: writing to standard output: %s\n", strerror(reason));
    else if (ferror(stdout) && code == EXIT_DONE)
        fputs("rung: writing to standard output failed\n", stderr);
    else
        return code;
    return code == EXIT_DONE ? EXIT_RESOURCE : code;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        if (argc > 2 && argv[1][0] == 'h') {
            const struct command *command = command_find(argv[2]);
            if (!command)
                return unknown_command(argv[2]);
            char *help[] = {argv[2], "--help", NULL};
            return finish(command->run(2, help));
        }
        usage(stdout);
        return finish(EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("rung " RUNG_VERSION);
        return finish(EXIT_DONE);
    }
    const struct command *command = command_find(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    return finish(command->run(argc - 1, argv + 1));
}
