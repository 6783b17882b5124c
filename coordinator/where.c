/* The parser of --where: recursive descent, one token ahead, writing SQL as it goes. */
#include "coordinator/where.h"

#include "coordinator/where_parser.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* SQLite's own limit is 1,000 levels of expression; this is far beyond what anyone types. */
#define DEPTH_LIMIT 50

int where_advance(struct parser *parser)
{
    where_token_release(&parser->token);
    return where_scan(&parser->scanner, &parser->token, parser->err);
}

bool where_token_is(const struct parser *parser, enum where_token_kind kind, const char *text)
{
    return parser->token.kind == kind && strcasecmp(parser->token.text, text) == 0;
}

int where_expected(struct parser *parser, const char *what)
{
    bool end = parser->token.kind == TOKEN_END;
    return error_set(parser->err, ERROR_USAGE, "character %zu: expected %s, found %s%s%s",
                     parser->token.position, what, end ? "the end" : "'", end ? "" : parser->token.text,
                     end ? "" : "'");
}

static int parse_in(struct parser *parser, const struct operand *operand)
{
    if (where_advance(parser) != 0) {
        return -1;
    }
    if (parser->token.kind != TOKEN_OPEN) {
        return where_expected(parser, "'(' after in");
    }
    text_append(&parser->sql, "(");
    do {
        if (where_advance(parser) != 0 || where_compare(parser, operand, "=") != 0) {
            return -1;
        }
        text_append(&parser->sql, parser->token.kind == TOKEN_COMMA ? " OR " : ")");
    } while (parser->token.kind == TOKEN_COMMA);
    return parser->token.kind == TOKEN_CLOSE ? where_advance(parser) : where_expected(parser, "',' or ')'");
}

static int parse_comparison(struct parser *parser)
{
    struct operand operand;
    if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_QUOTED) {
        return where_expected(parser, "a name");
    }
    if (where_operand(parser, parser->token.text, &operand) != 0 || where_advance(parser) != 0) {
        return -1;
    }
    bool negated = where_token_is(parser, TOKEN_WORD, "not");
    if (negated) {
        text_append(&parser->sql, "NOT ");
        if (where_advance(parser) != 0) {
            return -1;
        }
    }
    if (where_token_is(parser, TOKEN_WORD, "in")) {
        return parse_in(parser, &operand);
    }
    if (negated || parser->token.kind != TOKEN_OPERATOR) {
        return where_expected(parser, negated ? "in" : "a comparison (= != < <= > >= in)");
    }
    char comparator[3] = "=";
    if (where_token_is(parser, TOKEN_OPERATOR, "!=")) {
        text_append(&parser->sql, "NOT ");
    } else if (!where_token_is(parser, TOKEN_OPERATOR, "==")) {
        memcpy(comparator, parser->token.text, strlen(parser->token.text) + 1);
    }
    return where_advance(parser) != 0 ? -1 : where_compare(parser, &operand, comparator);
}

static int parse_condition(struct parser *parser);

static int parse_term(struct parser *parser)
{
    if (where_token_is(parser, TOKEN_WORD, "not")) {
        text_append(&parser->sql, "NOT ");
        if (++parser->depth > DEPTH_LIMIT) {
            return error_set(parser->err, ERROR_USAGE, "character %zu: nested too deeply",
                             parser->token.position);
        }
        int result = where_advance(parser) != 0 ? -1 : parse_term(parser);
        parser->depth--;
        return result;
    }
    if (parser->token.kind != TOKEN_OPEN) {
        return parse_comparison(parser);
    }
    if (++parser->depth > DEPTH_LIMIT) {
        return error_set(parser->err, ERROR_USAGE, "character %zu: nested too deeply",
                         parser->token.position);
    }
    text_append(&parser->sql, "(");
    if (where_advance(parser) != 0 || parse_condition(parser) != 0) {
        return -1;
    }
    if (parser->token.kind != TOKEN_CLOSE) {
        return where_expected(parser, "')', and, or");
    }
    text_append(&parser->sql, ")");
    parser->depth--;
    return where_advance(parser);
}

static int parse_chain(struct parser *parser, const char *word, const char *sql,
                       int (*parse)(struct parser *))
{
    for (;;) {
        if (parse(parser) != 0) {
            return -1;
        }
        if (!where_token_is(parser, TOKEN_WORD, word)) {
            return 0;
        }
        text_append(&parser->sql, sql);
        if (where_advance(parser) != 0) {
            return -1;
        }
    }
}

static int parse_conjunction(struct parser *parser)
{
    return parse_chain(parser, "and", " AND ", parse_term);
}

static int parse_condition(struct parser *parser)
{
    return parse_chain(parser, "or", " OR ", parse_conjunction);
}

static int parse_sort(struct parser *parser)
{
    const char *name = parser->scanner.text;
    bool descending = name[0] == '-';
    struct operand operand;
    parser->token.position = 1 + descending;
    if (where_operand(parser, name + descending, &operand) != 0) {
        return -1;
    }
    where_append_sortable(&parser->sql, &operand);
    text_printf(&parser->sql, "%s NULLS LAST", descending ? " DESC" : "");
    return 0;
}

static int compile(struct where *where, const char *text, const struct where_names *names, int first,
                   bool sort, struct error *err)
{
    struct parser parser = {
        .scanner = {.text = text}, .names = names, .where = where, .first = first, .err = err};
    *where = (struct where){0};
    text_init(&parser.sql);
    int result;
    if (sort) {
        result = parse_sort(&parser);
    } else {
        result = where_advance(&parser) != 0 ? -1 : parse_condition(&parser);
        if (result == 0 && parser.token.kind != TOKEN_END) {
            result = where_expected(&parser, "and, or, or the end");
        }
    }
    where_token_release(&parser.token);
    where->sql = text_steal(&parser.sql);
    if (result == 0 && where->sql == NULL) {
        result = error_set(err, ERROR_MEMORY, "no memory for the condition");
    }
    if (result != 0) {
        where_release(where);
    }
    return result;
}

int where_compile(struct where *where, const char *text, const struct where_names *names, int first,
                  struct error *err)
{
    int result = compile(where, text, names, first, false, err);
    return result == 0 ? 0 : error_prefix(err, "where '%.200s'", text);
}

int where_compile_sort(struct where *where, const char *text, const struct where_names *names, int first,
                       struct error *err)
{
    int result = compile(where, text, names, first, true, err);
    return result == 0 ? 0 : error_prefix(err, "sort '%.200s'", text);
}

void where_release(struct where *where)
{
    for (size_t i = 0; i < where->value_count; i++) {
        free(where->values[i].text);
    }
    free(where->values);
    free(where->sql);
    *where = (struct where){0};
}
