/* Cutting delimited text into columns with libcsv; see data_table.h. */
#include "worker/training/data_encoding.h"
#include "worker/training/data_format.h"
#include "worker/training/data_messages.h"
#include "worker/training/data_table.h"

#include "base/text.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

#define CSV_FIELD_BEGUN                                                                                      \
    2                  /* struct csv_parser's pstate within a field; csv.h has the member but not the names */
#define NAMED_ROWS 3   /* ragged rows listed one by one in a message; the rest is counted */
#define SHOWN_BYTES 40 /* of a line in a note */

/* Rows that are none, gathered for one message or note. */
struct oddities {
    struct text lines;
    int64_t count, first_line;
    char first[SHOWN_BYTES + 1]; /* how the first begins */
};

struct parse {
    struct table *table;
    const struct cell_rules *rules;
    char quote;
    int64_t line;      /* of the file, from 1 */
    bool after_return; /* the last byte that ended a line was a lone \r so far: a \n belongs to it */
    int64_t fields;    /* of the row so far */
    int64_t filled;    /* fields of the row that are not empty */
    int64_t used;      /* fields of the row to the last that is not empty */
    int64_t row_line;  /* where the row began */
    char opening[SHOWN_BYTES + 1]; /* the row's first field */
    bool opens_with_text;
    struct oddities ragged, comments, footers;
    int64_t trailing; /* rows with empty fields beyond the columns */
    /* Of a table with decimal commas: 7,4; 1.234; 1.234.567 or 1.234,5; and a point that is none of these. */
    bool commas, groups, sure_groups, points;
    bool out_of_memory;
};

/* Newlines inside quotes, however they are written. */
static int64_t count_lines(const char *text, size_t size)
{
    int64_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n' || (text[i] == '\r' && (i + 1 == size || text[i + 1] != '\n'));
    return lines;
}

/* How numbers with points and commas are written, over the whole table. */
static void watch_points(struct parse *parse, const char *text, size_t size, enum cell_kind kind)
{
    bool alone = false;
    bool groups = cell_has_point_groups(text, size, &alone);
    parse->groups = parse->groups || groups;
    parse->sure_groups = parse->sure_groups || (groups && !alone);
    if (kind != CELL_NUMBER || groups)
        return;
    parse->points = parse->points || memchr(text, '.', size);
    parse->commas = parse->commas || memchr(text, ',', size);
}

static void open_row(struct parse *parse, const char *text, size_t size)
{
    parse->row_line = parse->line;
    parse->filled = parse->used = 0;
    size_t shown = size < SHOWN_BYTES ? size : SHOWN_BYTES;
    memcpy(parse->opening, shown ? text : "", shown);
    parse->opening[shown] = 0;
}

static void on_field(void *bytes, size_t size, void *user)
{
    struct parse *parse = user;
    struct table *table = parse->table;
    const char *text = size ? bytes : "";
    if (parse->out_of_memory) /* the columns may lack room; libcsv goes on to the end of its piece */
        return;
    int64_t line = parse->line;
    parse->after_return = false;
    if (size > 1)
        parse->line += count_lines(text, size);
    cell_trim(&text, &size);
    if (parse->fields == 0) {
        open_row(parse, text, size);
        parse->row_line = line;
    }
    int64_t c = parse->fields++;
    if (size) {
        parse->filled++;
        parse->used = parse->fields;
    }
    bool failed = false;
    if (table->rows == 0)
        failed = table_add_column(table) < 0 || !(table->heading[c] = strndup(text, size));
    if (!failed && c < table->column_count)
        failed = table_put_cell(table, c, table->rows, text, size, parse->rules) < 0;
    if (!failed && parse->rules->decimal_comma && c < table->column_count)
        watch_points(parse, text, size, column_kind(&table->columns[c], table->rows));
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

static void add_oddity(struct oddities *oddities, const struct parse *parse)
{
    const struct table *table = parse->table;
    if (oddities->count == 0) {
        oddities->first_line = parse->row_line;
        memcpy(oddities->first, parse->opening, sizeof oddities->first);
    }
    if (oddities->count++ < NAMED_ROWS)
        text_printf(&oddities->lines, "\n%s:%lld: found %lld field%s, expected %lld", table->label,
                    (long long)parse->row_line, (long long)parse->fields, parse->fields == 1 ? "" : "s",
                    (long long)table->column_count);
}

/* What looked like the end of the rows was none. */
static void footers_are_ragged(struct parse *parse)
{
    struct oddities *ragged = &parse->ragged, *footers = &parse->footers;
    if (ragged->count < NAMED_ROWS)
        text_append(&ragged->lines, footers->lines.data ? footers->lines.data : "");
    ragged->count += footers->count;
    text_release(&footers->lines);
    footers->count = 0;
}

/* A row with another number of fields. */
static void end_odd_row(struct parse *parse)
{
    const char *opening = parse->opening;
    bool comment = *opening == '#' || *opening == '%' || !strncmp(opening, "//", 2);
    bool footer = parse->filled == 1 && parse->fields * 2 <= parse->table->column_count && *opening &&
                  !strchr("0123456789+-.,", *opening);
    if (!comment && !footer && parse->footers.count)
        footers_are_ragged(parse);
    add_oddity(comment ? &parse->comments : footer ? &parse->footers : &parse->ragged, parse);
}

static void end_row(struct parse *parse)
{
    struct table *table = parse->table;
    if (!parse->filled) { /* ",,,": spreadsheets write blank lines so */
        if (table->rows == 0)
            forget_columns(table);
    } else if (parse->fields < table->column_count || parse->used > table->column_count) {
        end_odd_row(parse);
    } else {
        parse->trailing += parse->fields > table->column_count;
        if (parse->footers.count)
            footers_are_ragged(parse);
        table->line[table->rows++] = parse->row_line;
        if (table->rows == table->capacity && table_grow_rows(table) < 0)
            parse->out_of_memory = true;
    }
    parse->fields = 0;
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
    csv_set_quote(&parser, (unsigned char)parse->quote);
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

/* Comments, titles, footers and the like, in table->notes. */
static void tell(const struct parse *parse, const struct start *start)
{
    struct table *table = parse->table;
    const char *label = table->label;
    if (start->skipped)
        note_add(table->notes, "%s: left out %lld line%s before the first row: no row has so few fields",
                 label, (long long)start->skipped, start->skipped == 1 ? "" : "s");
    if (parse->comments.count)
        note_add(table->notes, "%s: left out %lld line%s that %s a comment, the first at line %lld (\"%s\")",
                 label, (long long)parse->comments.count, parse->comments.count == 1 ? "" : "s",
                 parse->comments.count == 1 ? "is" : "are each", (long long)parse->comments.first_line,
                 parse->comments.first);
    if (parse->footers.count)
        note_add(table->notes, "%s: left out %lld line%s behind the last row, from line %lld (\"%s\")", label,
                 (long long)parse->footers.count, parse->footers.count == 1 ? "" : "s",
                 (long long)parse->footers.first_line, parse->footers.first);
    if (parse->trailing)
        note_add(table->notes, "%s: left out empty fields behind the last column (%lld rows have them)",
                 label, (long long)parse->trailing);
    if (start->unnamed_first)
        note_add(table->notes, "%s: the first row has one name too few, so the first column has none", label);
    if (parse->rules->point_groups)
        note_add(table->notes, "%s: commas are decimal, and points stand between thousands", label);
}

static int refuse_rows(const struct parse *parse, struct error *err)
{
    const char *label = parse->table->label;
    const struct oddities *ragged = &parse->ragged;
    if (ragged->count)
        return error_set(err, ERROR_USAGE,
                         "%s: %lld row%s with another number of fields than the first row%s%s\n"
                         "Remove comments and footers, or quote the fields that hold the delimiter",
                         label, (long long)ragged->count, ragged->count == 1 ? "" : "s",
                         ragged->lines.data ? ragged->lines.data : "",
                         ragged->count > NAMED_ROWS ? "\n..." : "");
    if (parse->table->rows == 0)
        return error_set(err, ERROR_USAGE, "%s: the file is empty; expected rows of delimited text", label);
    return 0;
}

static int init_table(struct table *table, const char *label, char delimiter, int64_t capacity,
                      struct error *err)
{
    memset(table, 0, sizeof *table);
    table->label = label;
    table->delimiter = delimiter;
    table->capacity = capacity;
    table->line = malloc((size_t)capacity * sizeof *table->line);
    table->notes = json_array();
    if (table->line && table->notes)
        return 0;
    data_table_release(table);
    return error_set(err, ERROR_MEMORY, "%s: no memory to hold the table", label);
}

/* One pass over the rows. *grouped: what was taken for decimal points are thousands' after all. */
static int parse_rows(struct table *table, char *bytes, size_t size, const struct start *start, char quote,
                      const struct cell_rules *rules, bool *grouped, struct error *err)
{
    struct parse parse = {.table = table, .rules = rules, .quote = quote};
    parse.line = 1 + count_lines(bytes, start->bytes);
    if (start->unnamed_first)
        on_field(NULL, 0, &parse);
    int failed = run_parser(&parse, bytes + start->bytes, size - start->bytes, err);
    *grouped = !failed && !rules->point_groups && !parse.points &&
               (parse.sure_groups || (parse.groups && parse.commas));
    if (!failed && !*grouped)
        failed = refuse_rows(&parse, err);
    if (!failed)
        tell(&parse, start);
    text_release(&parse.ragged.lines);
    text_release(&parse.comments.lines);
    text_release(&parse.footers.lines);
    return failed;
}

static int parse_text(struct table *table, char *bytes, size_t size, const char *label, char delimiter,
                      const struct cell_rules *rules, struct error *err)
{
    char quote = format_find_quote(bytes, size);
    if (!delimiter)
        delimiter = format_find_delimiter(bytes, size, quote);
    if (delimiter == ' ')
        size = format_squeeze_blanks(bytes, size, quote);
    struct start start = format_find_start(bytes, size, delimiter, quote);
    int64_t capacity = guess_rows(bytes + start.bytes, size - start.bytes);
    struct cell_rules own = *rules;
    own.decimal_comma = delimiter == ';';
    bool grouped = true;
    int failed = 0;
    for (int pass = 0; pass < 2 && grouped && !failed; pass++) {
        own.point_groups = pass > 0;
        if (pass > 0)
            data_table_release(table);
        if (init_table(table, label, delimiter, capacity, err) < 0)
            return -1;
        failed = parse_rows(table, bytes, size, &start, quote, &own, &grouped, err);
    }
    if (failed)
        data_table_release(table);
    return failed;
}

/* Spreadsheets may say in a first line of its own which delimiter they used. */
static size_t read_separator(const char *bytes, size_t size, char *delimiter)
{
    if (size < 6 || strncmp(bytes, "sep=", 4) || (bytes[5] != '\n' && bytes[5] != '\r'))
        return 0;
    if (!*delimiter && strchr(",;\t", bytes[4]))
        *delimiter = bytes[4];
    return bytes[5] == '\r' && bytes[6] == '\n' ? 7 : 6;
}

int table_parse(struct table *table, char *bytes, size_t size, const char *label, char delimiter,
                const struct cell_rules *rules, struct error *err)
{
    if (size >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) { /* byte-order mark */
        bytes += 3;
        size -= 3;
    }
    struct encoding encoding = encoding_of(bytes, size);
    char *recoded = encoding.bad && !encoding.wide ? encoding_from_latin1(bytes, &size) : NULL;
    if (encoding.bad && !encoding.wide && !recoded)
        return error_set(err, ERROR_MEMORY, "%s: no memory to recode it", label);
    if (recoded)
        bytes = recoded;
    size_t separator = read_separator(bytes, size, &delimiter);
    memset(bytes, '\n', separator ? 1 : 0);
    memset(bytes + 1, ' ', separator > 2 ? separator - 2 : 0);
    int failed = parse_text(table, bytes, size, label, delimiter, rules, err);
    free(recoded);
    if (!failed && encoding.bad)
        note_add(table->notes, "%s:%lld: not UTF-8; %s", label, (long long)encoding.bad_line,
                 encoding.wide ? "each byte that is no character became U+FFFD" : "read as Latin-1");
    return failed;
}
