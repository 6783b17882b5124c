/* Inside search/: what a stopping rule is, and the trials that all rules share.
 *
 * A trial may run to level `allowed`. It runs while allowed == entered, is paused while allowed == entered -
 * 1, and has finished once it has entered every rung. */
#ifndef RUNG_SEARCH_RULE_H
#define RUNG_SEARCH_RULE_H

#include "search/ranking.h"
#include "search/stopping.h"

struct stopping_trial {
    int16_t entered; /* rungs entered so far: its next is this one */
    int16_t allowed; /* the rung it may run to */
    bool stopped;    /* by a verdict or pruned */
    bool ended;      /* without a verdict */
    bool diverged;
};

struct stopping_rule {
    /* Room for one more trial, so that nothing later needs memory; -1 without. */
    int (*add)(struct stopping *stopping, int64_t trial);
    /* The trial's entered and allowed are up to date. */
    void (*enter)(struct stopping *stopping, int64_t trial, int rung, const struct entry_key *key);
    /* Before the trial is marked as ended. */
    void (*end)(struct stopping *stopping, int64_t trial, bool diverged);
    void (*close)(struct stopping *stopping);
    int64_t (*next_promotion)(const struct stopping *stopping, int64_t running);
    int64_t (*next_prune)(const struct stopping *stopping, int64_t running);
    /* No longer a candidate at `rung`: promoted or pruned. */
    void (*leave)(struct stopping *stopping, int64_t trial, int rung);
    void (*destroy)(struct stopping *stopping);
};

struct stopping {
    struct stopping_settings settings;
    const struct stopping_rule *rule;
    int64_t levels[STOPPING_LEVELS];
    int rung_count;
    struct stopping_trial *trials; /* by number; [0] is unused */
    int64_t trial_count, trial_capacity;
    bool closed;
    int64_t finished;        /* trials that entered the top rung */
    struct ranking *rungs;   /* asha: one a rung */
    struct halving *halving; /* successive halving */
};

extern const struct stopping_rule no_stopping_rule, asha_promotion_rule, asha_stopping_rule, halving_rule;

int asha_create(struct stopping *stopping);
int halving_create(struct stopping *stopping);

#endif
