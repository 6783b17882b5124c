/* One cell of a table: a number, a text, or a sign that there is no value. */
#ifndef RUNG_WORKER_TRAINING_DATA_CELL_H
#define RUNG_WORKER_TRAINING_DATA_CELL_H

#include <stdbool.h>
#include <stddef.h>

enum cell_kind {
    CELL_NUMBER,
    CELL_TEXT,
    CELL_CODE,    /* digits with leading zeros, such as 00501: a text that only looks like a number */
    CELL_MISSING, /* empty, ?, NA, N/A, nan, null, or the marker of data.missing */
    CELL_DOUBTFUL /* -, None, unknown: missing among numbers, but a category among texts */
};

struct cell_rules {
    bool decimal_comma; /* 7,4 is 7.4 */
    const char *marker; /* one more text that stands for missing, or NULL */
    bool marker_is_number;
    double marker_number;
};

/* Cuts blanks (and no-break blanks) off both ends. */
void cell_trim(const char **text, size_t *size);
/* What a trimmed text is; *number is set for CELL_NUMBER, always finite. */
enum cell_kind cell_read(const char *text, size_t size, const struct cell_rules *rules, double *number);

#endif
