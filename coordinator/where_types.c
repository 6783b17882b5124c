/* Values of --where against what their column holds. */
#include "base/text.h"
#include "coordinator/where_parser.h"

#include <stdio.h>
#include <string.h>

bool where_token_is_null(const struct parser *parser)
{
    return where_token_is(parser, TOKEN_WORD, "null"); /* none is a value of norm, class_weight, ... */
}

/* Is one of the comma-separated `types` among these? */
static bool has_type(const char *types, const char *a, const char *b)
{
    return strstr(types, a) != NULL || strstr(types, b) != NULL;
}

int where_check_type(struct parser *parser, const struct operand *operand)
{
    enum where_token_kind kind = parser->token.kind;
    const char *text = parser->token.text;
    bool metric = operand->path != 0 && strcmp(operand->column, "metrics") == 0;
    const char *types = metric ? "real" : operand->types;
    bool truth = kind == TOKEN_WORD &&
                 (where_token_is(parser, TOKEN_WORD, "true") || where_token_is(parser, TOKEN_WORD, "false"));
    bool special =
        strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0;
    if (types == NULL || where_token_is_null(parser) || special) {
        return 0;
    }
    bool numbers = has_type(types, "integer", "real"), words = has_type(types, "text", "text"),
         truths = has_type(types, "true", "false"), lists = has_type(types, "array", "object");
    bool matches = kind == TOKEN_NUMBER ? numbers : kind == TOKEN_LIST ? lists : truth ? truths : words;
    if (matches || !(numbers || words || truths || lists)) {
        return 0;
    }
    const char *held = numbers ? "numbers" : lists ? "lists" : truths ? "true and false" : "text";
    char advice[100] = "";
    double number;
    if (lists && kind == TOKEN_NUMBER) {
        snprintf(advice, sizeof advice, ", such as [%.60s]", text);
    } else if (numbers && kind == TOKEN_QUOTED && number_parse(text, &number)) {
        snprintf(advice, sizeof advice, " (written without quotes)");
    }
    return error_set(parser->err, ERROR_USAGE, "character %zu: %s holds %s%s, found '%s'",
                     parser->token.position, operand->name, held, advice, text);
}
