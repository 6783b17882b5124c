/* Within one transaction only the last state of a row matters: a trial that was assigned, reported and ended
 * in one turn is written once. */
#ifndef RUNG_COORDINATOR_SERVER_COMPACT_H
#define RUNG_COORDINATOR_SERVER_COMPACT_H

#include "coordinator/engine.h"

#include <stddef.h>

/* Memory that is used again by every turn. */
struct compactor {
    size_t *table; /* indices of records, plus 1; 0 = free */
    size_t size;   /* a power of two */
};

void compactor_release(struct compactor *compactor);
/* Drops the records of trials and attempts that a later one of the same turn replaces; the order of the rest
 * stays. Without memory nothing is dropped. */
void compactor_run(struct compactor *compactor, struct effects *effects);

#endif
