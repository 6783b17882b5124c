/* Growable text and nearest words. Numbers are in number.c, UTF-8 in utf8.c. */
#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(struct text *text)
{
    *text = (struct text){0};
}

void text_release(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

char *text_steal(struct text *text)
{
    char *data = text->data;
    if (text->failed) {
        free(data);
        data = NULL;
    } else if (!data) {
        data = calloc(1, 1);
    }
    *text = (struct text){0};
    return data;
}

/* Room for `more` bytes and the NUL; doubling keeps appends linear. */
static bool text_reserve(struct text *text, size_t more)
{
    if (text->failed)
        return false;
    if (more >= SIZE_MAX / 2 - text->size) {
        text->failed = true;
        return false;
    }
    size_t need = text->size + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity < 64 ? 64 : text->capacity * 2;
    if (capacity < need)
        capacity = need;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void text_append_bytes(struct text *text, const void *bytes, size_t size)
{
    if (!text_reserve(text, size))
        return;
    if (size)
        memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_append(struct text *text, const char *string)
{
    text_append_bytes(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
    char small[256];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = true;
    } else if ((size_t)length < sizeof small) {
        text_append_bytes(text, small, (size_t)length);
    } else if (text_reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    va_end(again);
}

/* Longer words are nobody's typing errors; it also bounds the rows below. */
#define WORD_LIMIT 100

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b: three rows of the usual table. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][WORD_LIMIT + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++)
        above[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t edits = above[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
            edits = smaller(edits, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                edits = smaller(edits, before[j - 2] + 1);
            row[j] = edits;
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_size];
}

/* Letters and digits of a word in lower case: log_uniform and LogUniform are one. Returns their number. */
static size_t fold(const char *word, char folded[WORD_LIMIT + 1])
{
    size_t size = 0;
    for (; *word && size < WORD_LIMIT; word++) {
        if (isalnum((unsigned char)*word))
            folded[size++] = (char)tolower((unsigned char)*word);
    }
    folded[size] = '\0';
    return size;
}

#define PART_LEAST 3 /* shorter parts stand in too many words */

/* The only one of `words` that starts with `word`, or (anywhere) has it inside; NULL: none or several. */
static const char *whole_of_part(const char *word, const char *const *words, bool anywhere)
{
    char part[WORD_LIMIT + 1], whole[WORD_LIMIT + 1];
    const char *found = NULL;
    size_t size = fold(word, part);
    for (; size >= PART_LEAST && *words; words++) {
        fold(*words, whole);
        if (anywhere ? strstr(whole, part) == NULL : strncmp(whole, part, size) != 0)
            continue;
        if (found)
            return NULL;
        found = *words;
    }
    return found;
}

static const char *nearest_by_edits(const char *word, size_t size, const char *const *words)
{
    const char *nearest = NULL;
    size_t best = 1 + size / 3 + 1;
    for (; *words; words++) {
        size_t other = strlen(*words);
        if (other > WORD_LIMIT)
            continue;
        size_t edits = edit_distance(word, size, *words, other);
        /* More edits than letters kept is no likeness: "x" is not near "q", nor "foo" near "top". */
        if (edits < best && 2 * edits <= (size > other ? size : other)) {
            best = edits;
            nearest = *words;
        }
    }
    return nearest;
}

const char *nearest_word(const char *word, const char *const *words)
{
    size_t size = strlen(word);
    if (size == 0 || size > WORD_LIMIT)
        return NULL;
    const char *nearest = whole_of_part(word, words, false);
    nearest = nearest ? nearest : nearest_by_edits(word, size, words);
    return nearest ? nearest : whole_of_part(word, words, true);
}
