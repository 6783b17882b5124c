/* Splits a condition into tokens. */
#include "coordinator/where_scan.h"

#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+' || c == '/' || c == ':' || (unsigned char)c >= 0x80;
}

static size_t position_of(const struct where_scanner *scanner, size_t offset)
{
    size_t position = 1;
    for (size_t i = 0; i < offset; i++) {
        position += ((unsigned char)scanner->text[i] & 0xC0) != 0x80;
    }
    return position;
}

static int take(struct where_scanner *scanner, struct where_token *token, enum where_token_kind kind,
                size_t size, struct error *err)
{
    token->kind = kind;
    token->text = strndup(scanner->text + scanner->offset, size);
    scanner->offset += size;
    return token->text != NULL ? 0 : error_set(err, ERROR_MEMORY, "no memory for the condition");
}

static int scan_quoted(struct where_scanner *scanner, struct where_token *token, struct error *err)
{
    char quote = scanner->text[scanner->offset++];
    struct text value;
    text_init(&value);
    for (;; scanner->offset++) {
        const char *c = scanner->text + scanner->offset;
        if (*c == '\0') {
            text_release(&value);
            return error_set(err, ERROR_USAGE, "character %zu: the quote %c is not closed", token->position,
                             quote);
        }
        if (*c == quote && c[1] != quote) {
            break;
        }
        scanner->offset += *c == quote;
        text_append_bytes(&value, c, 1);
    }
    scanner->offset++;
    token->kind = TOKEN_QUOTED;
    token->text = text_steal(&value);
    return token->text != NULL ? 0 : error_set(err, ERROR_MEMORY, "no memory for the condition");
}

/* A JSON list up to its closing bracket; strings inside may hold brackets. */
static int scan_list(struct where_scanner *scanner, struct where_token *token, struct error *err)
{
    const char *start = scanner->text + scanner->offset;
    int depth = 0;
    bool quoted = false;
    for (const char *c = start; *c != '\0'; c++) {
        if (quoted) {
            c += *c == '\\' && c[1] != '\0';
            quoted = *c != '"';
            continue;
        }
        quoted = *c == '"';
        depth += (*c == '[') - (*c == ']');
        if (depth == 0) {
            return take(scanner, token, TOKEN_LIST, (size_t)(c - start) + 1, err);
        }
    }
    return error_set(err, ERROR_USAGE, "character %zu: the list is not closed with ']'", token->position);
}

int where_scan(struct where_scanner *scanner, struct where_token *token, struct error *err)
{
    const char *text = scanner->text;
    scanner->offset += strspn(text + scanner->offset, " \t\r\n");
    *token = (struct where_token){.position = position_of(scanner, scanner->offset)};
    const char *c = text + scanner->offset;
    if (*c == '\0') {
        return take(scanner, token, TOKEN_END, 0, err);
    }
    if (*c == '"' || *c == '\'') {
        return scan_quoted(scanner, token, err);
    }
    if (*c == '[') {
        return scan_list(scanner, token, err);
    }
    if (*c == '(' || *c == ')' || *c == ',') {
        return take(scanner, token, *c == '(' ? TOKEN_OPEN : *c == ')' ? TOKEN_CLOSE : TOKEN_COMMA, 1, err);
    }
    if (*c == '<' || *c == '>' || *c == '=' || (*c == '!' && c[1] == '=')) {
        return take(scanner, token, TOKEN_OPERATOR, c[1] == '=' ? 2 : 1, err);
    }
    size_t size = 0;
    while (is_word_byte(c[size])) {
        size++;
    }
    if (size == 0) {
        return error_set(err, ERROR_USAGE,
                         "character %zu: '%c' has no meaning here; quote names and strings with it",
                         token->position, *c);
    }
    double number;
    if (take(scanner, token, TOKEN_WORD, size, err) != 0) {
        return -1;
    }
    token->kind = number_parse(token->text, &number) ? TOKEN_NUMBER : TOKEN_WORD;
    return 0;
}

void where_token_release(struct where_token *token)
{
    free(token->text);
    token->text = NULL;
}
