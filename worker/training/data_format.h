/* How a delimited text is cut, found out from its first lines. */
#ifndef RUNG_WORKER_TRAINING_DATA_FORMAT_H
#define RUNG_WORKER_TRAINING_DATA_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* '"', or '\'' where fields stand in single quotes. */
char format_find_quote(const char *bytes, size_t size);
char format_find_delimiter(const char *bytes, size_t size, char quote);

/* Runs of blanks and tabs outside quotes become one blank; none at the ends of lines. Returns the new size.
 */
size_t format_squeeze_blanks(char *bytes, size_t size, char quote);

struct start {
    size_t bytes;       /* before the first row */
    int64_t skipped;    /* lines among them that are comments or titles, not rows */
    bool unnamed_first; /* the first row has names, for all columns but the first (as R writes them) */
};
/* Where the rows begin: behind comments and titles, and the mark of a comment before the columns' names. */
struct start format_find_start(const char *bytes, size_t size, char delimiter, char quote);

#endif
