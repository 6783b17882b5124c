/* The refit of a sweep's winner, as `leaderboard` and `show` print it. */
#ifndef RUNG_CLI_FINAL_TABLE_H
#define RUNG_CLI_FINAL_TABLE_H

#include "base/error.h"
#include "base/text.h"
#include "cli/query.h"

#include <jansson.h>

/* "refit of trial 3, 27 epochs, 5 seeds" and a table of metric, mean and standard deviation; or why there is
 * none. `sweep`: a row of `rung list`; nothing is appended while its "final" is null. */
int final_append(struct text *text, const json_t *sweep, struct error *err);
/* Where the model of a trial is, if there is one: two lines. `trial`: an answer to `show`. */
void model_append(struct text *text, const struct query_options *query, const json_t *trial);

#endif
