/* The commands of `rung`: one table in main.c, one file per command (command_<name>.c). A command file is its
 * usage, its options and the calls that do the work.
 *
 * argv[0] is the command's name. The return value is the exit code: 0 done; 1 the sweep ended without one
 * ranked trial; 2 wrong usage, spec or data; 3 could not connect or was refused; 4 a file, database, device
 * or disk could not be used; 130 interrupted, resumable. Results go to stdout, everything else to stderr. */
#ifndef RUNG_CLI_COMMAND_H
#define RUNG_CLI_COMMAND_H

#include "base/error.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_UNRANKED = 1,
    EXIT_USAGE = 2,
    EXIT_CONNECT = 3,
    EXIT_RESOURCE = 4,
    EXIT_INTERRUPTED = 130,
};

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* one line; NULL: not listed */
};

extern const struct command commands[]; /* ends with a NULL name */

int command_run(int argc, char **argv);
int command_coordinator(int argc, char **argv);
int command_worker(int argc, char **argv);
int command_leaderboard(int argc, char **argv);
int command_show(int argc, char **argv);
int command_logs(int argc, char **argv);
int command_list(int argc, char **argv);
int command_check(int argc, char **argv);
int command_status(int argc, char **argv);
int command_pause(int argc, char **argv);
int command_resume(int argc, char **argv);
int command_stop(int argc, char **argv);
int command_keygen(int argc, char **argv);
int command_runner(int argc, char **argv);

/* Prints "rung COMMAND: message" to stderr and returns the error's exit code. */
int command_fail(const char *command, const struct error *err);
/* A wrong option or argument: prints the message and "try 'rung COMMAND --help'"; returns EXIT_USAGE. */
int command_usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
