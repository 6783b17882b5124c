/* Growable text, number formatting that round-trips, nearest words, and UTF-8 repair.
 * Out of memory: `failed` is set, later appends are no-ops, text_steal returns NULL. */
#ifndef RUNG_BASE_TEXT_H
#define RUNG_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; /* NUL-terminated once anything was appended; NULL before */
    size_t size;
    size_t capacity;
    bool failed;
};

void text_init(struct text *text);
void text_release(struct text *text);
/* Gives the buffer to the caller (free() it) and empties `text`; "" when nothing was appended, NULL
 * if failed. */
char *text_steal(struct text *text);
void text_append(struct text *text, const char *string);
void text_append_bytes(struct text *text, const void *bytes, size_t size);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define NUMBER_SIZE 40
/* Shortest text that strtod reads back to the same double, Python repr style: 0.1, 1e-05, 1e+16, 3.0, "NaN",
 * "Infinity", "-Infinity". Never by locale. `buffer` has NUMBER_SIZE bytes; returned. */
char *number_format(double value, char buffer[NUMBER_SIZE]);
/* Whole-string, locale-free parse of a decimal number (1, 1., .5, +1, 1e-3; no hex, inf, nan, no blanks).
 * False also for a number beyond the range of a double (1e999). */
bool number_parse(const char *string, double *value);

/* The entry of NULL-terminated `words` that is meant by `word`: the only one that starts with it, else the
 * nearest by edit distance (at most 1 + length/3 edits), else the only one that has it inside; case ignored,
 * and for parts (3 letters or more) also "_", "-" and the like. NULL: none. */
const char *nearest_word(const char *word, const char *const *words);

/* No control characters: none that a terminal would act on. */
bool text_is_printable(const char *text);
/* Copies `size` bytes as valid UTF-8: each bad byte becomes U+FFFD. free() the result; NULL on no memory. */
char *utf8_repair(const char *bytes, size_t size);
/* The same in place, with '?' for each bad byte. */
void utf8_mend(char *text);

#endif
