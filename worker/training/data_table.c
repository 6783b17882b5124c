/* Cutting delimited text into columns with libcsv; see data_table.h. */
#include "worker/training/data_table.h"

#include "base/text.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

#define CSV_FIELD_BEGUN                                                                                      \
    2                /* struct csv_parser's pstate within a field; csv.h has the member but not the names */
#define NAMED_ROWS 3 /* ragged rows listed one by one in a message; the rest is counted */

struct parse {
    struct table *table;
    const struct cell_rules *rules;
    int64_t line;      /* of the file, from 1 */
    bool after_return; /* the last byte that ended a line was a lone \r so far: a \n belongs to it */
    int64_t fields;    /* of the row so far */
    bool filled;       /* some field of the row is not empty */
    int64_t row_line;  /* where the row began */
    int64_t ragged;    /* rows with another number of fields */
    struct text ragged_text;
    bool out_of_memory;
};

void data_table_release(struct table *table)
{
    for (int64_t c = 0; c < table->column_count; c++) {
        free(table->columns[c].name);
        free(table->columns[c].number);
        free(table->columns[c].text);
        dictionary_release(&table->columns[c].dictionary);
        free(table->heading[c]);
    }
    free(table->columns);
    free(table->heading);
    free(table->line);
    memset(table, 0, sizeof *table);
}

/* One more column; only while the first row is read. */
static int add_column(struct table *table)
{
    int64_t count = table->column_count;
    if ((count & (count - 1)) == 0) { /* capacities are the powers of two */
        size_t wanted = count ? (size_t)count * 2 : 1;
        struct column *columns = realloc(table->columns, wanted * sizeof *columns);
        if (!columns)
            return -1;
        table->columns = columns;
        char **heading = realloc(table->heading, wanted * sizeof *heading);
        if (!heading)
            return -1;
        table->heading = heading;
    }
    memset(&table->columns[count], 0, sizeof *table->columns);
    table->heading[count] = NULL;
    table->column_count++;
    table->columns[count].number = malloc((size_t)table->capacity * sizeof(double));
    return table->columns[count].number ? 0 : -1;
}

static int grow_rows(struct table *table)
{
    int64_t capacity = table->capacity * 2;
    int64_t *line = realloc(table->line, (size_t)capacity * sizeof *line);
    if (!line)
        return -1;
    table->line = line;
    for (int64_t c = 0; c < table->column_count; c++) {
        struct column *column = &table->columns[c];
        double *number = realloc(column->number, (size_t)capacity * sizeof *number);
        if (!number)
            return -1;
        column->number = number;
        if (!column->text)
            continue;
        int32_t *text = realloc(column->text, (size_t)capacity * sizeof *text);
        if (!text)
            return -1;
        column->text = text;
    }
    table->capacity = capacity;
    return 0;
}

static int put_cell(struct table *table, int64_t c, int64_t row, const char *text, size_t size,
                    const struct cell_rules *rules)
{
    struct column *column = &table->columns[c];
    enum cell_kind kind = cell_read(text, size, rules, &column->number[row]);
    if (kind == CELL_NUMBER) {
        if (column->text)
            column->text[row] = CELL_IS_NUMBER;
        return 0;
    }
    column->number[row] = NAN;
    if (!column->text) {
        column->text = malloc((size_t)table->capacity * sizeof *column->text);
        if (!column->text)
            return -1;
        memset(column->text, 0xff, (size_t)table->capacity * sizeof *column->text); /* CELL_IS_NUMBER */
    }
    column->text[row] = dictionary_add(&column->dictionary, text, size, kind);
    return column->text[row] < 0 ? -1 : 0;
}

/* Newlines inside quotes, however they are written. */
static int64_t count_lines(const char *text, size_t size)
{
    int64_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n' || (text[i] == '\r' && (i + 1 == size || text[i + 1] != '\n'));
    return lines;
}

static void on_field(void *bytes, size_t size, void *user)
{
    struct parse *parse = user;
    struct table *table = parse->table;
    const char *text = bytes;
    if (parse->out_of_memory) /* the columns may lack room; libcsv goes on to the end of its piece */
        return;
    if (parse->fields == 0) {
        parse->row_line = parse->line;
        parse->filled = false;
    }
    parse->after_return = false;
    if (size > 1)
        parse->line += count_lines(text, size);
    cell_trim(&text, &size);
    parse->filled = parse->filled || size > 0;
    int64_t c = parse->fields++;
    bool failed = false;
    if (table->rows == 0) {
        failed = add_column(table) < 0 || !(table->heading[c] = strndup(size ? text : "", size));
        failed = failed || put_cell(table, c, 0, text, size, parse->rules) < 0;
    } else if (c < table->column_count) {
        failed = put_cell(table, c, table->rows, text, size, parse->rules) < 0;
    }
    parse->out_of_memory = parse->out_of_memory || failed;
}

/* Before any row, columns of a first row that turned out blank. */
static void forget_columns(struct table *table)
{
    for (int64_t c = 0; c < table->column_count; c++) {
        free(table->columns[c].number);
        free(table->columns[c].text);
        dictionary_release(&table->columns[c].dictionary);
        free(table->heading[c]);
    }
    table->column_count = 0;
}

static void end_row(struct parse *parse)
{
    struct table *table = parse->table;
    int64_t fields = parse->fields;
    parse->fields = 0;
    if (!parse->filled) { /* ",,,": spreadsheets write blank lines so */
        if (table->rows == 0)
            forget_columns(table);
        return;
    }
    if (fields != table->column_count) {
        if (parse->ragged++ < NAMED_ROWS)
            text_printf(&parse->ragged_text, "\n%s:%lld: found %lld field%s, expected %lld", table->label,
                        (long long)parse->row_line, (long long)fields, fields == 1 ? "" : "s",
                        (long long)table->column_count);
        return;
    }
    table->line[table->rows++] = parse->row_line;
    if (table->rows == table->capacity && grow_rows(table) < 0)
        parse->out_of_memory = true;
}

/* libcsv calls this for every byte that ends a line (CSV_REPALL_NL), so that lines can be counted; -1: end of
 * the file. */
static void on_line(int byte, void *user)
{
    struct parse *parse = user;
    if (parse->fields && !parse->out_of_memory)
        end_row(parse);
    bool second_half = byte == '\n' && parse->after_return;
    parse->after_return = byte == '\r';
    if (!second_half)
        parse->line++;
}

static int run_parser(struct parse *parse, const char *bytes, size_t size, struct error *err)
{
    struct csv_parser parser;
    if (csv_init(&parser, CSV_REPALL_NL) != 0)
        return error_set(err, ERROR_MEMORY, "%s: no memory to read it", parse->table->label);
    csv_set_delim(&parser, (unsigned char)parse->table->delimiter);
    csv_set_blk_size(&parser, 4096);
    /* In pieces, so that a failure is noticed before the whole of a large file has been walked through. */
    size_t at = 0, piece = 1 << 20;
    while (at < size && !parse->out_of_memory) {
        size_t count = size - at < piece ? size - at : piece;
        size_t done = csv_parse(&parser, bytes + at, count, on_field, on_line, parse);
        at += done;
        if (done != count)
            parse->out_of_memory = true;
    }
    /* libcsv would take the rest of the file for the field and say nothing, but in its strict mode, which
     * refuses `5" disk`. */
    bool open_quote = parser.quoted && parser.pstate == CSV_FIELD_BEGUN;
    int64_t open_line = parse->fields ? parse->row_line : parse->line;
    if (!parse->out_of_memory && csv_fini(&parser, on_field, on_line, parse) != 0)
        parse->out_of_memory = true;
    csv_free(&parser);
    if (parse->out_of_memory)
        return error_set(err, ERROR_MEMORY, "%s: no memory to hold the table", parse->table->label);
    if (open_quote)
        return error_set(err, ERROR_USAGE,
                         "%s:%lld: a quoted field is never closed; found the end of the file",
                         parse->table->label, (long long)open_line);
    return 0;
}

/* About as many rows as there are lines like the first one: memory that is never touched costs nothing,
 * growing does. */
static int64_t guess_rows(const char *bytes, size_t size)
{
    while (size && (*bytes == '\n' || *bytes == '\r')) {
        bytes++;
        size--;
    }
    const char *end = memchr(bytes, '\n', size);
    size_t line = end ? (size_t)(end - bytes) + 1 : size;
    size_t rows = size / (line / 2 + 1) + 16; /* names are longer than numbers */
    return rows < (1 << 20) ? (int64_t)rows : 1 << 20;
}

int table_parse(struct table *table, char *bytes, size_t size, const char *label, char delimiter,
                const struct cell_rules *rules, struct error *err)
{
    memset(table, 0, sizeof *table);
    table->label = label;
    table->capacity = guess_rows(bytes, size);
    table->line = malloc((size_t)table->capacity * sizeof *table->line);
    if (!table->line)
        return error_set(err, ERROR_MEMORY, "%s: no memory to hold the table", label);
    if (size >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) { /* byte-order mark */
        bytes += 3;
        size -= 3;
    }
    table->delimiter = delimiter ? delimiter : table_find_delimiter(bytes, size);
    if (table->delimiter == ' ')
        size = table_squeeze_blanks(bytes, size);
    struct cell_rules own = *rules;
    own.decimal_comma = table->delimiter == ';';
    struct parse parse = {.table = table, .rules = &own, .line = 1};
    text_init(&parse.ragged_text);
    int failed = run_parser(&parse, bytes, size, err);
    if (!failed && parse.ragged)
        failed = error_set(err, ERROR_USAGE,
                           "%s: %lld row%s with another number of fields than the first row%s%s\n"
                           "Remove comments and footers, or quote the fields that hold the delimiter",
                           label, (long long)parse.ragged, parse.ragged == 1 ? "" : "s",
                           parse.ragged_text.data ? parse.ragged_text.data : "",
                           parse.ragged > NAMED_ROWS ? "\n..." : "");
    if (!failed && table->rows == 0)
        failed = error_set(err, ERROR_USAGE, "%s: the file is empty; expected rows of delimited text", label);
    text_release(&parse.ragged_text);
    if (failed)
        data_table_release(table);
    return failed;
}
