/* Counting the texts of a column and numbering them; see data_categories.h. */
#include "worker/training/data_categories.h"

#include <stdlib.h>
#include <string.h>

static int32_t missing_entry(const struct dictionary *dictionary)
{
    for (int32_t i = 0; i < dictionary->count; i++)
        if (dictionary->kind[i] == CELL_MISSING)
            return i;
    return -1;
}

static void summarise(struct tally *tally, int32_t entries)
{
    for (int32_t i = 0; i < entries; i++) {
        int64_t train = tally->train[i];
        if (train == 0) {
            tally->unseen += tally->rest[i];
            continue;
        }
        tally->kinds++;
        if (i == tally->missing)
            continue;
        tally->present += train;
        tally->rare += train < CATEGORY_ROWS;
        tally->repeated += train >= 2;
    }
}

int tally_init(struct tally *tally, const struct table *table, const struct column *column,
               const int64_t *rows, int64_t train_rows, int64_t all_rows)
{
    size_t entries = (size_t)column->dictionary.count;
    memset(tally, 0, sizeof *tally);
    tally->missing = missing_entry(&column->dictionary);
    tally->train = calloc(entries, sizeof *tally->train);
    tally->rest = calloc(entries, sizeof *tally->rest);
    if (!tally->train || !tally->rest) {
        tally_release(tally);
        return -1;
    }
    for (int64_t i = 0; i < all_rows; i++) {
        int32_t entry = column_entry(column, table->first + rows[i], tally->missing);
        ++(i < train_rows ? tally->train : tally->rest)[entry];
    }
    summarise(tally, column->dictionary.count);
    return 0;
}

void tally_release(struct tally *tally)
{
    free(tally->train);
    free(tally->rest);
    memset(tally, 0, sizeof *tally);
}

struct counted {
    const char *text;
    int64_t rows; /* equal for all: sorted by text alone */
    int32_t entry;
};

static int counted_compare(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;
    if (x->rows != y->rows)
        return x->rows < y->rows ? 1 : -1;
    return strcmp(x->text, y->text);
}

static int32_t *entries_of(struct counted *counted, int64_t count)
{
    qsort(counted, (size_t)count, sizeof *counted, counted_compare);
    int32_t *entry = malloc(((size_t)count + 1) * sizeof *entry);
    for (int64_t i = 0; i < count && entry; i++)
        entry[i] = counted[i].entry;
    return entry;
}

int32_t *tally_by_text(const struct tally *tally, const struct column *column)
{
    struct counted *counted = malloc(((size_t)tally->kinds + 1) * sizeof *counted);
    int64_t count = 0;
    for (int32_t i = 0; i < column->dictionary.count && counted; i++)
        if (tally->train[i])
            counted[count++] = (struct counted){dictionary_text(&column->dictionary, i), 0, i};
    int32_t *entry = counted ? entries_of(counted, count) : NULL;
    free(counted);
    return entry;
}

int numbering_init(struct numbering *numbering, const struct tally *tally, const struct table *table,
                   int64_t column)
{
    const struct dictionary *dictionary = &table->columns[column].dictionary;
    struct counted *counted = malloc(((size_t)tally->repeated + 1) * sizeof *counted);
    memset(numbering, 0, sizeof *numbering);
    numbering->column = column;
    for (int32_t i = 0; i < dictionary->count && counted; i++)
        if (tally->train[i] >= 2 && i != tally->missing)
            counted[numbering->count++] =
                (struct counted){dictionary_text(dictionary, i), tally->train[i], i};
    numbering->entry = counted ? entries_of(counted, numbering->count) : NULL;
    numbering->number_of = calloc((size_t)dictionary->count, sizeof *numbering->number_of);
    free(counted);
    if (!numbering->entry || !numbering->number_of) {
        numbering_release(numbering);
        return -1;
    }
    for (int64_t k = 0; k < numbering->count; k++)
        numbering->number_of[numbering->entry[k]] = (int32_t)k + 1;
    return 0;
}

void numbering_release(struct numbering *numbering)
{
    free(numbering->number_of);
    free(numbering->entry);
    memset(numbering, 0, sizeof *numbering);
}

json_t *numbering_to_json(const struct numbering *numbering, const struct table *table)
{
    const struct column *column = &table->columns[numbering->column];
    json_t *object = json_object(), *texts = json_array();
    int failed = json_object_set_new(object, "name", json_string(column->name));
    for (int64_t k = 0; k < numbering->count && !failed; k++)
        failed = json_array_append_new(texts, dictionary_to_json(&column->dictionary, numbering->entry[k]));
    failed |= json_object_set_new(object, "texts", texts);
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}
