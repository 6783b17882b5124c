/* Finding the delimiter of a text, and blanks as one; see data_table.h. */
#include "worker/training/data_table.h"

#include <string.h>

#define SAMPLE_LINES 100
#define SAMPLE_BYTES (1 << 18)

/* How a candidate cuts the sampled lines. */
struct cut {
    int64_t fields;   /* of most lines */
    double agreement; /* share of the lines that have so many */
};

/* Fields of the line that begins at *at, moving *at behind it; -1: a blank line. Quotes hide delimiters and
 * newlines. */
static int64_t count_fields(const char *bytes, size_t size, size_t *at, char delimiter)
{
    bool quoted = false, any = false, gap = true;
    int64_t fields = 1;
    size_t i = *at;
    for (; i < size && (quoted || (bytes[i] != '\n' && bytes[i] != '\r')); i++) {
        char c = bytes[i];
        bool blank = c == ' ' || c == '\t';
        if (c == '"')
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

static struct cut cut_by(const char *bytes, size_t size, char delimiter)
{
    int64_t fields[SAMPLE_LINES];
    int count = 0;
    for (size_t at = 0; at < size && count < SAMPLE_LINES;) {
        int64_t n = count_fields(bytes, size, &at, delimiter);
        if (n > 0)
            fields[count++] = n;
    }
    struct cut best = {1, 0};
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = 0; j < count; j++)
            same += fields[j] == fields[i];
        double agreement = (double)same / count;
        if (agreement > best.agreement || (agreement == best.agreement && fields[i] > best.fields))
            best = (struct cut){fields[i], agreement};
    }
    return best;
}

char table_find_delimiter(const char *bytes, size_t size)
{
    /* In the order of trust: tabs and semicolons hardly stand in ordinary fields, commas do, blanks
     * everywhere. */
    static const char candidates[] = {'\t', ';', ',', ' '};
    if (size > SAMPLE_BYTES)
        size = SAMPLE_BYTES;
    char chosen = ',';
    struct cut best = {1, 0};
    for (size_t i = 0; i < sizeof candidates; i++) {
        struct cut cut = cut_by(bytes, size, candidates[i]);
        if (cut.fields < 2)
            continue;
        /* Decimal commas give almost twice the fields of the semicolons around them, never more than that;
         * and blanks must cut every line alike to be believed at all, since texts have them. */
        bool sure = candidates[i] != ' ' || cut.agreement == 1;
        bool many_more =
            candidates[i] == ',' && cut.fields > 2 * best.fields && cut.agreement >= best.agreement;
        if (sure && (cut.agreement > best.agreement + 0.05 || many_more)) {
            best = cut;
            chosen = candidates[i];
        }
    }
    return chosen;
}

size_t table_squeeze_blanks(char *bytes, size_t size)
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
        if (c == '"')
            quoted = !quoted;
        bytes[out++] = c;
    }
    return out;
}
