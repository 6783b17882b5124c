/* Columns of texts: which of them are one-hot, which are numbered for an embedding, which say nothing. */
#ifndef RUNG_WORKER_TRAINING_DATA_CATEGORIES_H
#define RUNG_WORKER_TRAINING_DATA_CATEGORIES_H

#include "base/json.h"
#include "worker/training/data_table.h"

#include <stdint.h>

/* Numbers of a column's texts: 1, 2, ... by descending frequency in training, ties by bytes. 0 is any other:
 * a missing one, one that training lacks, and one that a single training row has. That row could teach its
 * own text nothing that holds elsewhere, but teaches what a rare or unknown text means. */
struct numbering {
    int64_t column;
    int32_t *number_of; /* (entries of the column's dictionary) */
    int32_t *entry;     /* (count) the dictionary's entry of number k + 1 */
    int64_t count;      /* cardinality is one more */
};

/* How often each text of a column comes. */
struct tally {
    int64_t *train, *rest; /* (entries of the dictionary) rows; all missing texts are counted as `missing` */
    int32_t missing;       /* an entry that means missing, or -1 */
    int64_t kinds;         /* entries that training has, the missing one among them */
    int64_t rare;     /* texts that fewer than CATEGORY_ROWS training rows have, the missing one not among
                         them */
    int64_t repeated; /* texts that two training rows have, the missing one not among them */
    int64_t present;  /* training rows with a text that is not missing */
    int64_t unseen;   /* rows of the rest whose text training lacks */
};

/* Fewer training rows than this hardly tell what a text means. */
#define CATEGORY_ROWS 3

/* rows: the first train_rows of them train. The column's cells all have an entry. -1 without memory. */
int tally_init(struct tally *tally, const struct table *table, const struct column *column,
               const int64_t *rows, int64_t train_rows, int64_t all_rows);
void tally_release(struct tally *tally);

/* The entries that training has, by their texts' bytes: (tally->kinds). NULL without memory; free() it. */
int32_t *tally_by_text(const struct tally *tally, const struct column *column);
/* -1 without memory. */
int numbering_init(struct numbering *numbering, const struct tally *tally, const struct table *table,
                   int64_t column);
void numbering_release(struct numbering *numbering);
json_t *numbering_to_json(const struct numbering *numbering, const struct table *table);

/* The entry a cell counts as: the tally's for all that are missing. */
static inline int32_t column_entry(const struct column *column, int64_t row, int32_t missing)
{
    int32_t entry = column->text[row];
    return column->dictionary.kind[entry] == CELL_MISSING ? missing : entry;
}

#endif
