/* Thousands, currencies and percent; see data_decoration.h. */
#include "worker/training/data_decoration.h"

#include "base/text.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURRENCIES (DECORATION_DOLLAR | DECORATION_POUND | DECORATION_EURO | DECORATION_YEN)
#define NUMBER_BYTES 100 /* longer ones are texts */

struct sign {
    const char *text;
    unsigned decoration; /* 0: a blank */
};

static const struct sign signs[] = {
    {"$", DECORATION_DOLLAR},
    {"\xc2\xa3", DECORATION_POUND},
    {"\xe2\x82\xac", DECORATION_EURO},
    {"\xc2\xa5", DECORATION_YEN},
    {"%", DECORATION_PERCENT},
    {" ", 0},
    {"\xc2\xa0" /* no-break blank */, 0},
    {"\xe2\x80\xaf" /* narrow no-break blank */, 0},
};

/* The sign at one end of a text, or NULL. */
static const struct sign *sign_at(const char *text, size_t size, bool end)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t length = strlen(signs[i].text);
        if (length <= size && !memcmp(end ? text + size - length : text, signs[i].text, length))
            return &signs[i];
    }
    return NULL;
}

/* Takes signs and blanks off both ends; false when there is a sign twice, or a percent sign before. */
static bool strip(const char **text, size_t *size, unsigned *found)
{
    for (int end = 0; end < 2; end++) {
        const struct sign *sign;
        while ((sign = sign_at(*text, *size, end)) != NULL) {
            if ((sign->decoration & *found) || (!end && sign->decoration == DECORATION_PERCENT))
                return false;
            *found |= sign->decoration;
            *text += end ? 0 : strlen(sign->text);
            *size -= strlen(sign->text);
        }
    }
    unsigned currency = *found & CURRENCIES;
    return (currency & (currency - 1)) == 0 && !(currency && (*found & DECORATION_PERCENT));
}

/* -1 or 1, moving behind a sign if there is one. */
static double read_minus(const char **text, size_t *size)
{
    static const char *const minus[] = {"-", "\xe2\x88\x92", "+"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(minus[i]);
        if (*size < length || memcmp(*text, minus[i], length) != 0)
            continue;
        *text += length;
        *size -= length;
        return i < 2 ? -1 : 1;
    }
    return 1;
}

/* The separator of thousands at `text`, as its size; 0: none. */
static size_t separator_at(const char *text, size_t size, bool comma)
{
    const struct sign *sign = sign_at(text, size, false);
    if (sign && sign->decoration == 0)
        return strlen(sign->text);
    return size && *text == (comma ? '.' : ',') ? 1 : 0;
}

/* Digits without what separates thousands, with a decimal point, into `plain`. False: not written so. */
static bool read_digits(const char *text, size_t size, bool comma, char plain[NUMBER_BYTES + 1],
                        unsigned *found)
{
    const char *end = text + size;
    size_t out = 0, group = 0, separators = 0;
    if (size > NUMBER_BYTES)
        return false;
    while (text < end && *text != (comma ? ',' : '.')) {
        size_t separator = separator_at(text, (size_t)(end - text), comma);
        if (separator) {
            if (group == 0 || group > 3 || (separators && group != 3) || plain[0] == '0')
                return false;
            separators++;
            group = 0;
            text += separator;
            continue;
        }
        if (*text < '0' || *text > '9')
            return false;
        plain[out++] = *text++;
        group++;
    }
    if (separators && group != 3)
        return false;
    if (text < end) {
        *found |= comma ? DECORATION_DECIMAL_COMMA : 0;
        plain[out++] = '.';
        for (text++; text < end && *text >= '0' && *text <= '9';)
            plain[out++] = *text++;
    }
    *found |= separators ? DECORATION_THOUSANDS : 0;
    plain[out] = 0;
    return text == end && out > 0;
}

unsigned decoration_read(const char *text, size_t size, bool comma, double *value)
{
    char plain[NUMBER_BYTES + 1];
    unsigned found = 0;
    double sign = read_minus(&text, &size);
    if (!strip(&text, &size, &found))
        return 0;
    if (sign == 1)
        sign = read_minus(&text, &size);
    if (!read_digits(text, size, comma, plain, &found) || !number_parse(plain, value))
        return 0;
    *value *= sign;
    return found;
}

/* What a column's cells are under one reading of the comma. */
struct reading {
    int64_t plain, decorated, percent, other;
    unsigned found;
};

static void count_cell(struct reading *reading, const struct column *column, int64_t row,
                       const unsigned *of_entry, bool comma)
{
    enum cell_kind kind = column_kind(column, row);
    if (kind == CELL_NUMBER) {
        /* A decimal point among decimal commas says that they are none. */
        bool point = comma && column->number[row] != floor(column->number[row]);
        ++*(point ? &reading->other : &reading->plain);
    } else if (kind == CELL_TEXT && of_entry[column->text[row]]) {
        reading->decorated++;
        reading->found |= of_entry[column->text[row]];
        reading->percent += (of_entry[column->text[row]] & DECORATION_PERCENT) != 0;
    } else {
        reading->other += kind == CELL_TEXT || kind == CELL_CODE;
    }
}

static bool is_numbers(const struct reading *reading)
{
    unsigned currency = reading->found & CURRENCIES;
    bool one_currency = (currency & (currency - 1)) == 0;
    /* Plain numbers among percent signs may be shares: 0.12 beside 12%. */
    bool one_unit = reading->percent == 0 || reading->percent == reading->plain + reading->decorated;
    return reading->decorated > 0 && one_currency && one_unit &&
           reading->other * 4 <= reading->plain + reading->decorated;
}

/* Bytes of "555 123 456": groups of three digits with plain blanks between; 0: another text. */
static size_t grouped_size(const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (i % 4 == 3 ? text[i] != ' ' : text[i] < '0' || text[i] > '9')
            return 0;
    return size % 4 == 3 ? size : 0;
}

/* Telephone numbers and the like: blanks between the digits and a plus before, or all of one length that
 * begins with a whole group. Numbers are of many lengths, or those with a group of one or two digits at their
 * head. */
static bool are_codes(const struct column *column, const struct reading *reading, const unsigned *of_entry)
{
    size_t size = 0;
    bool alike = reading->plain == 0 && reading->found == DECORATION_THOUSANDS;
    for (int32_t i = 0; i < column->dictionary.count; i++) {
        const char *text = dictionary_text(&column->dictionary, i);
        if (!(of_entry[i] & DECORATION_THOUSANDS))
            continue;
        if (*text == '+' && strchr(text, ' '))
            return true;
        size_t grouped = grouped_size(text);
        alike = alike && grouped && (size == 0 || grouped == size);
        size = grouped;
    }
    return alike;
}

static bool try_reading(struct table *table, struct column *column, bool comma, unsigned *of_entry,
                        double *value)
{
    struct reading reading = {0};
    bool any = false;
    for (int32_t i = 0; i < column->dictionary.count; i++) {
        const char *text = dictionary_text(&column->dictionary, i);
        of_entry[i] = decoration_read(text, strlen(text), comma, &value[i]);
        any = any || of_entry[i];
    }
    for (int64_t row = table->rows > 1 ? 1 : 0; row < table->rows && any; row++)
        count_cell(&reading, column, row, of_entry, comma);
    if (!is_numbers(&reading))
        return false;
    if (are_codes(column, &reading, of_entry)) {
        column->written = DECORATION_CODES;
        return true;
    }
    for (int64_t row = 0; row < table->rows; row++) {
        int32_t entry = column->text[row];
        if (column_kind(column, row) != CELL_TEXT || entry == CELL_IS_NUMBER || !of_entry[entry])
            continue;
        column->number[row] = value[entry];
        column->text[row] = CELL_IS_NUMBER;
    }
    column->written = reading.found;
    return true;
}

int table_read_decorations(struct table *table, struct error *err)
{
    for (int64_t c = 0; c < table->column_count; c++) {
        struct column *column = &table->columns[c];
        size_t entries = (size_t)column->dictionary.count;
        if (entries == 0)
            continue;
        unsigned *of_entry = calloc(entries, sizeof *of_entry);
        double *value = calloc(entries, sizeof *value);
        bool ready = of_entry && value;
        /* 1,234 could be either; the file's delimiter says which is likelier. */
        bool comma = table->delimiter == ';';
        if (ready && !try_reading(table, column, comma, of_entry, value))
            try_reading(table, column, !comma, of_entry, value);
        free(of_entry);
        free(value);
        if (!ready)
            return error_set(err, ERROR_MEMORY, "%s: no memory to read its numbers", table->label);
    }
    return 0;
}

void column_read_codes(const struct table *table, struct column *column)
{
    for (int64_t row = table->first; row < table->rows; row++) {
        if (column_kind(column, row) != CELL_TEXT || column->text[row] == CELL_IS_NUMBER)
            continue;
        const char *text = dictionary_text(&column->dictionary, column->text[row]);
        if (!decoration_read(text, strlen(text), false, &column->number[row]))
            continue;
        column->text[row] = CELL_IS_NUMBER;
    }
    column->written = DECORATION_THOUSANDS;
}

void table_note_decorations(const struct table *table, json_t *notes)
{
    static const struct {
        unsigned decorations;
        const char *done, *how;
    } kinds[] = {
        {DECORATION_THOUSANDS, "read", "of numbers with separators between thousands"},
        {DECORATION_DECIMAL_COMMA, "read", "of numbers with decimal commas"},
        {DECORATION_PERCENT, "read", "of numbers in percent (12% is 12)"},
        {CURRENCIES, "read", "of amounts with the sign of a currency"},
        {DECORATION_CODES, "took for texts",
         "of digits in groups of three, all alike as telephone numbers are (without blanks they are "
         "numbers)"},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct mentions mentions = {0};
        for (int64_t c = 0; c < table->column_count; c++)
            if (table->columns[c].written & kinds[k].decorations)
                mentions_add(&mentions, "%.30s", table->columns[c].name);
        mentions_note(&mentions, table->label, kinds[k].done, kinds[k].how, "", notes);
    }
}
