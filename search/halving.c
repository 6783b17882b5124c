/* Synchronous successive halving in brackets (Jamieson and Talwalkar 2016, "Non-stochastic Best Arm
 * Identification and Hyperparameter Optimization", with the rung sizes floor(n/eta)).
 *
 * A bracket waits at one rung. Its members there are all its trials at first, then the winners of the rung
 * below. Once every member has an entry or has ended, the rung is decided, and never again: the result
 * depends on the entries, not on when they came. Deciding waits for the next question, so that recovery can
 * first replay everything known. */
#include "search/rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_NONE, LIST_PRUNE, LIST_PROMOTE /* and the rung */ };

struct halving_trial {
    int64_t next, previous; /* in its list */
    int16_t list;
    int16_t rung; /* the highest it is a member of */
};

/* Trials, linked through struct halving_trial. */
struct trial_list {
    int64_t first, last;
};

struct bracket {
    int64_t first, added;  /* its trials are first .. first + added - 1 */
    int64_t members;       /* at `rung`, from rung 1 on */
    int64_t settled;       /* members with an entry there, or ended before it */
    int64_t next_complete; /* index + 1 of the next bracket to decide */
    int rung;
    bool is_queued;
};

struct halving {
    struct halving_trial *trials;            /* by number */
    struct entry_key *keys[STOPPING_LEVELS]; /* by rung, by number: what was entered */
    int64_t *order; /* by number: a bracket's members at its rung come first in its part */
    int64_t capacity;
    struct bracket *brackets;
    int64_t bracket_count, bracket_capacity;
    int64_t complete; /* index + 1 of the first bracket to decide */
    struct trial_list lists[LIST_PROMOTE + STOPPING_LEVELS];
};

int halving_create(struct stopping *stopping)
{
    stopping->halving = calloc(1, sizeof *stopping->halving);
    return stopping->halving ? 0 : -1;
}

static void halving_destroy(struct stopping *stopping)
{
    struct halving *halving = stopping->halving;
    if (!halving)
        return;
    for (int rung = 0; rung < STOPPING_LEVELS; rung++)
        free(halving->keys[rung]);
    free(halving->trials);
    free(halving->order);
    free(halving->brackets);
    free(halving);
}

/* Grows the array whose pointer is at `array`; on failure it stays as it was. */
static bool grow(void *array, int64_t capacity, size_t size)
{
    void *bytes;
    memcpy(&bytes, array, sizeof bytes); /* the pointer's own type is the caller's */
    bytes = realloc(bytes, (size_t)capacity * size);
    if (bytes)
        memcpy(array, &bytes, sizeof bytes);
    return bytes != NULL;
}

/* Pages of the upper rungs' keys stay untouched, and so cost nothing, until a trial gets there. */
static int reserve_trial(struct stopping *stopping, int64_t trial)
{
    struct halving *halving = stopping->halving;
    if (trial < halving->capacity)
        return 0;
    int64_t capacity = halving->capacity ? halving->capacity * 2 : 64;
    if (!grow(&halving->trials, capacity, sizeof *halving->trials) ||
        !grow(&halving->order, capacity, sizeof *halving->order))
        return -1;
    for (int rung = 0; rung < stopping->rung_count; rung++) {
        if (!grow(&halving->keys[rung], capacity, sizeof *halving->keys[rung]))
            return -1;
    }
    halving->capacity = capacity;
    return 0;
}

static struct bracket *bracket_of(const struct stopping *stopping, int64_t trial)
{
    return &stopping->halving->brackets[stopping_bracket(stopping, trial)];
}

static int halving_add(struct stopping *stopping, int64_t trial)
{
    struct halving *halving = stopping->halving;
    int64_t index = stopping_bracket(stopping, trial);
    if (reserve_trial(stopping, trial) != 0)
        return -1;
    if (index == halving->bracket_count) {
        if (index == halving->bracket_capacity) {
            int64_t capacity = halving->bracket_capacity ? halving->bracket_capacity * 2 : 4;
            if (!grow(&halving->brackets, capacity, sizeof *halving->brackets))
                return -1;
            halving->bracket_capacity = capacity;
        }
        halving->brackets[halving->bracket_count++] = (struct bracket){.first = trial};
    }
    halving->brackets[index].added++;
    halving->trials[trial] = (struct halving_trial){0};
    halving->order[trial] = trial;
    return 0;
}

static void list_remove(struct halving *halving, int64_t trial)
{
    struct halving_trial *leaving = &halving->trials[trial];
    struct trial_list *list = &halving->lists[leaving->list];
    if (leaving->list == LIST_NONE)
        return;
    *(leaving->previous ? &halving->trials[leaving->previous].next : &list->first) = leaving->next;
    *(leaving->next ? &halving->trials[leaving->next].previous : &list->last) = leaving->previous;
    leaving->list = LIST_NONE;
}

static void list_append(struct halving *halving, int64_t trial, int number)
{
    struct trial_list *list = &halving->lists[number];
    list_remove(halving, trial);
    halving->trials[trial].list = (int16_t)number;
    halving->trials[trial].next = 0;
    halving->trials[trial].previous = list->last;
    *(list->last ? &halving->trials[list->last].next : &list->first) = trial;
    list->last = trial;
}

/* Members at the bracket's rung. At rung 0 all that will be added, also those that are not yet. */
static int64_t bracket_members(const struct stopping *stopping, const struct bracket *bracket)
{
    if (bracket->rung > 0)
        return bracket->members;
    if (stopping->closed)
        return bracket->added;
    int64_t size = stopping->settings.bracket_size;
    int64_t left = stopping->settings.trials - bracket->first + 1;
    if (size < 1 || size > left)
        size = left;
    return size > bracket->added ? size : bracket->added;
}

static bool bracket_is_complete(const struct stopping *stopping, const struct bracket *bracket)
{
    return bracket->rung < stopping->rung_count - 1 && bracket->settled == bracket_members(stopping, bracket);
}

static void queue_if_complete(struct stopping *stopping, struct bracket *bracket)
{
    struct halving *halving = stopping->halving;
    if (bracket->is_queued || !bracket_is_complete(stopping, bracket))
        return;
    bracket->is_queued = true;
    bracket->next_complete = halving->complete;
    halving->complete = bracket - halving->brackets + 1;
}

/* Where a member stands at a rung that is decided now. A trial that ended while paused here is gone (unless
 * it diverged); one that was let go on before it ended keeps its entry. */
static struct entry_key standing(const struct stopping *stopping, int64_t trial, int rung)
{
    const struct stopping_trial *member = &stopping->trials[trial];
    struct entry_key key = {.tie = (double)INFINITY};
    bool has_entry = member->entered > rung;
    bool ended_here =
        member->ended && (!has_entry || (member->entered == rung + 1 && member->allowed == rung));
    if (has_entry && !ended_here)
        return stopping->halving->keys[rung][trial];
    key.class = member->diverged && member->entered >= rung ? ENTRY_DIVERGED : ENTRY_GONE;
    return key;
}

static bool is_paused(const struct stopping *stopping, int64_t number)
{
    const struct stopping_trial *trial = &stopping->trials[number];
    return !trial->stopped && !trial->ended && trial->entered < stopping->rung_count &&
           trial->allowed < trial->entered;
}

struct comparison {
    const struct stopping *stopping;
    int rung;
};

static int compare_members(const void *left, const void *right, void *user)
{
    const struct comparison *comparison = user;
    int64_t left_trial = *(const int64_t *)left, right_trial = *(const int64_t *)right;
    struct entry_key left_key = standing(comparison->stopping, left_trial, comparison->rung);
    struct entry_key right_key = standing(comparison->stopping, right_trial, comparison->rung);
    return entry_before(&left_key, left_trial, &right_key, right_trial) ? -1 : 1;
}

/* How many of the sorted members go on: max(1, floor(n/eta)), n without those that are gone. */
static int64_t winner_count(const struct stopping *stopping, const int64_t *members, int64_t count, int rung)
{
    int64_t n = 0;
    while (n < count && standing(stopping, members[n], rung).class != ENTRY_GONE)
        n++;
    int64_t winners = (int64_t)floor((double)n / stopping->settings.eta);
    return winners > 0 ? winners : n > 0 ? 1 : 0;
}

static void decide_rung(const struct stopping *stopping, struct bracket *bracket)
{
    struct halving *halving = stopping->halving;
    int rung = bracket->rung;
    int64_t count = bracket_members(stopping, bracket);
    int64_t *members = halving->order + bracket->first;
    qsort_r(members, (size_t)count, sizeof *members, compare_members, &(struct comparison){stopping, rung});
    int64_t winners = winner_count(stopping, members, count, rung);
    bracket->rung = rung + 1;
    bracket->members = winners;
    bracket->settled = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct stopping_trial *member = &stopping->trials[members[i]];
        bool paused = is_paused(stopping, members[i]);
        if (i >= winners) {
            if (paused)
                list_append(halving, members[i], LIST_PRUNE);
            continue;
        }
        halving->trials[members[i]].rung = (int16_t)(rung + 1);
        if (member->entered > rung + 1 || member->ended)
            bracket->settled++;
        else if (paused)
            list_append(halving, members[i], LIST_PROMOTE + rung);
    }
}

static void decide_complete(const struct stopping *stopping)
{
    struct halving *halving = stopping->halving;
    while (halving->complete) {
        struct bracket *bracket = &halving->brackets[halving->complete - 1];
        halving->complete = bracket->next_complete;
        bracket->is_queued = false;
        while (bracket_is_complete(stopping, bracket))
            decide_rung(stopping, bracket);
    }
}

static void halving_enter(struct stopping *stopping, int64_t trial, int rung, const struct entry_key *key)
{
    struct halving *halving = stopping->halving;
    struct bracket *bracket = bracket_of(stopping, trial);
    halving->keys[rung][trial] = *key;
    list_remove(halving, trial);
    if (halving->trials[trial].rung == rung && bracket->rung == rung) {
        bracket->settled++;
        queue_if_complete(stopping, bracket);
    } else if (halving->trials[trial].rung < rung && bracket->rung >= rung && is_paused(stopping, trial)) {
        /* It trained on although it had lost below. */
        list_append(halving, trial, LIST_PRUNE);
    }
}

static void halving_end(struct stopping *stopping, int64_t trial, bool diverged)
{
    (void)diverged; /* read from the trial when the rung is decided */
    struct bracket *bracket = bracket_of(stopping, trial);
    list_remove(stopping->halving, trial);
    if (stopping->halving->trials[trial].rung == bracket->rung &&
        stopping->trials[trial].entered <= bracket->rung) {
        bracket->settled++;
        queue_if_complete(stopping, bracket);
    }
}

/* The last bracket may be smaller than planned. */
static void halving_close(struct stopping *stopping)
{
    struct halving *halving = stopping->halving;
    if (halving->bracket_count > 0)
        queue_if_complete(stopping, &halving->brackets[halving->bracket_count - 1]);
}

static int64_t halving_next_promotion(const struct stopping *stopping, int64_t running)
{
    (void)running;
    decide_complete(stopping);
    for (int rung = stopping->rung_count - 2; rung >= 0; rung--) {
        if (stopping->halving->lists[LIST_PROMOTE + rung].first)
            return stopping->halving->lists[LIST_PROMOTE + rung].first;
    }
    return 0;
}

static int64_t halving_next_prune(const struct stopping *stopping, int64_t running)
{
    (void)running;
    decide_complete(stopping);
    return stopping->halving->lists[LIST_PRUNE].first;
}

static void halving_leave(struct stopping *stopping, int64_t trial, int rung)
{
    (void)rung;
    list_remove(stopping->halving, trial);
}

const struct stopping_rule halving_rule = {
    .add = halving_add,
    .enter = halving_enter,
    .end = halving_end,
    .close = halving_close,
    .next_promotion = halving_next_promotion,
    .next_prune = halving_next_prune,
    .leave = halving_leave,
    .destroy = halving_destroy,
};
