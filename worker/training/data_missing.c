/* The texts that a spec says are missing values; see data_cell.h. */
#include "worker/training/data_cell.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "inf", "-Infinity": of use in arrays, where such cells are no texts. */
static bool read_infinity(const char *text, double *number)
{
    double sign = *text == '-' ? -1 : 1;
    text += *text == '-' || *text == '+';
    if (strcasecmp(text, "inf") != 0 && strcasecmp(text, "infinity") != 0)
        return false;
    *number = sign * INFINITY;
    return true;
}

static int add_marker(struct cell_rules *rules, const json_t *value, struct error *err)
{
    struct cell_marker *marker = &rules->markers[rules->marker_count];
    char text[NUMBER_SIZE];
    if (json_is_string(value)) {
        marker->text = strdup(json_string_value(value));
        marker->is_number = number_parse(json_string_value(value), &marker->number) ||
                            read_infinity(json_string_value(value), &marker->number);
    } else if (json_is_number(value)) {
        marker->number = json_number_value(value);
        marker->is_number = true;
        marker->text = strdup(number_format(marker->number, text));
    } else {
        char *found = json_canonical(value);
        error_set(err, ERROR_USAGE,
                  "data.missing: found %.200s, accepted a text, a number, or a list of them",
                  found ? found : "?");
        free(found);
        return -1;
    }
    if (!marker->text)
        return error_set(err, ERROR_MEMORY, "data.missing: no memory");
    rules->marker_count++;
    return 0;
}

int cell_rules_init(struct cell_rules *rules, const json_t *missing, struct error *err)
{
    memset(rules, 0, sizeof *rules);
    if (!missing || json_is_null(missing))
        return 0;
    size_t count = json_is_array(missing) ? json_array_size(missing) : 1;
    rules->markers = calloc(count + 1, sizeof *rules->markers);
    int failed = rules->markers ? 0 : error_set(err, ERROR_MEMORY, "data.missing: no memory");
    for (size_t i = 0; i < count && !failed; i++)
        failed = add_marker(rules, json_is_array(missing) ? json_array_get(missing, i) : missing, err);
    if (failed)
        cell_rules_release(rules);
    return failed;
}

void numbers_mark_missing(double *number, int64_t count, const struct cell_rules *rules)
{
    for (int m = 0; m < rules->marker_count; m++) {
        if (!rules->markers[m].is_number)
            continue;
        double marker = rules->markers[m].number, rounded = (float)marker;
        for (int64_t i = 0; i < count; i++)
            if (number[i] == marker || number[i] == rounded)
                number[i] = NAN;
    }
}

void cell_rules_release(struct cell_rules *rules)
{
    for (int i = 0; i < rules->marker_count; i++)
        free(rules->markers[i].text);
    free(rules->markers);
    memset(rules, 0, sizeof *rules);
}
