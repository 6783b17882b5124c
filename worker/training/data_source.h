/* One data file of whatever format as a table. */
#ifndef RUNG_WORKER_TRAINING_DATA_SOURCE_H
#define RUNG_WORKER_TRAINING_DATA_SOURCE_H

#include "base/error.h"
#include "worker/training/data_kind.h"
#include "worker/training/data_table.h"

struct source {
    const char *path;  /* what is read */
    const char *label; /* what messages call it */
    enum data_format format;
    char delimiter; /* of delimited text; 0: find out */
    const struct cell_rules *rules;
};

/* *format: what it was. The columns of delimited text are still to be named (table_name_columns). ERROR_USAGE
 * and ERROR_RESOURCE say what and where, ERROR_MEMORY. */
int source_read(const struct source *source, struct table *table, enum data_format *format,
                struct error *err);
/* The same from bytes of a known format, which are changed. */
int source_parse(const struct source *source, enum data_format format, char *bytes, size_t size,
                 struct table *table, struct error *err);

#endif
