/* The linear baseline of a sweep, as `leaderboard` prints it. `sweep` is a row of `rung list`. */
#ifndef RUNG_CLI_BASELINE_TABLE_H
#define RUNG_CLI_BASELINE_TABLE_H

#include "base/text.h"

#include <jansson.h>

/* A row for the table of trials, with "baseline" for a trial's number. New reference; NULL: there is none. */
json_t *baseline_row(const json_t *sweep);
/* That the best trial is no better, or why there is no baseline; nothing where all is well. */
void baseline_append_note(struct text *text, const json_t *sweep);

#endif
