/* What a data file is, by its content, and what it must not be. */
#ifndef RUNG_WORKER_TRAINING_DATA_KIND_H
#define RUNG_WORKER_TRAINING_DATA_KIND_H

#include "base/error.h"

#include <stddef.h>

/* In the order of the choices of data.format. */
enum data_format { FORMAT_AUTO, FORMAT_CSV, FORMAT_IDX, FORMAT_NPY, FORMAT_LIBSVM };

/* The format of unpacked bytes, with a NUL behind them; `wanted` unless that is FORMAT_AUTO. ERROR_USAGE with
 * a remedy for what only stands in the data's place (a pointer, a web page, an archive) or is of a format
 * that is not read. */
int data_recognise(const char *bytes, size_t size, const char *label, enum data_format wanted,
                   enum data_format *format, struct error *err);

#endif
