/* Problems and notes of a spec, each with its place, and the lines made of them. */
#include "coordinator/spec_reader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEM_LIMIT 100 /* a file with more has one cause; the rest is only counted */

const char *node_found(const struct node *node, char buffer[FOUND_SIZE])
{
    switch (node->kind) {
    case NODE_NULL:
        snprintf(buffer, FOUND_SIZE, "nothing");
        break;
    case NODE_STRING:
        snprintf(buffer, FOUND_SIZE, strlen(node->text) > 40 ? "\"%.40s...\"" : "\"%s\"", node->text);
        break;
    case NODE_LIST:
        snprintf(buffer, FOUND_SIZE, "a list");
        break;
    case NODE_MAP:
        snprintf(buffer, FOUND_SIZE, "a map");
        break;
    default:
        snprintf(buffer, FOUND_SIZE, "%.60s", node->text);
    }
    return buffer;
}

void words_join(struct text *text, const char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        const char *separator = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        bool sign = strlen(words[i]) == 1 && !isalnum((unsigned char)words[i][0]);
        text_append(text, separator);
        text_printf(text, sign ? "\"%s\"" : "%s", strcmp(words[i], "\t") == 0 ? "\\t" : words[i]);
    }
}

/* The text as one line of valid UTF-8 (a cut may have split a character); NULL without memory. */
static char *steal_line(struct text *text)
{
    char *message = text->failed ? NULL : utf8_repair(text->data ? text->data : "", text->size);
    for (char *c = message; c && *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        }
    }
    text_release(text);
    return message;
}

/* Takes the text. */
static void add(struct reader *reader, const char *origin, int line, int column, struct text *text)
{
    char *message = steal_line(text);
    if (!message) {
        reader->failed = true;
        return;
    }
    struct problem *problems = NULL;
    if (reader->problem_count >= PROBLEM_LIMIT) {
        reader->dropped_count++;
        free(message);
        return;
    }
    problems = realloc(reader->problems, (reader->problem_count + 1) * sizeof(*problems));
    if (!problems) {
        reader->failed = true;
        free(message);
        return;
    }
    reader->problems = problems;
    problems[reader->problem_count++] = (struct problem){origin, line, column, message};
}

static void append_key(struct text *text, const char *key)
{
    if (key) {
        text_append(text, key);
        text_append(text, ": ");
    }
}

static void append_va(struct text *text, const char *format, va_list arguments)
{
    char buffer[1000];
    vsnprintf(buffer, sizeof buffer, format, arguments);
    text_append(text, buffer);
}

void problem_at(struct reader *reader, const struct node *where, const char *key, const char *format, ...)
{
    struct text text;
    va_list arguments;
    text_init(&text);
    append_key(&text, key);
    va_start(arguments, format);
    append_va(&text, format, arguments);
    va_end(arguments);
    add(reader, where->origin, where->line, where->column, &text);
}

void problem_found(struct reader *reader, const struct node *where, const char *key, const char *format, ...)
{
    struct text text;
    char buffer[FOUND_SIZE];
    va_list arguments;
    text_init(&text);
    append_key(&text, key);
    text_printf(&text, "found %s, accepted ", node_found(where, buffer));
    va_start(arguments, format);
    append_va(&text, format, arguments);
    va_end(arguments);
    add(reader, where->origin, where->line, where->column, &text);
}

void problem_word(struct reader *reader, const struct node *where, const char *key, const char *word,
                  const char *const *accepted)
{
    struct text text;
    const char *nearest = nearest_word(word, accepted);
    text_init(&text);
    append_key(&text, key);
    text_printf(&text, "found \"%.60s\", accepted ", word);
    words_join(&text, accepted);
    if (nearest) {
        text_printf(&text, " (did you mean %s?)", nearest);
    }
    add(reader, where->origin, where->line, where->column, &text);
}

void problem_later(struct reader *reader, const struct node *where, const char *key, const char *found,
                   const char *const *available)
{
    struct text text;
    text_init(&text);
    append_key(&text, key);
    text_printf(&text, "found \"%.60s\", which is not available in this version, accepted ", found);
    words_join(&text, available);
    const char *nearest = nearest_word(found, available);
    if (nearest && strncmp(nearest, found, strlen(found)) == 0) {
        text_printf(&text, " (did you mean %s?)", nearest); /* log_uniform: log_uniform_values */
    }
    add(reader, where->origin, where->line, where->column, &text);
}

void problem_report(void *user, const char *origin, int line, int column, const char *message)
{
    struct text text;
    text_init(&text);
    text_append(&text, message);
    add(user, origin, line, column, &text);
}

void note_at(struct reader *reader, const struct node *where, const char *key, const char *format, ...)
{
    struct text text;
    va_list arguments;
    if (reader->restoring) {
        return;
    }
    text_init(&text);
    if (where->origin) {
        text_printf(&text, "%s: ", where->origin);
    }
    va_start(arguments, format);
    append_va(&text, format, arguments);
    va_end(arguments);
    char *message = steal_line(&text);
    text_append(&text, key ? key : "");
    char *clean_key = steal_line(&text);
    json_t *note = NULL;
    if (message && clean_key) {
        note = json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", key && *key ? "warning" : "note", "line",
                         where->line, "column", where->column, "key", clean_key, "message", message);
    }
    if (!note || json_array_append_new(reader->spec->notes, note) != 0) {
        reader->failed = true;
    }
    free(message);
    free(clean_key);
}

/* The file's own first, in its order; those of options behind, as they were given. */
static bool is_before(const struct problem *a, const struct problem *b)
{
    if (!a->origin || !b->origin) {
        return !a->origin &&
               (b->origin || a->line < b->line || (a->line == b->line && a->column < b->column));
    }
    return false;
}

/* Stable and quadratic: PROBLEM_LIMIT bounds it. */
static void sort(struct problem *problems, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct problem problem = problems[i];
        size_t at = i;
        for (; at > 0 && is_before(&problem, &problems[at - 1]); at--) {
            problems[at] = problems[at - 1];
        }
        problems[at] = problem;
    }
}

/* The place first: names of files and options may be any bytes. */
static void append_problem(const struct reader *reader, struct text *text, const struct problem *problem)
{
    struct text line;
    const char *file = strcmp(reader->spec->file, "-") == 0 ? "stdin" : reader->spec->file;
    text_init(&line);
    if (problem->origin) {
        text_printf(&line, "%s: ", problem->origin);
    } else {
        text_printf(&line, "%s:%d:%d: ", file, problem->line, problem->column);
    }
    text_append(&line, problem->message);
    char *clean = steal_line(&line);
    text_append(text, clean ? clean : "");
    text->failed = text->failed || !clean;
    free(clean);
}

char *problems_text(struct reader *reader)
{
    struct text text;
    text_init(&text);
    sort(reader->problems, reader->problem_count);
    for (size_t i = 0; i < reader->problem_count; i++) {
        text_append(&text, i == 0 ? "" : "\n");
        append_problem(reader, &text, &reader->problems[i]);
    }
    if (reader->dropped_count > 0) {
        text_printf(&text, "\n%s: and %zu more", reader->spec->file, reader->dropped_count);
    }
    char *lines = text_steal(&text);
    text_release(&text);
    return lines;
}

void problems_release(struct reader *reader)
{
    for (size_t i = 0; i < reader->problem_count; i++) {
        free(reader->problems[i].message);
    }
    free(reader->problems);
}
