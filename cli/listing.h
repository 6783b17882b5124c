/* Listings: arrays of JSON objects for people (aligned columns), for programs (JSON) and for spreadsheets
 * (CSV).
 *
 * A column shows the value at a path: "trial", or "parameters.learning_rate" (the first dot parts object and
 * key; keys may have dots of their own). For people numbers are rounded to 6 digits and stand right; JSON and
 * CSV have every digit. */
#ifndef RUNG_CLI_LISTING_H
#define RUNG_CLI_LISTING_H

#include "base/error.h"
#include "base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum listing_format { LISTING_TABLE, LISTING_JSON, LISTING_CSV };
/* "table", "json", "csv"; false: none of these. */
bool listing_format_parse(const char *name, enum listing_format *format);

enum listing_style {
    LISTING_VALUE,
    LISTING_BRIEF,   /* 4 digits */
    LISTING_SECONDS, /* 3 digits */
    LISTING_TIME,    /* UTC milliseconds, shown in local time */
};

struct listing_column {
    char *path, *heading;
    enum listing_style style;
};

struct listing {
    struct listing_column *columns;
    size_t count;
    bool failed; /* no memory for a column */
};

void listing_init(struct listing *listing);
void listing_release(struct listing *listing);
/* heading NULL: the path. */
void listing_add(struct listing *listing, const char *path, const char *heading, enum listing_style style);
/* The column object.key, headed `key`, or the whole path when `prefixed`. */
void listing_add_key(struct listing *listing, const char *object, const char *key, bool prefixed,
                     enum listing_style style);
/* One for every key that the object called `object` has in some row, in byte order. */
void listing_add_keys(struct listing *listing, const json_t *rows, const char *object, bool prefixed);

/* Aligned text, at most `width` wide (0: no limit): wide strings and headings are cut with an ellipsis (not
 * those of the first column), then columns are left out from the right. *left_out (may be NULL) is their
 * number. */
int listing_text(const struct listing *listing, const json_t *rows, int width, struct text *text,
                 size_t *left_out, struct error *err);
/* "(no room for seconds, worker: REMEDY)", wrapped; nothing for 0. */
void listing_append_left_out(struct text *text, const struct listing *listing, size_t left_out,
                             const char *remedy, int width);
/* A header line and RFC 4180 quoting; lines end in \n; null is empty. */
int listing_csv(const struct listing *listing, const json_t *rows, struct text *text, struct error *err);
/* Rows reduced to the columns, as flat objects. New reference; NULL without memory. */
json_t *listing_rows(const struct listing *listing, const json_t *rows);

/* The value at a path; borrowed, NULL: none. */
const json_t *listing_value(const json_t *row, const char *path);
/* A value for people; {"mean","sd"} is written 0.97 Â± 0.01; control characters become '?', so that no
 * worker's error can steer a terminal. */
void listing_append(struct text *text, const json_t *value, enum listing_style style);

/* Columns of a terminal that `size` bytes of UTF-8 take. */
int text_width(const char *bytes, size_t size);
/* Appends a paragraph and a newline, broken at blanks so that lines are at most `width` wide (0: no limit);
 * the second and later lines are `indent` blanks in. */
void text_wrap(struct text *text, const char *paragraph, int width, int indent);
/* Width of the terminal on `fd`; 0: it is none. */
int terminal_width(int fd);

#endif
