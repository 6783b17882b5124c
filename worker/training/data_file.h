/* The bytes of a data file: read whole, and unpacked when they are gzip (by their magic, whatever the name
 * says). */
#ifndef RUNG_WORKER_TRAINING_DATA_FILE_H
#define RUNG_WORKER_TRAINING_DATA_FILE_H

#include "base/error.h"

#include <stddef.h>

/* `label` is the name used in messages. free() *bytes; a NUL stands behind them. ERROR_RESOURCE when
 * unreadable, ERROR_USAGE when it is no file or its gzip is damaged, ERROR_MEMORY. */
int data_file_read(const char *path, const char *label, char **bytes, size_t *size, struct error *err);

#endif
