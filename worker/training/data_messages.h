/* What is said about a table: the cells that do not fit, all in one message, and notes of what was decided.
 */
#ifndef RUNG_WORKER_TRAINING_DATA_MESSAGES_H
#define RUNG_WORKER_TRAINING_DATA_MESSAGES_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "worker/training/data_table.h"

/* Cells that do not fit, gathered over all columns for one message. */
struct misfits {
    struct text cells; /* lines of the message */
    int64_t count;
    int named;
    bool labels; /* some of them are missing labels */
};
void misfits_init(struct misfits *misfits);
void misfits_release(struct misfits *misfits);
/* Adds the cells of column `c`, of numbers, that are texts. */
void misfits_add_numbers(struct misfits *misfits, const struct table *table, int64_t c);
/* Adds the missing cells of column `c`, a target: every one is named. doubtful: "-" and its like are missing
 * too. */
void misfits_add_labels(struct misfits *misfits, const struct table *table, int64_t c, bool doubtful);
/* 0 when there are none; else -1 with all of them in err (ERROR_USAGE). */
int misfits_report(const struct misfits *misfits, const struct table *table, struct error *err);

#define MENTIONS_NAMED 10 /* columns named in a note */

/* Columns of which one thing is said, for one note about all of them. Zeroed is empty. */
struct mentions {
    struct text names; /* the first MENTIONS_NAMED */
    int64_t count;
};
void mentions_add(struct mentions *listing, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "LABEL: DONE 2 columns WHY: a, bREMEDY" to `notes` (may be NULL), if there are any; releases the mentions.
 */
void mentions_note(struct mentions *listing, const char *label, const char *done, const char *why,
                   const char *remedy, json_t *notes);

/* -1 with ERROR_USAGE: the number in that row of data is none in float32 once scaled by the training rows. */
int column_refuse_far(const struct table *table, int64_t c, int64_t row, double centre, double scale,
                      struct error *err);

/* Adds one printf-formatted note to `notes` (NULL: nothing), repaired to valid UTF-8. */
void note_add(json_t *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
