/* Equal rows, by hashes that are verified; see data_duplicates.h. */
#include "worker/training/data_duplicates.h"

#include "worker/training/data.h"
#include "worker/training/data_build.h"
#include "worker/training/data_columns.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ODD 0x9e3779b97f4a7c15u /* 2^64 over the golden ratio */

static uint64_t number_bits(double number)
{
    uint64_t bits;
    number += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &number, sizeof bits);
    return isnan(number) ? 1 : bits;
}

/* Equal for equal cells: -0 is 0, and a missing one like any other that is. */
static uint64_t cell_bits(const struct column *column, int64_t row)
{
    if (!column->text || column->text[row] == CELL_IS_NUMBER)
        return number_bits(column->number[row]);
    return column->dictionary.kind[column->text[row]] == CELL_MISSING ? 1
                                                                      : (uint64_t)column->text[row] << 2 | 2;
}

static uint64_t mix(uint64_t hash, uint64_t bits)
{
    hash = (hash ^ bits) * ODD;
    return hash ^ hash >> 29;
}

static void hash_column(const struct table *table, const struct column *column, uint64_t *hash)
{
    int64_t first = table->first, rows = table->rows - first;
    if (column->text) {
        for (int64_t i = 0; i < rows; i++)
            hash[i] = mix(hash[i], cell_bits(column, first + i));
        return;
    }
    const double *number = column->number + first;
    for (int64_t i = 0; i < rows; i++)
        hash[i] = mix(hash[i], number_bits(number[i]));
}

/* Which columns are compared. */
struct comparison {
    const struct table *table;
    bool *compared; /* (columns) */
    const uint64_t *hash;
};

static bool rows_equal(const struct comparison *comparison, int64_t a, int64_t b)
{
    const struct table *table = comparison->table;
    if (comparison->hash[a] != comparison->hash[b])
        return false;
    for (int64_t c = 0; c < table->column_count; c++)
        if (comparison->compared[c] && cell_bits(&table->columns[c], a + table->first) !=
                                           cell_bits(&table->columns[c], b + table->first))
            return false;
    return true;
}

/* first[row]: the earliest equal row. Open addressing over row numbers. -1 without memory. */
static int find_first(const struct comparison *comparison, int64_t rows, int64_t *first)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)rows)
        slots *= 2;
    int64_t *slot = malloc(slots * sizeof *slot);
    if (!slot)
        return -1;
    memset(slot, 0xff, slots * sizeof *slot);
    for (int64_t row = 0; row < rows; row++) {
        size_t at = (comparison->hash[row] * ODD >> 20) & (slots - 1);
        while (slot[at] >= 0 && !rows_equal(comparison, slot[at], row))
            at = (at + 1) & (slots - 1);
        if (slot[at] < 0)
            slot[at] = row;
        first[row] = slot[at];
    }
    free(slot);
    return 0;
}

static bool is_target(const struct roles *roles, int64_t c)
{
    for (int64_t i = 0; i < roles->one_hot_count; i++)
        if (roles->one_hot[i] == c)
            return true;
    return c == roles->target;
}

static int find(struct duplicates *duplicates, const struct roles *roles, struct comparison *comparison,
                uint64_t *hash, int64_t *like)
{
    const struct table *table = comparison->table;
    int64_t rows = table->rows - table->first;
    for (int64_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        bool index = column_is_unnamed(table, c) && column_counts_rows(table, column);
        comparison->compared[c] = !index && !roles->dropped[c] && !is_target(roles, c);
        if (comparison->compared[c])
            hash_column(table, column, hash);
    }
    if (find_first(comparison, rows, like) < 0)
        return -1;
    hash_column(table, &table->columns[roles->target], hash);
    comparison->compared[roles->target] = true;
    if (find_first(comparison, rows, duplicates->first) < 0)
        return -1;
    for (int64_t row = 0; row < rows; row++) {
        duplicates->count += duplicates->first[row] != row;
        duplicates->contradicted += like[row] != row && duplicates->first[row] == row;
    }
    return 0;
}

int duplicates_find(struct duplicates *duplicates, const struct table *table, const struct roles *roles,
                    struct error *err)
{
    size_t rows = (size_t)(table->rows - table->first);
    uint64_t *hash = calloc(rows, sizeof *hash);
    int64_t *like = malloc(rows * sizeof *like);
    struct comparison comparison = {table, calloc((size_t)table->column_count, sizeof(bool)), hash};
    *duplicates = (struct duplicates){.first = malloc(rows * sizeof *duplicates->first)};
    int failed = !hash || !like || !comparison.compared || !duplicates->first ||
                 find(duplicates, roles, &comparison, hash, like) < 0;
    free(hash);
    free(like);
    free(comparison.compared);
    if (!failed)
        return 0;
    duplicates_release(duplicates);
    return error_set(err, ERROR_MEMORY, "%s: no memory to compare its rows", table->label);
}

void duplicates_release(struct duplicates *duplicates)
{
    free(duplicates->first);
    memset(duplicates, 0, sizeof *duplicates);
}

int duplicates_drop(struct duplicates *duplicates, struct table *table, json_t *notes, struct error *err)
{
    int64_t rows = table->rows - table->first, own = table_own_rows(table) - table->first, dropped = 0;
    bool *keep = malloc((size_t)rows * sizeof *keep);
    int64_t *moved_to = malloc((size_t)rows * sizeof *moved_to);
    int failed = keep && moved_to ? 0 : -1;
    for (int64_t row = 0; row < rows && !failed; row++) {
        keep[row] = row >= own || duplicates->first[row] == row;
        moved_to[row] = row - dropped;
        dropped += !keep[row];
        if (keep[row])
            duplicates->first[row - dropped] = moved_to[duplicates->first[row]];
    }
    if (!failed && dropped) {
        table_keep_rows(table, keep);
        duplicates->count -= dropped;
        note_add(notes, "%s: dropped %lld rows equal to an earlier one in every column (data.deduplicate)",
                 table->label, (long long)dropped);
    }
    free(keep);
    free(moved_to);
    return failed ? error_set(err, ERROR_MEMORY, "%s: no memory to drop rows", table->label) : 0;
}

/* The end of "1 row is", "2 rows are". */
static const char *rows_are(int64_t count)
{
    return count == 1 ? " is" : "s are";
}

int duplicates_note(const struct duplicates *duplicates, const struct table *table, const unsigned char *part,
                    json_t *notes, struct error *err)
{
    int64_t rows = table->rows - table->first, leaked = 0;
    if (duplicates->contradicted)
        note_add(notes,
                 "%s: %lld row%s equal to an earlier one in every column but the target, which "
                 "differs",
                 table->label, (long long)duplicates->contradicted, rows_are(duplicates->contradicted));
    if (duplicates->count == 0)
        return 0;
    bool *trained = calloc((size_t)rows, sizeof *trained);
    if (!trained)
        return error_set(err, ERROR_MEMORY, "%s: no memory to compare its rows", table->label);
    for (int64_t row = 0; row < rows; row++)
        trained[duplicates->first[row]] |= part[row] == SPLIT_TRAIN;
    for (int64_t row = 0; row < rows; row++)
        leaked += part[row] != SPLIT_TRAIN && trained[duplicates->first[row]];
    free(trained);
    note_add(notes,
             "%s: %lld row%s equal to an earlier one in every column; %lld of validation and "
             "test equal one that trains, which flatters the score (data.deduplicate: true drops "
             "such rows)",
             table->label, (long long)duplicates->count, rows_are(duplicates->count), (long long)leaked);
    return 0;
}
