/* Names, values and comparisons of --where. */
#include "base/json.h"
#include "coordinator/record.h"
#include "coordinator/where_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one condition; SQLite takes 32,766 values and chains of 1,000. */
#define COMPARISON_LIMIT 200

static const struct {
    const char *name;
    enum column_type type;
} columns[] = {
    {"rank", COLUMN_NUMBER},    {"trial", COLUMN_NUMBER},     {"state", COLUMN_STATE},
    {"reason", COLUMN_REASON},  {"objective", COLUMN_NUMBER}, {"resource", COLUMN_NUMBER},
    {"bracket", COLUMN_NUMBER}, {"seconds", COLUMN_NUMBER},   {"worker", COLUMN_TEXT},
    {"device", COLUMN_TEXT},    {"attempts", COLUMN_NUMBER},
};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)

/* Binds a value (takes `text`); returns its number in the SQL, or -1. */
static int bind(struct parser *parser, struct where_value value)
{
    struct where *where = parser->where;
    struct where_value *grown = reallocarray(where->values, where->value_count + 1, sizeof *grown);
    if (grown == NULL || (value.kind == WHERE_TEXT && value.text == NULL)) {
        where->values = grown != NULL ? grown : where->values;
        free(value.text);
        return error_set(parser->err, ERROR_MEMORY, "no memory for the condition");
    }
    where->values = grown;
    where->values[where->value_count] = value;
    return parser->first + (int)where->value_count++;
}

static int bind_text(struct parser *parser, const char *text)
{
    return bind(parser, (struct where_value){.kind = WHERE_TEXT, .text = strdup(text)});
}

static bool has_name(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The element of `types` that belongs to a name; NULL: not known. */
static const char *types_of(const char *const *names, const char *const *types, const char *name)
{
    for (size_t i = 0; types != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return types[i];
        }
    }
    return NULL;
}

static size_t count_names(const char *const *names)
{
    size_t count = 0;
    while (names != NULL && names[count] != NULL) {
        count++;
    }
    return count;
}

/* "unknown name 'x' (did you mean 'y'?)", over all the names there are. */
static int unknown_name(struct parser *parser, const char *name)
{
    const char *const *lists[] = {parser->names->parameters, parser->names->metrics, parser->names->derived};
    size_t count = COLUMN_COUNT;
    for (size_t i = 0; i < 3; i++) {
        count += count_names(lists[i]);
    }
    const char **words = calloc(count + 1, sizeof *words);
    if (words == NULL) {
        return error_set(parser->err, ERROR_MEMORY, "no memory for the condition");
    }
    size_t used = 0;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        words[used++] = columns[i].name;
    }
    for (size_t i = 0; i < 3; i++) {
        for (const char *const *word = lists[i]; word != NULL && *word != NULL; word++) {
            words[used] = has_name(words, *word) ? NULL : *word; /* a parameter may be derived, too */
            used += words[used] != NULL;
        }
    }
    const char *nearest = nearest_word(name, words);
    struct text all;
    text_init(&all);
    for (size_t i = 0; nearest == NULL && i < used; i++) {
        text_printf(&all, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    int result =
        error_set(parser->err, ERROR_USAGE, "character %zu: unknown name '%s'%s%s%s", parser->token.position,
                  name, nearest != NULL ? " (did you mean '" : "; there are ",
                  nearest != NULL    ? nearest
                  : all.data != NULL ? all.data
                                     : "none",
                  nearest != NULL ? "'?)" : "");
    text_release(&all);
    free(words);
    return result;
}

/* A key of a JSON column; its path is $."name". SQLite knows no way to write a quote inside. */
static int operand_of_key(struct parser *parser, const char *column, const char *key, struct operand *operand)
{
    if (strpbrk(key, "\"\\") != NULL) {
        return error_set(parser->err, ERROR_USAGE,
                         "character %zu: a name with a quote or backslash cannot be compared",
                         parser->token.position);
    }
    struct text path;
    text_init(&path);
    text_printf(&path, "$.\"%s\"", key);
    *operand = (struct operand){.column = column};
    snprintf(operand->name, sizeof operand->name, "%.60s", key);
    operand->path = bind(parser, (struct where_value){.kind = WHERE_TEXT, .text = text_steal(&path)});
    return operand->path < 0 ? -1 : 0;
}

int where_operand(struct parser *parser, const char *name, struct operand *operand)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (strcmp(name, columns[i].name) == 0) {
            *operand = (struct operand){.column = columns[i].name, .type = columns[i].type};
            return 0;
        }
    }
    const struct {
        const char *column;
        const char *const *names, *const *types;
    } sources[] = {{"parameters", parser->names->parameters, parser->names->parameter_types},
                   {"metrics", parser->names->metrics, NULL},
                   {"derived", parser->names->derived, parser->names->derived_types}};
    for (size_t i = 0; i < 6; i++) { /* by itself first, then behind its column */
        size_t k = i % 3, size = i < 3 ? 0 : strlen(sources[k].column) + 1;
        bool prefixed =
            size == 0 || (strncmp(name, sources[k].column, size - 1) == 0 && name[size - 1] == '.');
        if (prefixed && has_name(sources[k].names, name + size)) {
            int result = operand_of_key(parser, sources[k].column, name + size, operand);
            operand->types = types_of(sources[k].names, sources[k].types, name + size);
            return result;
        }
    }
    return unknown_name(parser, name);
}

static int refuse_value(struct parser *parser, const struct operand *operand, const char *accepted)
{
    return error_set(parser->err, ERROR_USAGE, "character %zu: %s is compared with %s, found '%s'",
                     parser->token.position, operand->column, accepted, parser->token.text);
}

static void state_words(const char *words[32])
{
    size_t count = 0;
    for (int i = 0; i <= TRIAL_CANCELLED; i++) {
        words[count++] = trial_state_name(i);
    }
    words[count] = NULL;
}

static void reason_words(const char *words[32])
{
    size_t count = 0;
    for (int i = REASON_NONE + 1; i <= REASON_LOST; i++) {
        words[count++] = trial_reason_name(i);
    }
    words[count] = NULL;
}

/* "stopped/pruned", or "pruned", which tables show as a state. */
static const char *reason_in(const char *word)
{
    enum trial_reason reason;
    const char *slash = strchr(word, '/');
    word = slash != NULL ? slash + 1 : word;
    return *word != '\0' && trial_reason_parse(word, &reason) ? word : NULL;
}

/* `state = complete` would silently find nothing. */
static int check_state(struct parser *parser, const struct operand *operand)
{
    const char *words[32], *word = parser->token.text;
    if (operand->type != COLUMN_STATE && operand->type != COLUMN_REASON) {
        return 0;
    }
    operand->type == COLUMN_STATE ? state_words(words) : reason_words(words);
    if (has_name(words, word)) {
        return 0;
    }
    const char *reason = operand->type == COLUMN_STATE ? reason_in(word) : NULL;
    if (reason != NULL) {
        size_t size = strcspn(word, "/");
        bool both = word[size] == '/';
        return error_set(parser->err, ERROR_USAGE,
                         "character %zu: no state is called '%s'; write %s%.*s%sreason = %s",
                         parser->token.position, word, both ? "state = " : "", both ? (int)size : 0, word,
                         both ? " and " : "", reason);
    }
    const char *nearest = nearest_word(word, words);
    struct text all;
    text_init(&all);
    for (size_t i = 0; words[i] != NULL; i++) {
        text_printf(&all, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    int result = error_set(
        parser->err, ERROR_USAGE, "character %zu: no %s is called '%s'%s%s%s; there are %s",
        parser->token.position, operand->column, word, nearest != NULL ? " (did you mean '" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "'?)" : "", all.data != NULL ? all.data : "none");
    text_release(&all);
    return result;
}

static int compare_column(struct parser *parser, const struct operand *operand, const char *comparator)
{
    int value;
    if (operand->type == COLUMN_NUMBER) {
        struct where_value number = {.kind = WHERE_REAL};
        if (parser->token.kind != TOKEN_NUMBER || !number_parse(parser->token.text, &number.real)) {
            return refuse_value(parser, operand, "a number or null");
        }
        value = bind(parser, number);
    } else {
        if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_QUOTED) {
            return refuse_value(parser, operand, "a string (quote it)");
        }
        if (check_state(parser, operand) != 0) {
            return -1;
        }
        value = bind_text(parser, parser->token.text);
    }
    text_printf(&parser->sql, "coalesce(%s %s ?%d, 0)", operand->column, comparator, value);
    return value < 0 ? -1 : 0;
}

static void append_number_operand(struct text *sql, const struct operand *operand)
{
    const char *c = operand->column;
    int p = operand->path;
    text_printf(
        sql,
        "CASE json_type(%s, ?%d) WHEN 'integer' THEN json_extract(%s, ?%d) WHEN 'real' THEN json_extract(%s, "
        "?%d)"
        " WHEN 'text' THEN CASE json_extract(%s, ?%d) WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999"
        " END END",
        c, p, c, p, c, p, c, p);
}

static int compare_number(struct parser *parser, const struct operand *operand, const char *comparator)
{
    char canonical[NUMBER_SIZE];
    double number;
    const char *digits = parser->token.text + (parser->token.text[0] == '-');
    int value = -1;
    if (digits[0] != '0' && digits[strspn(digits, "0123456789")] == '\0') {
        /* Integers stay as written: 64 bits do not fit a double. */
        value = bind_text(parser, parser->token.text);
    } else if (number_parse(parser->token.text, &number)) {
        value = bind_text(parser, number_format(number, canonical));
    }
    text_append(&parser->sql, "coalesce(");
    append_number_operand(&parser->sql, operand);
    text_printf(&parser->sql, " %s json_extract(?%d, '$'), 0)", comparator, value);
    return value < 0 ? -1 : 0;
}

/* A list is equal when its canonical text is, which is how the store keeps it. */
static int compare_list(struct parser *parser, const struct operand *operand, const char *comparator)
{
    struct error reason;
    json_t *list = json_parse(parser->token.text, strlen(parser->token.text), &reason);
    if (list == NULL) {
        return error_set(parser->err, ERROR_USAGE, "character %zu: the list is not JSON: %s",
                         parser->token.position, reason.message);
    }
    int value = bind(parser, (struct where_value){.kind = WHERE_TEXT, .text = json_canonical(list)});
    json_decref(list);
    text_printf(&parser->sql,
                "coalesce(CASE json_type(%s, ?%d) WHEN 'array' THEN json_extract(%s, ?%d) END %s ?%d, 0)",
                operand->column, operand->path, operand->column, operand->path, comparator, value);
    return value < 0 ? -1 : 0;
}

static int compare_null(struct parser *parser, const struct operand *operand)
{
    if (operand->path == 0) {
        text_printf(&parser->sql, "(%s IS NULL)", operand->column);
    } else {
        text_printf(&parser->sql, "(coalesce(json_type(%s, ?%d), 'null') = 'null')", operand->column,
                    operand->path);
    }
    return 0;
}

static int compare_key(struct parser *parser, const struct operand *operand, const char *comparator)
{
    if (parser->token.kind == TOKEN_NUMBER) {
        return compare_number(parser, operand, comparator);
    }
    if (parser->token.kind == TOKEN_LIST) {
        return compare_list(parser, operand, comparator);
    }
    bool yes = where_token_is(parser, TOKEN_WORD, "true");
    if (yes || where_token_is(parser, TOKEN_WORD, "false")) {
        text_printf(&parser->sql, "coalesce(json_type(%s, ?%d) = '%s', 0)", operand->column, operand->path,
                    yes ? "true" : "false");
        return 0;
    }
    int value = bind_text(parser, parser->token.text);
    text_append(&parser->sql, "coalesce(");
    text_printf(&parser->sql, "CASE json_type(%s, ?%d) WHEN 'text' THEN json_extract(%s, ?%d) END",
                operand->column, operand->path, operand->column, operand->path);
    text_printf(&parser->sql, " %s ?%d, 0)", comparator, value);
    return value < 0 ? -1 : 0;
}

/* A bare word beside < is a slip of the pen or a name of something else; beside a metric it is one always. */
static int check_word(struct parser *parser, const struct operand *operand, bool equality)
{
    const char *word = parser->token.text;
    if (parser->token.kind != TOKEN_WORD || operand->path == 0 || where_token_is_null(parser)) {
        return 0;
    }
    bool metric = strcmp(operand->column, "metrics") == 0;
    if (!equality) {
        return error_set(parser->err, ERROR_USAGE,
                         "character %zu: '%s' is no number, which < and > compare (quote it to compare text)",
                         parser->token.position, word);
    }
    return metric && strcmp(word, "NaN") != 0
               ? error_set(parser->err, ERROR_USAGE, "character %zu: a metric is a number, found '%s'",
                           parser->token.position, word)
               : 0;
}

/* One comparison with the value that the current token is; != is written as NOT of =, so that logic is
 * two-valued. */
int where_compare(struct parser *parser, const struct operand *operand, const char *comparator)
{
    enum where_token_kind kind = parser->token.kind;
    bool equality = strcmp(comparator, "=") == 0;
    if (kind != TOKEN_WORD && kind != TOKEN_QUOTED && kind != TOKEN_NUMBER && kind != TOKEN_LIST) {
        return where_expected(parser, "a value");
    }
    if (++parser->comparisons > COMPARISON_LIMIT) {
        return error_set(parser->err, ERROR_USAGE, "character %zu: more than %d comparisons",
                         parser->token.position, COMPARISON_LIMIT);
    }
    bool ordered =
        kind == TOKEN_NUMBER || kind == TOKEN_QUOTED ||
        (kind == TOKEN_WORD && !where_token_is_null(parser) && !where_token_is(parser, TOKEN_WORD, "true") &&
         !where_token_is(parser, TOKEN_WORD, "false"));
    if (!ordered && !equality) {
        return error_set(parser->err, ERROR_USAGE,
                         "character %zu: '%s' can only be compared with = and !=", parser->token.position,
                         parser->token.text);
    }
    if (check_word(parser, operand, equality) != 0 || where_check_type(parser, operand) != 0) {
        return -1;
    }
    int result = where_token_is_null(parser) ? compare_null(parser, operand)
                 : operand->path == 0        ? compare_column(parser, operand, comparator)
                                             : compare_key(parser, operand, comparator);
    return result == 0 ? where_advance(parser) : -1;
}

void where_append_sortable(struct text *sql, const struct operand *operand)
{
    if (operand->path == 0) {
        text_append(sql, operand->column);
        return;
    }
    text_append(sql, "coalesce(");
    append_number_operand(sql, operand);
    text_printf(sql, ", nullif(json_extract(%s, ?%d), 'NaN'))", operand->column, operand->path);
}
