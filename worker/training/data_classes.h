/* The classes of a target: their order, their labels, and what is worth saying of them. */
#ifndef RUNG_WORKER_TRAINING_DATA_CLASSES_H
#define RUNG_WORKER_TRAINING_DATA_CLASSES_H

#include "worker/training/data_target.h"

/* Sets label, names and classes of a target from its column: by bytes when its cells are `texts`, else by
 * value. ERROR_USAGE for integers that double precision does not tell apart, ERROR_MEMORY; the target is to
 * be released then too. */
int classes_read(struct target *target, const struct table *table, bool texts, struct error *err);
/* Notes of classes that are rare, far from balanced, or differ in spelling only. ERROR_MEMORY. */
int classes_note(const struct target *target, const struct table *table, json_t *notes, struct error *err);

#endif
