/* Inside the spec reader: one parameter while it is read; what spec_distribution.c and spec_range.c share. */
#ifndef RUNG_COORDINATOR_SPEC_DRAFT_H
#define RUNG_COORDINATOR_SPEC_DRAFT_H

#include "coordinator/spec_reader.h"

struct draft {
    struct reader *reader;
    struct parameter *parameter;
    const struct setting *setting; /* NULL: values go unchecked */
    const struct node *map;
    const char *distribution; /* as written, or NULL */
    char key[160];            /* "parameters.NAME" */
    char inner[200];          /* "parameters.NAME.min", of the key last asked for */
};

/* "parameters.NAME.key", until the next call. */
const char *draft_key(struct draft *draft, const char *key);
/* Can the setting be drawn from a range at all, and from one of whole or of real numbers? */
bool draft_takes_range(struct draft *draft, bool integer);
/* min, max and perhaps step or log: uniform, log-uniform, or a lattice. */
void draft_range(struct draft *draft, bool log_scale);

#endif
