/* The character set of a text. */
#ifndef RUNG_WORKER_TRAINING_DATA_ENCODING_H
#define RUNG_WORKER_TRAINING_DATA_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct encoding {
    int64_t bad;      /* bytes that UTF-8 does not have there */
    int64_t bad_line; /* of the first of them, from 1 */
    bool wide;        /* some characters of several bytes are right, so it is damaged UTF-8, not Latin-1 */
};
struct encoding encoding_of(const char *bytes, size_t size);

/* Latin-1 (and what Windows-1252 has in place of its control characters) as UTF-8. free() the result; NULL
 * without memory. */
char *encoding_from_latin1(const char *bytes, size_t *size);

#endif
