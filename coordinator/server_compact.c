/* From the last record to the first: whoever comes with a key that was seen is superseded. */
#include "coordinator/server_compact.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

/* Below this many records there is nothing to gain. */
#define FEW_RECORDS 8

void compactor_release(struct compactor *compactor)
{
    free(compactor->table);
    *compactor = (struct compactor){0};
}

static bool has_key(const struct record *record)
{
    return record->type == RECORD_TRIAL || record->type == RECORD_ATTEMPT;
}

/* A trial is its own attempt 0. */
static void key_of(const struct record *record, int64_t key[2])
{
    bool is_trial = record->type == RECORD_TRIAL;
    key[0] = is_trial ? record->trial.number : record->attempt.trial;
    key[1] = is_trial ? 0 : record->attempt.number;
}

static int table_prepare(struct compactor *compactor, size_t records)
{
    size_t size = compactor->size ? compactor->size : 64;
    while (size < 2 * records) {
        size *= 2;
    }
    if (size > compactor->size) {
        size_t *table = realloc(compactor->table, size * sizeof *table);
        if (!table) {
            return -1;
        }
        compactor->table = table;
        compactor->size = size;
    }
    memset(compactor->table, 0, compactor->size * sizeof *compactor->table);
    return 0;
}

/* The place in the table of a record's key: that of a later record with the same, or the free one for it. */
static size_t *place_find(const struct compactor *compactor, const struct record *records,
                          const struct record *record)
{
    int64_t key[2], other[2];
    key_of(record, key);
    size_t at = fnv1a64(key, sizeof key) & (compactor->size - 1);
    for (; compactor->table[at] != 0; at = (at + 1) & (compactor->size - 1)) {
        key_of(&records[compactor->table[at] - 1], other);
        if (key[0] == other[0] && key[1] == other[1]) {
            break;
        }
    }
    return &compactor->table[at];
}

/* What stays gathers at the end of the array, behind the walk, and moves to its front at last. */
void compactor_run(struct compactor *compactor, struct effects *effects)
{
    struct record *records = effects->records;
    size_t count = effects->record_count, first = count;
    if (count < FEW_RECORDS || table_prepare(compactor, count)) {
        return;
    }
    for (size_t i = count; i-- > 0;) {
        size_t *place = has_key(&records[i]) ? place_find(compactor, records, &records[i]) : NULL;
        if (place && *place != 0) {
            record_release(&records[i]);
            continue;
        }
        records[--first] = records[i];
        if (place) {
            *place = first + 1;
        }
    }
    memmove(records, records + first, (count - first) * sizeof *records);
    effects->record_count = count - first;
}
