/* Finding out how a text is cut: delimiter, quotes, where its rows begin; see data_format.h. */
#include "worker/training/data_format.h"

#include <string.h>

#define SAMPLE_LINES 100
#define SAMPLE_BYTES (1 << 18)

#define AGREEMENT_LEAST 0.6 /* of the sampled lines, before those that differ count as no rows */
#define SKIPPED_MOST 50     /* lines before the first row */

/* How a candidate cuts the sampled lines. */
struct cut {
    int64_t fields;   /* of most lines */
    double agreement; /* share of the lines that have so many */
    bool but_first;   /* all lines have, but the first, which has one less: R's names of columns */
};

/* Fields of the line that begins at *at, moving *at behind it; -1: a blank line. Quotes hide delimiters and
 * newlines. */
static int64_t count_fields(const char *bytes, size_t size, size_t *at, char delimiter, char quote)
{
    bool quoted = false, any = false, gap = true;
    int64_t fields = 1;
    size_t i = *at;
    for (; i < size && (quoted || (bytes[i] != '\n' && bytes[i] != '\r')); i++) {
        char c = bytes[i];
        bool blank = c == ' ' || c == '\t';
        if (c == quote)
            quoted = !quoted;
        if (delimiter == ' ' ? blank && !quoted : c == delimiter && !quoted) {
            /* A run of blanks is one delimiter; blanks before the first field are none. */
            fields += delimiter != ' ' || !gap;
            gap = true;
        } else if (!blank) {
            any = true;
            gap = false;
        }
    }
    if (delimiter == ' ' && gap && fields > 1)
        fields--; /* blanks at the end */
    *at = i + 1;
    return any ? fields : -1;
}

static bool is_comment(const char *bytes, size_t size)
{
    return size && (*bytes == '#' || *bytes == '%' || (size > 1 && bytes[0] == '/' && bytes[1] == '/'));
}

static struct cut cut_by(const char *bytes, size_t size, char delimiter, char quote)
{
    int64_t fields[SAMPLE_LINES];
    int count = 0;
    for (size_t at = 0; at < size && count < SAMPLE_LINES;) {
        size_t start = at;
        int64_t n = count_fields(bytes, size, &at, delimiter, quote);
        if (n > 0 && !is_comment(bytes + start, size - start))
            fields[count++] = n;
    }
    struct cut best = {1, 0, false};
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = 0; j < count; j++)
            same += fields[j] == fields[i];
        double agreement = (double)same / count;
        if (agreement > best.agreement || (agreement == best.agreement && fields[i] > best.fields))
            best = (struct cut){fields[i], agreement, false};
    }
    best.but_first =
        count > 2 && fields[0] == best.fields - 1 && best.agreement == (double)(count - 1) / count;
    return best;
}

char format_find_delimiter(const char *bytes, size_t size, char quote)
{
    /* In the order of trust: tabs and semicolons hardly stand in ordinary fields, commas do, blanks
     * everywhere. */
    static const char candidates[] = {'\t', ';', ',', ' '};
    if (size > SAMPLE_BYTES)
        size = SAMPLE_BYTES;
    char chosen = ',';
    struct cut best = {1, 0, false};
    for (size_t i = 0; i < sizeof candidates; i++) {
        struct cut cut = cut_by(bytes, size, candidates[i], quote);
        if (cut.fields < 2)
            continue;
        /* Decimal commas give almost twice the fields of the semicolons around them, never more than that;
         * and blanks must cut every line alike to be believed at all, since texts have them. */
        bool sure = candidates[i] != ' ' || cut.agreement == 1 || cut.but_first;
        bool many_more =
            candidates[i] == ',' && cut.fields > 2 * best.fields && cut.agreement >= best.agreement;
        if (sure && (cut.agreement > best.agreement + 0.05 || many_more)) {
            best = cut;
            chosen = candidates[i];
        }
    }
    return chosen;
}

size_t format_squeeze_blanks(char *bytes, size_t size, char quote)
{
    size_t out = 0;
    bool quoted = false, gap = false, begun = false;
    for (size_t i = 0; i < size; i++) {
        char c = bytes[i];
        if (!quoted && (c == ' ' || c == '\t')) {
            gap = true;
            continue;
        }
        bool ends = !quoted && (c == '\n' || c == '\r');
        if (gap && begun && !ends)
            bytes[out++] = ' ';
        gap = false;
        begun = !ends;
        if (c == quote)
            quoted = !quoted;
        bytes[out++] = c;
    }
    return out;
}

/* Single quotes are quotes when fields begin with them, and every field that does ends with one; else they
 * are apostrophes. */
char format_find_quote(const char *bytes, size_t size)
{
    static const char around[] = ",;\t\n\r";
    int64_t fields = 0;
    if (size > SAMPLE_BYTES)
        size = SAMPLE_BYTES;
    if (!memchr(bytes, '\'', size))
        return '"';
    for (size_t i = 0; i < size; i++) {
        bool begins = i == 0 || (bytes[i - 1] && strchr(around, bytes[i - 1])) ||
                      (bytes[i - 1] == ' ' && (i == 1 || strchr(around, bytes[i - 2])));
        if (begins && bytes[i] == '"')
            return '"';
        if (!begins || bytes[i] != '\'')
            continue;
        const char *end = memchr(bytes + i + 1, '\'', size - i - 1);
        if (!end)
            return size == SAMPLE_BYTES && fields ? '\'' : '"';
        i = (size_t)(end - bytes);
        if (i + 1 < size && bytes[i + 1] && bytes[i + 1] != ' ' && !strchr(around, bytes[i + 1]))
            return '"';
        fields++;
    }
    return fields ? '\'' : '"';
}

/* The line's words, none of them a number, as names are. */
static bool is_words(const char *line, size_t size)
{
    bool begins = true;
    for (size_t i = 0; i < size; i++) {
        if (begins && strchr("0123456789+-.", line[i]))
            return false;
        begins = strchr(",;\t \"'", line[i]) != NULL;
    }
    return size > 0;
}

struct start format_find_start(const char *bytes, size_t size, char delimiter, char quote)
{
    struct cut cut = cut_by(bytes, size < SAMPLE_BYTES ? size : SAMPLE_BYTES, delimiter, quote);
    struct start start = {0};
    size_t at = 0;
    bool sure = cut.fields > 1 && cut.agreement >= AGREEMENT_LEAST;
    while (sure && at < size && start.skipped < SKIPPED_MOST) {
        size_t line = at;
        int64_t fields = count_fields(bytes, size, &at, delimiter, quote);
        size_t end = at > size ? size : at;
        if (fields < 0) {
            start.bytes = end;
            continue;
        }
        bool comment = is_comment(bytes + line, size - line);
        if (bytes[line] == '#' && line + 2 < end && bytes[line + 1] == ' ') {
            /* NumPy writes the names of the columns behind such a mark. */
            size_t again = line + 2;
            if (count_fields(bytes, size, &again, delimiter, quote) == cut.fields) {
                start.bytes = line + 2;
                break;
            }
        }
        size_t next = at;
        int64_t below = at < size ? count_fields(bytes, size, &next, delimiter, quote) : 0;
        bool short_by_one = fields == cut.fields - 1 && cut.fields > 2 && below == cut.fields && !comment;
        if (short_by_one && bytes[line] != delimiter && is_words(bytes + line, end - line - 1)) {
            size_t last = next > size ? size : next;
            while (last > end && (bytes[last - 1] == '\n' || bytes[last - 1] == '\r'))
                last--;
            start.unnamed_first = bytes[last - 1] != delimiter; /* else the rows have a delimiter too many */
        }
        if (short_by_one || fields == cut.fields || (!comment && fields * 2 > cut.fields))
            break;
        start.skipped++;
        start.bytes = end;
    }
    return start;
}
