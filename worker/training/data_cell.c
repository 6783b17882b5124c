/* Deciding what a cell is; see data_cell.h. */
#include "worker/training/data_cell.h"

#include "base/text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define NO_BREAK_BLANK "\xc2\xa0"
#define UNICODE_MINUS "\xe2\x88\x92"

static void trim_blanks(const char **text, size_t *size)
{
    const char *from = *text, *to = from + *size;
    for (;;) {
        if (from < to && (*from == ' ' || *from == '\t'))
            from++;
        else if (to - from >= 2 && !memcmp(from, NO_BREAK_BLANK, 2))
            from += 2;
        else
            break;
    }
    for (;;) {
        if (from < to && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        else if (to - from >= 2 && !memcmp(to - 2, NO_BREAK_BLANK, 2))
            to -= 2;
        else
            break;
    }
    *text = from;
    *size = (size_t)(to - from);
}

void cell_trim(const char **text, size_t *size)
{
    /* libcsv has cut plain blanks off already, unless they stood in quotes. */
    const char *last = *text + *size - 1;
    if (*size && (unsigned char)(**text - '!') < 94 && (unsigned char)(*last - '!') < 94 && **text != '\'')
        return;
    trim_blanks(text, size);
    last = *text + *size - 1;
    if (*size < 2 || **text != '\'' || *last != '\'' || memchr(*text + 1, '\'', *size - 2))
        return;
    ++*text;
    *size -= 2;
    trim_blanks(text, size);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Plain decimals of at most 15 digits: mantissa and power of ten are both exact, so one division rounds
 * correctly. Nearly every cell is one; the rest takes the general way. */
static bool read_plain(const char *text, size_t size, double *number)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *end = text + size;
    bool negative = size && *text == '-';
    if (size && (*text == '-' || *text == '+'))
        text++;
    int64_t mantissa = 0;
    int digits = 0, decimals = 0;
    if (end - text > 16)
        return false;
    for (; text < end && is_digit(*text); text++, digits++)
        mantissa = mantissa * 10 + (*text - '0');
    if (text < end && *text == '.')
        for (text++; text < end && is_digit(*text); text++, digits++, decimals++)
            mantissa = mantissa * 10 + (*text - '0');
    if (text != end || digits == 0 || digits > 15)
        return false;
    double value = (double)mantissa / power[decimals];
    *number = negative ? -value : value;
    return true;
}

bool cell_has_point_groups(const char *text, size_t size, bool *alone)
{
    const char *end = text + size;
    int points = 0, digits = 0;
    text += size && (*text == '-' || *text == '+');
    for (; text < end && is_digit(*text) && digits < 4; text++)
        digits++;
    if (digits < 1 || digits > 3 || text[-digits] == '0')
        return false;
    for (; text < end && *text == '.'; text += 4, points++)
        if (end - text < 4 || !is_digit(text[1]) || !is_digit(text[2]) || !is_digit(text[3]))
            return false;
    *alone = points == 1 && text == end;
    if (text < end && *text == ',')
        for (text++; text < end && is_digit(*text);)
            text++;
    return points > 0 && text == end;
}

static void remove_points(char *text)
{
    char *out = text;
    for (; *text; text++)
        if (*text != '.')
            *out++ = *text;
    *out = 0;
}

/* Exponents, many digits, a Unicode minus, a decimal comma. */
static bool read_general(const char *text, size_t size, const struct cell_rules *rules, double *number)
{
    char copy[400]; /* the longest exact double has some 770 digits, but nobody writes those */
    size_t minus = size >= 3 && !memcmp(text, UNICODE_MINUS, 3) ? 3 : 0;
    if (size == 0 || size - minus + 1 >= sizeof copy)
        return false;
    copy[0] = '-';
    size_t at = minus ? 1 : 0;
    memcpy(copy + at, text + minus, size - minus);
    copy[at + size - minus] = 0;
    bool alone;
    if (rules->point_groups && cell_has_point_groups(copy, strlen(copy), &alone))
        remove_points(copy);
    char *comma = rules->decimal_comma && !strchr(copy, '.') ? strchr(copy, ',') : NULL;
    if (comma)
        *comma = '.';
    return number_parse(copy, number) && isfinite(*number);
}

static bool is_code(const char *text, size_t size)
{
    if (size < 2 || text[0] != '0')
        return false;
    for (size_t i = 1; i < size; i++)
        if (!is_digit(text[i]))
            return false;
    return true;
}

static bool is_one_of(const char *text, size_t size, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == size && !strncasecmp(*words, text, size))
            return true;
    return false;
}

static bool is_marker(const char *text, size_t size, const struct cell_rules *rules)
{
    for (int i = 0; i < rules->marker_count; i++)
        if (strlen(rules->markers[i].text) == size && !memcmp(rules->markers[i].text, text, size))
            return true;
    return false;
}

static bool is_marked_number(double number, const struct cell_rules *rules)
{
    for (int i = 0; i < rules->marker_count; i++)
        if (rules->markers[i].is_number && rules->markers[i].number == number)
            return true;
    return false;
}

enum cell_kind cell_read(const char *text, size_t size, const struct cell_rules *rules, double *number)
{
    static const char *const missing[] = {"?", "na", "n/a", "nan", "null", "<na>", "#n/a", NULL};
    static const char *const doubtful[] = {"-", "none", "unknown", NULL};
    if (size == 0 || is_marker(text, size, rules))
        return CELL_MISSING;
    if (is_code(text, size))
        return CELL_CODE;
    /* Letters other than an exponent's cannot begin a number; this spares texts the general parser. */
    bool digits = is_digit(text[0]) || strchr("+-.,", text[0]) || text[0] == UNICODE_MINUS[0];
    bool plain = digits && !rules->point_groups && read_plain(text, size, number);
    if (plain || (digits && read_general(text, size, rules, number)))
        return is_marked_number(*number, rules) ? CELL_MISSING : CELL_NUMBER;
    if (size <= 7 && is_one_of(text, size, missing))
        return CELL_MISSING;
    return size <= 7 && is_one_of(text, size, doubtful) ? CELL_DOUBTFUL : CELL_TEXT;
}
