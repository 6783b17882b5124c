/* A delimited text as columns. A cell is a number, or an entry of its column's dictionary of texts; what a
 * column is meant to be is decided later, over the whole of it. */
#ifndef RUNG_WORKER_TRAINING_DATA_TABLE_H
#define RUNG_WORKER_TRAINING_DATA_TABLE_H

#include "base/error.h"
#include "base/json.h"
#include "worker/training/data_cell.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Different texts of a column, numbered in the order met. */
struct dictionary {
    char *bytes; /* NUL-terminated texts, one behind the other */
    size_t size, capacity;
    size_t *start;       /* (count) */
    unsigned char *kind; /* (count) enum cell_kind, never CELL_NUMBER */
    int32_t count, entry_capacity;
    int32_t *slot; /* (slot_count) open addressing; -1 free */
    int32_t slot_count;
};
/* Number of a text, added when new; -1 when memory ran out. */
int32_t dictionary_add(struct dictionary *dictionary, const char *text, size_t size, enum cell_kind kind);
const char *dictionary_text(const struct dictionary *dictionary, int32_t entry);
/* The text as valid UTF-8. New reference, NULL without memory. */
json_t *dictionary_to_json(const struct dictionary *dictionary, int32_t entry);
void dictionary_release(struct dictionary *dictionary);

#define CELL_IS_NUMBER (-1)

struct column {
    char *name;     /* valid UTF-8 */
    double *number; /* (capacity) NaN where there is none */
    int32_t *text;  /* (capacity) dictionary entry or CELL_IS_NUMBER; NULL: every cell is a number or NaN */
    struct dictionary dictionary;
    unsigned written; /* enum decoration, or-ed: how its numbers were written */
    /* The file of labels that its cells are from, for the table's own rows and the appended ones; borrowed.
     * NULL: they are from the file of the other columns. */
    const char *file[2];
};

struct table {
    const char *label; /* the file's name in messages; borrowed */
    int64_t rows;      /* rows of the file, row 0 being the first */
    int64_t first;     /* 1: row 0 is a header; 0: it is data */
    int64_t capacity;
    int64_t column_count;
    int64_t attached; /* columns at the end that are no columns of the file: labels from elsewhere */
    struct column *columns;
    char **heading; /* (column_count) texts of row 0 */
    int64_t *line;  /* (capacity) line of the file where a row begins, from 1 */
    char delimiter; /* ',' ';' '\t' or ' ' for runs of blanks */
    json_t *notes;  /* array of strings: what was found out while it was read; NULL: nothing */
    /* Rows from `appended` on are those of a second file, of test rows; its name, borrowed. NULL: none. */
    const char *appended_label;
    int64_t appended;
};
/* Where the rows of the first file end. */
static inline int64_t table_own_rows(const struct table *table)
{
    return table->appended_label ? table->appended : table->rows;
}
/* The file that a row is from, in messages. */
static inline const char *table_file(const struct table *table, int64_t row)
{
    return row < table_own_rows(table) ? table->label : table->appended_label;
}

/* One more column without a name, its cells not set; -1 without memory. Only while there is no row yet. */
int table_add_column(struct table *table);
/* Twice the room for rows; -1 without memory. */
int table_grow_rows(struct table *table);
/* Reads a trimmed text as the cell of a row within the capacity; -1 without memory. */
int table_put_cell(struct table *table, int64_t c, int64_t row, const char *text, size_t size,
                   const struct cell_rules *rules);
void data_table_release(struct table *table);

/* Cuts `bytes` (changed in place) into a table; delimiter 0: find out. Ragged rows, an unclosed quote and an
 * empty file are ERROR_USAGE; comments before and behind the rows, and what else was seen to, are told in
 * table->notes. Column names and `first` are still to be set (table_name_columns). */
int table_parse(struct table *table, char *bytes, size_t size, const char *label, char delimiter,
                const struct cell_rules *rules, struct error *err);

enum header { HEADER_AUTO, HEADER_YES, HEADER_NO };
/* Decides whether row 0 is a header and names the columns; `target` (may be NULL) is a name asked for, which
 * decides an otherwise open case. What was decided is said in `notes` (array of strings, may be NULL). */
int table_name_columns(struct table *table, enum header header, const char *target, json_t *notes,
                       struct error *err);

/* Cell kind of one cell. Of an array's numbers, a NaN is missing, and an infinity as good as a text. */
static inline enum cell_kind column_kind(const struct column *column, int64_t row)
{
    if (!column->text || column->text[row] == CELL_IS_NUMBER)
        return isfinite(column->number[row]) ? CELL_NUMBER
               : isnan(column->number[row])  ? CELL_MISSING
                                             : CELL_TEXT;
    return (enum cell_kind)column->dictionary.kind[column->text[row]];
}

#endif
