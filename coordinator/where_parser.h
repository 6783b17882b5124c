/* Inside the --where grammar: the parser's state, shared by its two halves (where.c: structure;
 * where_compare.c: names, values and comparisons). */
#ifndef RUNG_COORDINATOR_WHERE_PARSER_H
#define RUNG_COORDINATOR_WHERE_PARSER_H

#include "base/text.h"
#include "coordinator/where.h"
#include "coordinator/where_scan.h"

#include <stdbool.h>

enum column_type { COLUMN_NUMBER, COLUMN_TEXT, COLUMN_STATE, COLUMN_REASON };

/* What a name stands for: a column of the leaderboard, or a key of one of its JSON columns. */
struct operand {
    const char *column; /* in SQL */
    enum column_type type;
    int path;          /* number of the bound JSON path; 0: a plain column */
    const char *types; /* of a key, see where_names; NULL: not known */
    char name[64];     /* of a key, for people */
};

struct parser {
    struct where_scanner scanner;
    struct where_token token;
    const struct where_names *names;
    struct where *where;
    struct text sql;
    int first, depth, comparisons;
    struct error *err;
};

bool where_token_is(const struct parser *parser, enum where_token_kind kind, const char *text);
bool where_token_is_null(const struct parser *parser); /* null or none */
int where_advance(struct parser *parser);
/* "expected WHAT, found ..."; returns -1. */
int where_expected(struct parser *parser, const char *what);

int where_operand(struct parser *parser, const char *name, struct operand *operand);
/* Writes one comparison with the value that the current token is, and goes on to the next token. `comparator`
 * is = < <= > or >=; != is NOT of =, so that logic is two-valued. */
int where_compare(struct parser *parser, const struct operand *operand, const char *comparator);
/* where_types.c: refuses the current token where the operand holds no value of its kind: `hidden = 64` where
 * hidden holds lists, `learning_rate < '0.01'`. */
int where_check_type(struct parser *parser, const struct operand *operand);
/* The operand as SQL to sort by. */
void where_append_sortable(struct text *sql, const struct operand *operand);

#endif
