/* The layout of a listing for people: cells as text, then widths, then lines. */
#include "cli/listing.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2              /* blanks between columns */
#define NARROWEST 10       /* strings and headings are not cut below this */
#define FIRST_NARROWEST 24 /* the first column says which row it is */
#define ALWAYS_KEPT 2      /* columns that are never left out */

struct layout {
    char **cells;        /* rows + 1 (the headings) times columns */
    int *widths, *least; /* of each column: as laid out, and what it can be narrowed to */
    bool *numeric;       /* columns mostly of numbers (or of nothing): right-aligned, the values never cut */
    size_t columns, rows;
};

static void layout_release(struct layout *layout)
{
    for (size_t i = 0; layout->cells != NULL && i < layout->columns * (layout->rows + 1); i++) {
        free(layout->cells[i]);
    }
    free(layout->cells);
    free(layout->widths);
    free(layout->least);
    free(layout->numeric);
}

/* The non-finite numbers are strings in JSON. */
static bool is_number(const json_t *value)
{
    double number;
    return json_number_get(value, &number);
}

static bool fill_column(struct layout *layout, const struct listing_column *column, size_t index,
                        const json_t *rows)
{
    size_t numbers = 0, others = 0; /* values; a word may stand among numbers */
    int values_width = 0;
    for (size_t row = 0; row <= layout->rows; row++) {
        struct text cell;
        text_init(&cell);
        if (row == 0) {
            json_t *heading = json_string(column->heading);
            listing_append(&cell, heading, LISTING_VALUE);
            json_decref(heading);
        } else {
            const json_t *value = listing_value(json_array_get(rows, row - 1), column->path);
            bool empty = value == NULL || json_is_null(value);
            numbers += !empty && is_number(value);
            others += !empty && !is_number(value);
            listing_append(&cell, value, column->style);
        }
        char *text = text_steal(&cell);
        if (text == NULL) {
            return false;
        }
        layout->cells[row * layout->columns + index] = text;
        int width = text_width(text, strlen(text));
        layout->widths[index] = width > layout->widths[index] ? width : layout->widths[index];
        values_width = row > 0 && width > values_width ? width : values_width;
    }
    int widest = layout->widths[index], narrow = widest < NARROWEST ? widest : NARROWEST;
    bool numeric = others == 0 || numbers > others;
    layout->numeric[index] = numeric;
    layout->least[index] = index == 0 ? (widest < FIRST_NARROWEST ? widest : FIRST_NARROWEST)
                           : numeric && values_width > narrow ? values_width
                                                              : narrow;
    return true;
}

static bool layout_init(struct layout *layout, const struct listing *listing, const json_t *rows)
{
    *layout = (struct layout){.columns = listing->count, .rows = json_array_size(rows)};
    layout->cells = calloc(layout->columns * (layout->rows + 1) + 1, sizeof *layout->cells);
    layout->widths = calloc(layout->columns + 1, sizeof *layout->widths);
    layout->least = calloc(layout->columns + 1, sizeof *layout->least);
    layout->numeric = calloc(layout->columns + 1, sizeof *layout->numeric);
    if (listing->failed || layout->cells == NULL || layout->widths == NULL || layout->least == NULL ||
        layout->numeric == NULL) {
        return false;
    }
    for (size_t i = 0; i < layout->columns; i++) {
        if (!fill_column(layout, &listing->columns[i], i, rows)) {
            return false;
        }
    }
    return true;
}

static int total_width(const struct layout *layout, size_t columns)
{
    int total = 0;
    for (size_t i = 0; i < columns; i++) {
        total += layout->widths[i] + (i > 0 ? GAP : 0);
    }
    return total;
}

/* Narrows strings and headings, the widest first, and then leaves out columns; returns how many columns
 * remain. */
static size_t fit(struct layout *layout, int width)
{
    size_t columns = layout->columns;
    while (width > 0 && total_width(layout, columns) > width) {
        size_t widest = columns;
        for (size_t i = 0; i < columns; i++) {
            if (layout->widths[i] > layout->least[i] &&
                (widest == columns || layout->widths[i] > layout->widths[widest])) {
                widest = i;
            }
        }
        if (widest < columns) {
            layout->widths[widest]--;
        } else if (columns > ALWAYS_KEPT) {
            columns--;
        } else {
            break;
        }
    }
    return columns;
}

static void append_blanks(struct text *text, int count)
{
    for (int i = 0; i < count; i++) {
        text_append(text, " ");
    }
}

/* As many whole characters as fit, and an ellipsis when it is not all. */
static void append_cut(struct text *text, const char *cell, int width, int *used)
{
    size_t size = strlen(cell);
    *used = text_width(cell, size);
    if (*used <= width) {
        text_append(text, cell);
        return;
    }
    do {
        size--;
        while (size > 0 && ((unsigned char)cell[size] & 0xC0) == 0x80) {
            size--;
        }
        *used = text_width(cell, size);
    } while (size > 0 && *used > width - 1);
    text_append_bytes(text, cell, size);
    text_append(text, "\xE2\x80\xA6");
    (*used)++;
}

/* The end of a heading says more than its start: validation_accuracy, validation_loss. */
static void append_end(struct text *text, const char *cell, int width, int *used)
{
    while ((*used = text_width(cell, strlen(cell))) > width - 1 && *cell != '\0') {
        do {
            cell++;
        } while (((unsigned char)*cell & 0xC0) == 0x80);
    }
    text_append(text, "\xE2\x80\xA6");
    text_append(text, cell);
    (*used)++;
}

static void append_line(struct text *text, const struct layout *layout, size_t row, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        const char *cell = layout->cells[row * layout->columns + i];
        int used;
        append_blanks(text, i > 0 ? GAP : 0);
        struct text cut;
        text_init(&cut);
        if (row == 0 && layout->numeric[i] && text_width(cell, strlen(cell)) > layout->widths[i]) {
            append_end(&cut, cell, layout->widths[i], &used);
        } else {
            append_cut(&cut, cell, layout->widths[i], &used);
        }
        append_blanks(text, layout->numeric[i] ? layout->widths[i] - used : 0);
        text_append(text, cut.data != NULL ? cut.data : "");
        append_blanks(text, !layout->numeric[i] && i + 1 < columns ? layout->widths[i] - used : 0);
        text->failed = text->failed || cut.failed;
        text_release(&cut);
    }
    text_append(text, "\n");
}

int listing_text(const struct listing *listing, const json_t *rows, int width, struct text *text,
                 size_t *left_out, struct error *err)
{
    struct layout layout;
    bool ready = layout_init(&layout, listing, rows);
    size_t columns = ready ? fit(&layout, width) : 0;
    for (size_t row = 0; ready && row <= layout.rows; row++) {
        append_line(text, &layout, row, columns);
    }
    if (left_out != NULL) {
        *left_out = layout.columns - columns;
    }
    layout_release(&layout);
    return ready && !text->failed ? 0 : error_set(err, ERROR_MEMORY, "no memory for the table");
}

void listing_append_left_out(struct text *text, const struct listing *listing, size_t left_out,
                             const char *remedy, int width)
{
    if (left_out == 0) {
        return;
    }
    struct text line;
    size_t first = listing->count - left_out;
    text_init(&line);
    text_append(&line, "(no room for ");
    for (size_t i = first; i < listing->count; i++) {
        text_printf(&line, "%s%s", i > first ? ", " : "", listing->columns[i].heading);
    }
    text_printf(&line, ": %s)", remedy);
    text_wrap(text, line.data != NULL ? line.data : "", width, 1);
    text->failed = text->failed || line.failed;
    text_release(&line);
}
