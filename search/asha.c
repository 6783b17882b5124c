/* ASHA: asynchronous successive halving (Li et al. 2020, algorithm 2), by promotion and by stopping. */
#include "search/rule.h"

#include <math.h>
#include <stdlib.h>

int asha_create(struct stopping *stopping)
{
    stopping->rungs = calloc((size_t)stopping->rung_count, sizeof *stopping->rungs);
    return stopping->rungs ? 0 : -1;
}

static void asha_destroy(struct stopping *stopping)
{
    for (int rung = 0; stopping->rungs && rung < stopping->rung_count; rung++)
        ranking_release(&stopping->rungs[rung]);
    free(stopping->rungs);
}

static int asha_add(struct stopping *stopping, int64_t trial)
{
    for (int rung = 0; rung < stopping->rung_count; rung++) {
        if (ranking_reserve(&stopping->rungs[rung], trial) != 0)
            return -1;
    }
    return 0;
}

static void asha_leave(struct stopping *stopping, int64_t trial, int rung)
{
    ranking_close(&stopping->rungs[rung], trial);
}

/* A diverged trial stays in the count of the rung it was running to, behind all others; any other takes its
 * entries with it. */
static void asha_end(struct stopping *stopping, int64_t trial, bool diverged)
{
    const struct stopping_trial *ending = &stopping->trials[trial];
    if (!diverged) {
        for (int rung = 0; rung < ending->entered; rung++)
            ranking_remove(&stopping->rungs[rung], trial);
        return;
    }
    struct ranking *ranking = &stopping->rungs[ending->allowed];
    ranking_remove(ranking, trial);
    ranking_insert(ranking, trial, &(struct entry_key){.class = ENTRY_DIVERGED, .tie = (double)INFINITY},
                   false);
}

static int64_t quota(const struct stopping *stopping, int64_t entries)
{
    return (int64_t)floor((double)entries / stopping->settings.eta);
}

static void promotion_enter(struct stopping *stopping, int64_t trial, int rung, const struct entry_key *key)
{
    /* A trial that jumped here is a candidate here only. */
    if (rung > 0)
        ranking_close(&stopping->rungs[rung - 1], trial);
    ranking_insert(&stopping->rungs[rung], trial, key, rung < stopping->rung_count - 1);
}

static int64_t promotion_next(const struct stopping *stopping, int64_t running)
{
    int64_t place, last_resort = 0;
    for (int rung = stopping->rung_count - 2; rung >= 0; rung--) {
        const struct ranking *ranking = &stopping->rungs[rung];
        int64_t trial = ranking_first_open(ranking, &place);
        if (trial && place < quota(stopping, ranking_size(ranking)))
            return trial;
        if (!last_resort)
            last_resort = trial;
    }
    /* Nothing more will enter any rung, and still no trial is trained to the end: the best of the highest
     * rung goes on. */
    return stopping->closed && running == 0 && stopping->finished == 0 ? last_resort : 0;
}

static int64_t promotion_prune(const struct stopping *stopping, int64_t running)
{
    int64_t place, trial = 0;
    if (!stopping->closed || running > 0 || promotion_next(stopping, running) != 0)
        return 0;
    for (int rung = stopping->rung_count - 2; rung >= 0 && !trial; rung--)
        trial = ranking_first_open(&stopping->rungs[rung], &place);
    return trial;
}

const struct stopping_rule asha_promotion_rule = {
    .add = asha_add,
    .enter = promotion_enter,
    .end = asha_end,
    .next_promotion = promotion_next,
    .next_prune = promotion_prune,
    .leave = asha_leave,
    .destroy = asha_destroy,
};

/* Goes on iff n < eta or fewer than floor(n/eta) entries are strictly better, n counting this one. */
static void stopping_enter_rung(struct stopping *stopping, int64_t trial, int rung,
                                const struct entry_key *key)
{
    struct ranking *ranking = &stopping->rungs[rung];
    struct stopping_trial *entering = &stopping->trials[trial];
    ranking_insert(ranking, trial, key, false);
    int64_t n = ranking_size(ranking);
    bool goes_on = (double)n < stopping->settings.eta || ranking_better(ranking, key) < quota(stopping, n);
    if (!goes_on)
        entering->stopped = true;
    else if (!entering->stopped && rung < stopping->rung_count - 1)
        entering->allowed = (int16_t)(rung + 1);
}

const struct stopping_rule asha_stopping_rule = {
    .add = asha_add,
    .enter = stopping_enter_rung,
    .end = asha_end,
    .leave = asha_leave,
    .destroy = asha_destroy,
};
