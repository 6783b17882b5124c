/* Why a sweep ended without one ranked trial: what most of its trials came to, and what the first failure
 * said. One line, and the end of that text, on stderr. */
#ifndef RUNG_CLI_UNRANKED_H
#define RUNG_CLI_UNRANKED_H

#include "base/error.h"

/* metric NULL: none was asked for, and no trial was completed. */
int unranked_explain(const char *command, const char *db, const char *sweep_id, const char *metric,
                     struct error *err);

#endif
