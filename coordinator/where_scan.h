/* Words of the --where grammar. */
#ifndef RUNG_COORDINATOR_WHERE_SCAN_H
#define RUNG_COORDINATOR_WHERE_SCAN_H

#include "base/error.h"

#include <stddef.h>

enum where_token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* name, keyword or bare string */
    TOKEN_QUOTED, /* text without its quotes; '' or "" inside is one quote */
    TOKEN_NUMBER,
    TOKEN_LIST,     /* a JSON list as written */
    TOKEN_OPERATOR, /* = == != < <= > >= */
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMMA,
};

struct where_token {
    enum where_token_kind kind;
    size_t position; /* of its first character, from 1, in characters (not bytes) */
    char *text;      /* owned; "" at the end */
};

struct where_scanner {
    const char *text;
    size_t offset;
};

/* The next token; release it. -1: err (ERROR_USAGE). */
int where_scan(struct where_scanner *scanner, struct where_token *token, struct error *err);
void where_token_release(struct where_token *token);

#endif
