/* A world for stopping rules: a few slots train trials in a random order, on curves that are a function of
 * (seed, trial, rung) alone, with crashes, divergence, NaN, ties and jumps. It keeps its own account of every
 * trial, and all inputs, so that a test can compare with a reference and replay. */
#ifndef TESTS_STOPPING_WORLD_H
#define TESTS_STOPPING_WORLD_H

#include "search/stopping.h"

enum { WORLD_RUNGS = 8, WORLD_TRIALS = 512 };

enum world_state { WORLD_RUNNING, WORLD_PAUSED, WORLD_FINISHED, WORLD_PRUNED, WORLD_CRASHED, WORLD_DIVERGED };

struct world_trial {
    enum world_state state;
    int entered;
    double value[WORLD_RUNGS], tie[WORLD_RUNGS];
    bool promoted[WORLD_RUNGS]; /* was let go on from this rung */
    int order[WORLD_RUNGS];     /* of the entry, over the whole world */
};

struct world {
    struct stopping *stopping;
    struct stopping_settings settings;
    uint64_t seed;       /* of curves and fates */
    uint64_t order_seed; /* of who reports next */
    uint32_t steps;
    double faults; /* share of crashes, and as many of divergence, NaN and jumps */
    int64_t slots, limit, count;
    int entries;
    bool closed;
    struct world_trial trials[WORLD_TRIALS + 1];
    /* Asked before each choice of a slot, with the rule's answer. */
    void (*check_f)(struct world *world, int64_t promotion, int64_t running);
};

void world_start(struct world *world, const struct stopping_settings *settings, uint64_t seed, int64_t limit,
                 int64_t slots);
void world_stop(struct world *world);
/* Fills the slots, lets one running trial report, prunes. False when nothing runs any more. */
bool world_step(struct world *world);
/* Steps to the end and checks that every trial has ended. */
void world_run(struct world *world);
int64_t world_running(const struct world *world);

/* The value and the tie value of a curve at a rung. */
double world_value(const struct world *world, int64_t trial, int rung);
double world_tie(const struct world *world, int64_t trial, int rung);
/* How many rungs the trial enters when it trains to `rung` (1, 2: it jumps, 0: it ends there, see the state).
 */
int world_fate(const struct world *world, int64_t trial, int rung, enum world_state *state);

/* A second object fed from the account: entries in order, promotions, ends. Trials one after the other if
 * `by_trial`. */
struct stopping *world_replay(const struct world *world, bool by_trial);
/* Every answer of the two objects is the same. */
void world_compare(const struct world *world, struct stopping *other);

/* Order of entries, written a second time: goal, then the tie, then the number; not finite last. */
bool world_before(const struct world *world, int64_t left, int64_t right, int rung);

#endif
