/* JSON: Jansson reads and holds values; this module writes them (shortest numbers, canonical form) and
 * handles non-finite numbers, which travel as the strings "NaN", "Infinity", "-Infinity". */
#ifndef RUNG_BASE_JSON_H
#define RUNG_BASE_JSON_H

#include "base/error.h"
#include "base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Canonical text: keys sorted by bytes, no blanks, integers as integers, reals as number_format (1.0 keeps
 * its .0). This text is a point's identity. free() the result; NULL on no memory. */
char *json_canonical(const json_t *value);
/* The same, appended. */
void json_append(struct text *text, const json_t *value);
/* Pretty form for people (two-space indent, insertion order kept). */
char *json_pretty(const json_t *value);

/* Parses one JSON value; understands Python's bare NaN, Infinity and -Infinity (read as those strings).
 * Returns a new reference, or NULL with err (ERROR_PROTOCOL). Duplicate keys: the last wins. */
json_t *json_parse(const char *text, size_t size, struct error *err);

/* A number for any double: json_real, or the string of a non-finite one. New reference. */
json_t *json_number(double value);
/* Reads integer, real, or a non-finite string; false when it is none of these. */
bool json_number_get(const json_t *value, double *number);

/* Object lookups with a default. */
int64_t json_get_integer(const json_t *object, const char *key, int64_t fallback);
double json_get_number(const json_t *object, const char *key, double fallback);
const char *json_get_string(const json_t *object, const char *key, const char *fallback); /* borrowed */
bool json_get_boolean(const json_t *object, const char *key, bool fallback);

#endif
