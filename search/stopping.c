/* The stopping object: trials and their rungs. What happens in a rung is the rule's (asha.c, halving.c). */
#include "search/stopping.h"
#include "search/rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every trial runs to the one level. */
const struct stopping_rule no_stopping_rule = {0};

static const struct stopping_rule *const rules[] = {
    [STOPPING_NONE] = &no_stopping_rule,
    [STOPPING_SUCCESSIVE_HALVING] = &halving_rule,
    [STOPPING_ASHA_PROMOTION] = &asha_promotion_rule,
    [STOPPING_ASHA_STOPPING] = &asha_stopping_rule,
};

static int create_rule(struct stopping *stopping, struct error *err)
{
    const struct stopping_settings *settings = &stopping->settings;
    int result = 0;
    if (settings->kind == STOPPING_SUCCESSIVE_HALVING) {
        if (settings->trials < 1)
            return error_set(err, ERROR_USAGE, "successive halving needs the number of trials: set run_cap");
        if (settings->bracket_size < 0)
            return error_set(err, ERROR_USAGE, "bracket_size is %lld, must be 0 (all trials) or more",
                             (long long)settings->bracket_size);
        result = halving_create(stopping);
    } else if (settings->kind != STOPPING_NONE) {
        result = asha_create(stopping);
    }
    return result == 0 ? 0 : error_set(err, ERROR_MEMORY, "out of memory");
}

struct stopping *stopping_create(const struct stopping_settings *settings, struct error *err)
{
    struct stopping *stopping = calloc(1, sizeof *stopping);
    if (!stopping) {
        error_set(err, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    stopping->settings = *settings;
    stopping->rule = rules[settings->kind];
    stopping->rung_count = stopping_levels(settings, stopping->levels, err);
    if (stopping->rung_count < 0 || create_rule(stopping, err) != 0) {
        stopping_destroy(stopping);
        return NULL;
    }
    return stopping;
}

void stopping_destroy(struct stopping *stopping)
{
    if (!stopping)
        return;
    if (stopping->rule->destroy)
        stopping->rule->destroy(stopping);
    free(stopping->trials);
    free(stopping);
}

int stopping_rung_count(const struct stopping *stopping)
{
    return stopping->rung_count;
}

int64_t stopping_level(const struct stopping *stopping, int rung)
{
    return stopping->levels[rung];
}

int stopping_add(struct stopping *stopping, int64_t trial)
{
    if (trial != stopping->trial_count + 1)
        return -1;
    if (trial >= stopping->trial_capacity) {
        int64_t capacity = stopping->trial_capacity ? stopping->trial_capacity * 2 : 64;
        struct stopping_trial *trials = realloc(stopping->trials, (size_t)capacity * sizeof *trials);
        if (!trials)
            return -1;
        stopping->trials = trials;
        stopping->trial_capacity = capacity;
    }
    if (stopping->rule->add && stopping->rule->add(stopping, trial) != 0)
        return -1;
    stopping->trials[trial] = (struct stopping_trial){0};
    stopping->trial_count = trial;
    return 0;
}

static struct stopping_trial *trial_find(const struct stopping *stopping, int64_t trial)
{
    return trial >= 1 && trial <= stopping->trial_count ? &stopping->trials[trial] : NULL;
}

int64_t stopping_bracket(const struct stopping *stopping, int64_t trial)
{
    const struct stopping_settings *settings = &stopping->settings;
    if (settings->kind != STOPPING_SUCCESSIVE_HALVING || settings->bracket_size < 1)
        return 0;
    return (trial - 1) / settings->bracket_size;
}

int64_t stopping_target(const struct stopping *stopping, int64_t trial)
{
    const struct stopping_trial *found = trial_find(stopping, trial);
    return stopping->levels[found ? found->allowed : stopping->rung_count - 1];
}

/* Lower is better from here on; what cannot be compared ranks last whatever the goal. */
static struct entry_key make_key(const struct stopping_settings *settings, double value, double tie)
{
    struct entry_key key = {.class = isfinite(value) ? ENTRY_FINITE : ENTRY_NOT_FINITE,
                            .tie = (double)INFINITY};
    if (isfinite(value))
        key.value = settings->maximize ? -value : value;
    if (isfinite(tie))
        key.tie = settings->tie_minimize ? tie : -tie;
    return key;
}

static enum stopping_verdict verdict_now(const struct stopping *stopping, const struct stopping_trial *trial,
                                         int rung)
{
    if (rung == stopping->rung_count - 1 && trial->entered == stopping->rung_count)
        return STOPPING_FINISH;
    if (trial->stopped || trial->ended)
        return STOPPING_STOP;
    return trial->allowed > rung ? STOPPING_CONTINUE : STOPPING_PAUSE;
}

enum stopping_verdict stopping_enter(struct stopping *stopping, int64_t trial, int rung, double value,
                                     double tie)
{
    struct stopping_trial *found = trial_find(stopping, trial);
    if (!found)
        return STOPPING_STOP;
    if (rung == found->entered && rung < stopping->rung_count && !found->ended) {
        struct entry_key key = make_key(&stopping->settings, value, tie);
        found->entered++;
        if (found->allowed < rung)
            found->allowed = (int16_t)rung;
        if (found->entered == stopping->rung_count)
            stopping->finished++;
        if (stopping->rule->enter)
            stopping->rule->enter(stopping, trial, rung, &key);
    }
    return verdict_now(stopping, found, rung);
}

void stopping_end(struct stopping *stopping, int64_t trial, bool diverged)
{
    struct stopping_trial *found = trial_find(stopping, trial);
    if (!found || found->ended || found->stopped || found->entered == stopping->rung_count)
        return;
    if (stopping->rule->end)
        stopping->rule->end(stopping, trial, diverged);
    found->ended = true;
    found->diverged = diverged;
}

void stopping_close(struct stopping *stopping)
{
    if (stopping->closed)
        return;
    stopping->closed = true;
    if (stopping->rule->close)
        stopping->rule->close(stopping);
}

int64_t stopping_next_promotion(const struct stopping *stopping, int64_t running)
{
    return stopping->rule->next_promotion ? stopping->rule->next_promotion(stopping, running) : 0;
}

int64_t stopping_promote(struct stopping *stopping, int64_t trial)
{
    struct stopping_trial *found = trial_find(stopping, trial);
    if (found && !found->ended && found->entered > 0 && found->entered < stopping->rung_count) {
        found->allowed = found->entered;
        found->stopped = false;
        if (stopping->rule->leave)
            stopping->rule->leave(stopping, trial, found->entered - 1);
    }
    return stopping_target(stopping, trial);
}

int64_t stopping_next_prune(const struct stopping *stopping, int64_t running)
{
    return stopping->rule->next_prune ? stopping->rule->next_prune(stopping, running) : 0;
}

void stopping_prune(struct stopping *stopping, int64_t trial)
{
    struct stopping_trial *found = trial_find(stopping, trial);
    if (!found || found->ended || found->entered == stopping->rung_count)
        return;
    found->stopped = true;
    if (found->entered == 0)
        return;
    found->allowed = (int16_t)(found->entered - 1); /* also where a replayed verdict let it go on */
    if (stopping->rule->leave)
        stopping->rule->leave(stopping, trial, found->entered - 1);
}
