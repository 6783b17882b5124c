/* The grammar of --where and --sort: text in, bound SQL out. Pure: no database, no file.
 *
 *   condition  = conjunction { "or" conjunction }
 *   conjunction = term { "and" term }
 *   term       = "not" term | "(" condition ")" | comparison
 *   comparison = name ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") value | name ["not"] "in" "(" value {","
 * value} ")" name       = word of letters, digits, "_", ".", "-" | "quoted with blanks" value      = number |
 * 'string' or "string" | word (a string) | true | false | null | [a, list, as JSON]
 *
 * A name is a column, a parameter, a metric or a derived value, looked up in that order; "parameters.NAME",
 * "metrics.NAME" and "derived.NAME" say which. Logic is two-valued: what is missing is null, unequal to every
 * other value and neither less nor greater. Infinite metrics compare as numbers; NaN is no number.
 *
 * The SQL refers to the columns of the store's leaderboard (store_sql.h); numbers of the user are compared
 * through the same reader as those in JSON columns, so that equal text is equal. Values are bound, never
 * spliced in. */
#ifndef RUNG_COORDINATOR_WHERE_H
#define RUNG_COORDINATOR_WHERE_H

#include "base/error.h"

#include <stddef.h>

/* The names a sweep has, NULL-terminated each; borrowed. */
struct where_names {
    const char *const *parameters, *const *metrics, *const *derived;
    /* Of each parameter and derived value the types of JSON it has, joined by commas ("integer,real"), by
     * which a value that cannot match is refused; NULL: not known. */
    const char *const *parameter_types, *const *derived_types;
};

struct where_value {
    enum { WHERE_REAL, WHERE_TEXT } kind;
    double real;
    char *text;
};

struct where {
    char *sql;
    struct where_value *values; /* value i is bound as ?(first + i) */
    size_t value_count;
};

/* 0, or -1 with err (ERROR_USAGE: what is wrong at which character, and the nearest name). `first`: number of
 * the first bound value in the SQL. */
int where_compile(struct where *where, const char *text, const struct where_names *names, int first,
                  struct error *err);
/* The same for an ORDER BY term: NAME ascending, or -NAME descending; what is missing comes last. */
int where_compile_sort(struct where *where, const char *text, const struct where_names *names, int first,
                       struct error *err);
void where_release(struct where *where);

#endif
