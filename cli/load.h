/* Loading a spec for a command: the trainer's table, the names of its metrics, and a look at the data before
 * anything is written. */
#ifndef RUNG_CLI_LOAD_H
#define RUNG_CLI_LOAD_H

#include "base/error.h"
#include "coordinator/spec.h"
#include "worker/training/data.h"

/* Reads the spec ("-": standard input) and checks it against its data. ERROR_USAGE for a fault of either;
 * where there are several, all of them are printed to stderr, a line each, and err counts them. `overrides`
 * (NULL-terminated) and `name` may be NULL. */
int cli_load_spec(const char *path, const char *const *overrides, const char *name, struct spec *spec,
                  struct error *err);
/* The same, keeping the data; the caller releases it. */
int cli_load_spec_and_data(const char *path, const char *const *overrides, const char *name,
                           struct spec *spec, struct dataset *dataset, struct error *err);
/* From the store; the data is not looked at. */
int cli_restore_spec(const json_t *normalised, const char *const *overrides, struct spec *spec,
                     struct error *err);

#endif
