/* Classes of two files; see data_join.h. */
#include "base/text.h"
#include "worker/training/data_join.h"
#include "worker/training/data_messages.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_CLASSES 12

/* An entry of the dictionary, and what is left of its text without what files spell differently. */
struct spelling {
    char *bare;
    int32_t entry;
};

static int spelling_compare(const void *a, const void *b)
{
    return strcmp(((const struct spelling *)a)->bare, ((const struct spelling *)b)->bare);
}

static char *bare_text(const char *text)
{
    char *bare = strdup(text);
    size_t size = bare ? strlen(bare) : 0;
    while (size && (bare[size - 1] == '.' || bare[size - 1] == ' '))
        bare[--size] = 0;
    for (size_t i = 0; i < size; i++)
        bare[i] = (char)tolower((unsigned char)bare[i]);
    return bare;
}

struct sets {
    struct spelling *own, *other; /* entries of the training file's rows; those that test rows alone have */
    int64_t own_count, other_count;
};

static void sets_release(struct sets *sets)
{
    for (int64_t i = 0; i < sets->own_count; i++)
        free(sets->own[i].bare);
    for (int64_t i = 0; i < sets->other_count; i++)
        free(sets->other[i].bare);
    free(sets->own);
    free(sets->other);
}

static int add(struct spelling *list, int64_t *count, const struct dictionary *dictionary, int32_t entry)
{
    char *bare = bare_text(dictionary_text(dictionary, entry));
    if (bare)
        list[(*count)++] = (struct spelling){bare, entry};
    return bare ? 0 : -1;
}

static int sets_init(struct sets *sets, const struct table *table, const struct column *column)
{
    size_t entries = (size_t)column->dictionary.count;
    bool *seen = calloc(entries + 1, sizeof *seen);
    *sets = (struct sets){malloc((entries + 1) * sizeof *sets->own),
                          malloc((entries + 1) * sizeof *sets->own), 0, 0};
    int failed = seen && sets->own && sets->other ? 0 : -1;
    for (int64_t row = table->first; row < table->rows && !failed; row++) {
        int32_t entry = column->text[row];
        if (entry == CELL_IS_NUMBER || seen[entry] || column->dictionary.kind[entry] == CELL_MISSING)
            continue;
        seen[entry] = true;
        failed = row < table->appended ? add(sets->own, &sets->own_count, &column->dictionary, entry)
                                       : add(sets->other, &sets->other_count, &column->dictionary, entry);
    }
    free(seen);
    if (!failed) {
        qsort(sets->own, (size_t)sets->own_count, sizeof *sets->own, spelling_compare);
        qsort(sets->other, (size_t)sets->other_count, sizeof *sets->other, spelling_compare);
    }
    return failed;
}

static bool repeats(const struct spelling *list, int64_t count, const struct spelling *at)
{
    return (at > list && !strcmp(at[-1].bare, at->bare)) ||
           (at + 1 < list + count && !strcmp(at[1].bare, at->bare));
}

/* The one entry of the training rows that each of the others means; false: not one to one. */
static bool match(const struct sets *sets, int32_t *meant)
{
    for (int64_t i = 0; i < sets->other_count; i++) {
        const struct spelling *other = &sets->other[i];
        const struct spelling *own =
            bsearch(other, sets->own, (size_t)sets->own_count, sizeof *own, spelling_compare);
        if (!own || repeats(sets->own, sets->own_count, own) ||
            repeats(sets->other, sets->other_count, other))
            return false;
        meant[other->entry] = own->entry;
    }
    return sets->other_count > 0;
}

static void respell(struct table *table, struct column *column, const struct sets *sets, const int32_t *meant,
                    json_t *notes)
{
    struct mentions pairs = {0};
    for (int64_t i = 0; i < sets->other_count; i++) {
        int32_t entry = sets->other[i].entry;
        mentions_add(&pairs, "'%.40s' is '%.40s'", dictionary_text(&column->dictionary, entry),
                     dictionary_text(&column->dictionary, meant[entry]));
    }
    for (int64_t row = table->appended; row < table->rows; row++)
        if (column->text[row] != CELL_IS_NUMBER && meant[column->text[row]] >= 0)
            column->text[row] = meant[column->text[row]];
    note_add(notes, "%s: its classes are spelt otherwise than in %s: %s%s", table->appended_label,
             table->label, pairs.names.data ? pairs.names.data : "", pairs.count > 10 ? ", ..." : "");
    text_release(&pairs.names);
}

int classes_respell(struct table *table, int64_t target, json_t *notes, struct error *err)
{
    struct column *column = &table->columns[target];
    if (!table->appended_label || !column->text)
        return 0;
    struct sets sets;
    size_t entries = (size_t)column->dictionary.count;
    int32_t *meant = malloc((entries + 1) * sizeof *meant);
    int failed = sets_init(&sets, table, column) < 0 || !meant;
    for (size_t i = 0; i < entries && !failed; i++)
        meant[i] = -1;
    if (!failed && match(&sets, meant))
        respell(table, column, &sets, meant, notes);
    sets_release(&sets);
    free(meant);
    return failed ? error_set(err, ERROR_MEMORY, "%s: no memory for its classes", table->label) : 0;
}

/* "'a', 'b'": the classes that rows from..to-1 of data have. */
static void list_classes(struct text *text, const int32_t *label, int64_t from, int64_t to,
                         const json_t *names, bool *seen)
{
    int64_t classes = (int64_t)json_array_size(names), listed = 0;
    memset(seen, 0, (size_t)classes * sizeof *seen);
    for (int64_t row = from; row < to; row++)
        seen[label[row]] = true;
    for (int64_t c = 0; c < classes; c++)
        if (seen[c] && listed++ < LISTED_CLASSES)
            text_printf(text, "%s'%.40s'", listed > 1 ? ", " : "",
                        json_string_value(json_array_get(names, (size_t)c)));
    if (listed > LISTED_CLASSES)
        text_append(text, ", ...");
}

int classes_compare(const struct table *table, const int32_t *label, const json_t *names, struct error *err)
{
    int64_t own = table_own_rows(table) - table->first, all = table->rows - table->first, unknown = 0;
    size_t classes = json_array_size(names);
    bool *seen = calloc(2 * classes + 1, sizeof *seen);
    if (!seen)
        return error_set(err, ERROR_MEMORY, "%s: no memory for its classes", table->label);
    for (int64_t row = 0; row < own; row++)
        seen[label[row]] = true;
    for (int64_t row = own; row < all; row++)
        unknown += !seen[label[row]];
    int failed = 0;
    if (unknown) {
        struct text known, found;
        text_init(&known);
        text_init(&found);
        list_classes(&known, label, 0, own, names, seen + classes);
        list_classes(&found, label, own, all, names, seen + classes);
        failed =
            error_set(err, ERROR_USAGE,
                      "data.test_path: %lld rows of %s have a class that %s lacks: found %s, expected %s",
                      (long long)unknown, table->appended_label, table->label, found.data ? found.data : "",
                      known.data ? known.data : "");
        text_release(&known);
        text_release(&found);
    }
    free(seen);
    return failed;
}
