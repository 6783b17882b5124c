/* Early stopping: rung ladders, synchronous successive halving and ASHA (Li et al. 2020, "A System for
 * Massively Parallel Hyperparameter Tuning", algorithm 2), as one pure object rebuilt from the stored rung
 * entries.
 *
 * Levels: min_iter*eta^k while below max_iter (by multiplication, rounded down, equal ones once), then
 * max_iter; K = their number; rung r is levels[r]. A trial's curve enters rung r with its FIRST report at or
 * beyond levels[r]. The object holds per trial: the entries made, how far it was promoted, whether it ended.
 * It knows no clock and no workers.
 *
 * Order of entries: by value (goal), then by tie value (lower is better when tie_minimize), then trial
 * number; NaN and infinities last whatever the goal (infinite tie values likewise), diverged trials behind
 * those.
 *
 * Protocol for the owner (the engine):
 * - stopping_add: when a trial is created (in number order, without gaps)
 * - stopping_target: the level its next attempt runs to ("until")
 * - stopping_enter: for each rung its reports have reached, in order; the verdict says what now
 * - stopping_end: when the trial has ended other than by a verdict STOP or FINISH
 * - stopping_next_promotion: a slot is free: which paused trial goes on, if any; then stopping_promote
 * - stopping_next_prune: trials paused that can never go on: end them as pruned (until it returns 0)
 *
 * Recovery: add all trials, replay the entries in the order they were made, each followed by
 * stopping_promote where the trial was let go on from it; then stopping_end and stopping_prune for the
 * trials that ended so. The state is then the one before; for halving in whatever order different trials are
 * replayed. In ASHA stopping a verdict depends on the entries before it: stopping_promote and stopping_prune
 * restore the one that was given.
 *
 * Cost: O(log n) a call (asha), O(1) amortised and one sort a rung (halving). Memory is taken in stopping_add
 * only. */
#ifndef RUNG_SEARCH_STOPPING_H
#define RUNG_SEARCH_STOPPING_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stopping_kind {
    STOPPING_NONE,               /* every trial runs to max_iter (one level) */
    STOPPING_SUCCESSIVE_HALVING, /* synchronous, in brackets of bracket_size trials */
    STOPPING_ASHA_PROMOTION,     /* pause at each rung, promote the best floor(n/eta) */
    STOPPING_ASHA_STOPPING,      /* never pause: go on or stop at each rung */
};

struct stopping_settings {
    enum stopping_kind kind;
    int64_t min_iter, max_iter; /* 1 <= min_iter <= max_iter */
    double eta;                 /* > 1 */
    int64_t trials;             /* n of the sweep: run_cap or the grid's size; -1 unbounded (asha, none) */
    int64_t bracket_size;       /* successive_halving: trials of a bracket; 0 = all */
    bool maximize;              /* goal of the value */
    bool tie_minimize;          /* goal of the tie value */
};

enum stopping_verdict {
    STOPPING_CONTINUE, /* train on to stopping_target */
    STOPPING_PAUSE,    /* checkpoint and free the slot; may be promoted */
    STOPPING_STOP,     /* pruned */
    STOPPING_FINISH,   /* the top level is reached: the trial is completed */
};

/* At most STOPPING_LEVELS levels (eta > 1 only slightly could give more: an error). */
#define STOPPING_LEVELS 256
/* Fills levels (ascending); returns K, or -1 with err. */
int stopping_levels(const struct stopping_settings *settings, int64_t levels[STOPPING_LEVELS],
                    struct error *err);

struct stopping;
struct stopping *stopping_create(const struct stopping_settings *settings, struct error *err);
void stopping_destroy(struct stopping *stopping);

int stopping_rung_count(const struct stopping *stopping);
int64_t stopping_level(const struct stopping *stopping, int rung);

/* Trial numbers count from 1 and are added in order. 0, or -1 without memory. */
int stopping_add(struct stopping *stopping, int64_t trial);
/* Bracket of a trial, from 0. */
int64_t stopping_bracket(const struct stopping *stopping, int64_t trial);
/* The level the trial may train to now: the first it has not entered among those it was let go to. For ASHA
 * promotion and halving: level 0 at first, the next after each promotion; a trial paused at rung r keeps
 * levels[r]. For ASHA stopping and none: the next level not entered. */
int64_t stopping_target(const struct stopping *stopping, int64_t trial);

/* Entry of `trial` at `rung` (exactly its next rung). Repeating an entry changes nothing and returns the
 * verdict as it stands now. value may be NaN. A trial that jumped over rungs enters each of them in order
 * with the same value. */
enum stopping_verdict stopping_enter(struct stopping *stopping, int64_t trial, int rung, double value,
                                     double tie);

/* The trial ended without a verdict. `diverged`: it ranks last in the rung it was running to, and counts in n
 * there. Otherwise (crashed, lost, out of memory, cancelled) it leaves every candidate list and n; in halving
 * a rung from which it had already been let go on keeps its entry, since that rung is decided once. */
void stopping_end(struct stopping *stopping, int64_t trial, bool diverged);

/* No further trial will be added (run_cap or the space is used up, or the sweep is draining). */
void stopping_close(struct stopping *stopping);

/* The trial that should go on now, or 0. ASHA promotion: from the rung below the top downwards, the best not
 * yet promoted among the best floor(n/eta) of the entries there. When closed, nothing is running (the caller
 * passes running = number of trials running or waiting to run) and no trial has entered the top: the best of
 * the highest rung, again and again. Halving: the members of a complete rung's best max(1, floor(n_k/eta));
 * brackets overlap, so new trials may start whenever there is nothing to promote. */
int64_t stopping_next_promotion(const struct stopping *stopping, int64_t running);
/* Lets the trial go to its next level, also one that ASHA stopping stopped. Returns that level. */
int64_t stopping_promote(struct stopping *stopping, int64_t trial);

/* A paused trial that can no longer be promoted, or 0; mark it with stopping_prune (for paused trials only).
 * Halving: losers of a complete rung. ASHA promotion: when closed, nothing running, and no promotion is left.
 */
int64_t stopping_next_prune(const struct stopping *stopping, int64_t running);
void stopping_prune(struct stopping *stopping, int64_t trial);

#endif
