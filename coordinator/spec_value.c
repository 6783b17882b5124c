/* Single values of a spec: their kind, their range, and the keys of a map. */
#include "coordinator/spec_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool word_is_in(const char *word, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* A number in quotes stands for itself where only a number can stand, with a note. */
static bool number_of(struct reader *reader, const struct node *node, const char *key, double *value)
{
    if (node->kind == NODE_INTEGER || node->kind == NODE_NUMBER) {
        *value = node->number;
        return isfinite(*value);
    }
    if (node->kind == NODE_STRING && number_parse(node->text, value) && isfinite(*value)) {
        note_at(reader, node, key, "\"%.40s\" is in quotes and is taken as a number here", node->text);
        return true;
    }
    return false;
}

static void problem_integer(struct reader *reader, const struct node *node, const char *key, double minimum,
                            double maximum)
{
    if (minimum == maximum) {
        problem_found(reader, node, key, "%.0f", minimum);
    } else if (maximum < 9e15) {
        problem_found(reader, node, key, "an integer from %.0f to %.0f", minimum, maximum);
    } else if (minimum > -9e15) {
        problem_found(reader, node, key, "an integer >= %.0f", minimum);
    } else {
        problem_found(reader, node, key, "an integer");
    }
}

bool read_integer(struct reader *reader, const struct node *node, const char *key, double minimum,
                  double maximum, int64_t *value)
{
    double number;
    if (node_integer(node, value)) {
        number = node->number;
    } else if (number_of(reader, node, key, &number) && number == floor(number) && fabs(number) < 9e15) {
        *value = (int64_t)number;
    } else {
        problem_integer(reader, node, key, minimum, maximum);
        return false;
    }
    if (number < minimum || number > maximum) {
        problem_integer(reader, node, key, minimum, maximum);
        return false;
    }
    return true;
}

bool read_number(struct reader *reader, const struct node *node, const char *key, const char *accepted,
                 double *value)
{
    if (!number_of(reader, node, key, value)) {
        problem_found(reader, node, key, "%s", accepted);
        return false;
    }
    return true;
}

bool read_string(struct reader *reader, const struct node *node, const char *key, const char **value)
{
    if (node->kind != NODE_STRING) {
        bool word = node->kind == NODE_BOOLEAN || node->kind == NODE_INTEGER || node->kind == NODE_NUMBER;
        problem_found(reader, node, key, word ? "text (put it in quotes)" : "text");
        return false;
    }
    *value = node->text;
    return true;
}

bool read_boolean(struct reader *reader, const struct node *node, const char *key, bool *value)
{
    if (node->kind != NODE_BOOLEAN) {
        problem_found(reader, node, key, "true or false");
        return false;
    }
    *value = node->boolean;
    return true;
}

int read_choice(struct reader *reader, const struct node *node, const char *key, const char *const *words)
{
    for (int i = 0; node->kind == NODE_STRING && words[i]; i++) {
        if (strcmp(node->text, words[i]) == 0) {
            return i;
        }
    }
    char buffer[FOUND_SIZE];
    if (node->kind == NODE_STRING) {
        problem_word(reader, node, key, node->text, words);
    } else {
        struct text text;
        text_init(&text);
        words_join(&text, words);
        problem_at(reader, node, key, "found %s, accepted %s", node_found(node, buffer),
                   text.data ? text.data : "");
        text_release(&text);
    }
    return -1;
}

bool read_map(struct reader *reader, const struct node *node, const char *key, const char *example)
{
    if (node->kind != NODE_MAP) {
        problem_found(reader, node, key, "a map, such as %s", example);
        return false;
    }
    return true;
}

static void check_key(struct reader *reader, const struct node *entry_key, const char *map_key,
                      const char *const *known, const char *const *later, enum unknown_keys unknown)
{
    const char *name = entry_key->text;
    char key[200];
    snprintf(key, sizeof key, "%s%s%.80s", map_key ? map_key : "", map_key ? "." : "", name);
    if (word_is_in(name, known)) {
        return;
    }
    if (later && word_is_in(name, later)) {
        problem_at(reader, entry_key, key, "is not available in this version");
    } else if (unknown == UNKNOWN_REFUSED || nearest_word(name, known)) {
        problem_word(reader, entry_key, map_key ? map_key : "unknown key", name, known);
    } else {
        note_at(reader, entry_key, key, "unknown key, ignored");
    }
}

void check_keys(struct reader *reader, const struct node *map, const char *key, const char *const *known,
                const char *const *later, enum unknown_keys unknown)
{
    for (size_t i = 0; i < map->count; i++) {
        check_key(reader, map->entries[i].key, key, known, later, unknown);
    }
}
