/* Small spaces, written as a test reads: add parameters in sorted order of their names. */
#ifndef TESTS_SPACE_FIXTURE_H
#define TESTS_SPACE_FIXTURE_H

#include "search/space.h"

/* Appends a parameter and returns it to be filled in. Valid until the next call. */
struct parameter *space_add(struct space *space, const char *name, enum distribution distribution);
struct parameter *space_add_range(struct space *space, const char *name, enum distribution distribution,
                                  double minimum, double maximum);
/* `values` is a JSON array's text. */
struct parameter *space_add_values(struct space *space, const char *name, const char *values);

/* Canonical text of `value`, which is released; valid until the eighth call after it. */
const char *text_of(json_t *value);

#endif
