/* Inside search/: the entries of one rung, kept in order. A treap over the trials, its priorities a hash of
 * the trial number, so that every operation is O(log n) and its shape depends on the entries alone. */
#ifndef RUNG_SEARCH_RANKING_H
#define RUNG_SEARCH_RANKING_H

#include <stdbool.h>
#include <stdint.h>

/* Later classes rank behind; an entry that is gone does not count at all. */
enum entry_class { ENTRY_FINITE, ENTRY_NOT_FINITE, ENTRY_DIVERGED, ENTRY_GONE };

/* What an entry is ordered by; lower is better, whatever the goal was. */
struct entry_key {
    double value; /* 0 unless finite */
    double tie;   /* +infinity: none */
    enum entry_class class;
};

/* Strictly better by class, value and tie. */
bool entry_better(const struct entry_key *left, const struct entry_key *right);
/* The total order: then the lower trial number. */
bool entry_before(const struct entry_key *left, int64_t left_trial, const struct entry_key *right,
                  int64_t right_trial);

struct ranking_node;
struct ranking {
    struct ranking_node *nodes; /* by trial number; 0 is the empty tree */
    int64_t capacity;
    uint32_t root;
};

void ranking_release(struct ranking *ranking);
/* Makes trials up to `trial` insertable without further memory. 0, or -1 without memory. */
int ranking_reserve(struct ranking *ranking, int64_t trial);

/* An open entry is a candidate. A trial has at most one entry; closing and removing do nothing without one.
 */
void ranking_insert(struct ranking *ranking, int64_t trial, const struct entry_key *key, bool open);
void ranking_close(struct ranking *ranking, int64_t trial);
void ranking_remove(struct ranking *ranking, int64_t trial);

int64_t ranking_size(const struct ranking *ranking);
/* Number of entries strictly better than `key`. */
int64_t ranking_better(const struct ranking *ranking, const struct entry_key *key);
/* The first open entry's trial, or 0; `place` counts from 0 over all entries. */
int64_t ranking_first_open(const struct ranking *ranking, int64_t *place);

#endif
