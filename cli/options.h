/* Reading a command's options: getopt_long, with one voice for what is wrong.
 *
 * A wrong option is told on stderr as "rung COMMAND: unknown option '--foo'; did you mean '--bar'?". */
#ifndef RUNG_CLI_OPTIONS_H
#define RUNG_CLI_OPTIONS_H

#include <getopt.h>

/* Before the first options_next of a command. */
void options_start(void);
/* The next option's code with optarg set; -1: no more, arguments start at optind; '?': wrong, and told.
 * `table` ends with a NULL name; the one-letter options are those of its values that are letters, none of
 * which takes a value. */
int options_next(const char *command, int argc, char **argv, const struct option *table);

#endif
