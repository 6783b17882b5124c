/* Progress of a sweep for people: one live line on a terminal, plain lines elsewhere. Writes to stderr only.
 *
 * Log lines and lines of child processes pass through here too, so that they never tear the live line. */
#ifndef RUNG_CLI_PROGRESS_H
#define RUNG_CLI_PROGRESS_H

#include "base/log.h"
#include "base/text.h"
#include "coordinator/engine.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool terminal, quiet;
    bool drawn; /* a live line stands on the screen */
    int64_t started_ns, printed_ns;
    int64_t printed_ended, printed_best; /* what the last plain line said */
    struct engine_counts counts;         /* the newest */
    int child_fd;                        /* stderr of a child, non-blocking; -1: none */
    struct text child_line;
    const char *metric; /* may be NULL */
    bool rungs;         /* trials are compared on the way: epochs are told, too */
    double expected;    /* epochs of the whole sweep, about; 0: not known */
};

/* `stopping` tells what is to be expected; nothing of it is kept. */
void progress_init(struct progress *progress, const char *metric, const struct stopping_settings *stopping,
                   bool quiet);
void progress_release(struct progress *progress);
/* Draws or prints what changed; also forwards the child's lines. */
void progress_update(struct progress *progress, const struct engine_counts *counts);
/* Leaves the last state on the screen; later lines start below it. */
void progress_end(struct progress *progress);
/* The live line as it is drawn: a bar and as much as fits `width` columns (0: no limit), the best and the
 * number of trials last to go. */
void progress_describe(const struct progress *progress, const struct engine_counts *counts, int width,
                       struct text *text);
/* A line from elsewhere, above the live line. */
void progress_line(struct progress *progress, const char *line);
/* For struct log's write_f; user is the struct progress. */
void progress_log(void *user, enum log_level level, const char *line);

#endif
