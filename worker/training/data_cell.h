/* One cell of a table: a number, a text, or a sign that there is no value. */
#ifndef RUNG_WORKER_TRAINING_DATA_CELL_H
#define RUNG_WORKER_TRAINING_DATA_CELL_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cell_kind {
    CELL_NUMBER,
    CELL_TEXT,
    CELL_CODE,    /* digits with leading zeros, such as 00501: a text that only looks like a number */
    CELL_MISSING, /* empty, ?, NA, N/A, nan, null, or a marker of data.missing */
    CELL_DOUBTFUL /* -, None, unknown: missing among numbers, but a category among texts */
};

/* One more text that stands for missing; a number also in every other spelling (-999 and -999.0). */
struct cell_marker {
    char *text;
    bool is_number;
    double number;
};

struct cell_rules {
    bool decimal_comma; /* 7,4 is 7.4 */
    bool point_groups;  /* with decimal_comma: 1.234.567 and 1.234,5 have points between thousands */
    struct cell_marker *markers;
    int marker_count;
};

/* `missing`: data.missing, a text, a number or an array of them; NULL or null: none. ERROR_USAGE,
 * ERROR_MEMORY.
 */
int cell_rules_init(struct cell_rules *rules, const json_t *missing, struct error *err);
void cell_rules_release(struct cell_rules *rules);

/* Makes NaN of an array's numbers that are markers, as float64 or as float32 has them; `inf` and its like are
 * infinities here. */
void numbers_mark_missing(double *number, int64_t count, const struct cell_rules *rules);

/* Cuts blanks (and no-break blanks) off both ends, and single quotes around the whole. */
void cell_trim(const char **text, size_t *size);
/* What a trimmed text is; *number is set for CELL_NUMBER, always finite. */
enum cell_kind cell_read(const char *text, size_t size, const struct cell_rules *rules, double *number);

/* Digits with a point before every three of the last ones: 1.234, 12.345.678, perhaps with a sign before and
 * a decimal comma behind. *alone: there is one point and no comma, so that it may be a decimal point too. */
bool cell_has_point_groups(const char *text, size_t size, bool *alone);

#endif
