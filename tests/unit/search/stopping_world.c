#include "stopping_world.h"
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { STREAM_QUALITY, STREAM_NOISE, STREAM_TIE, STREAM_FATE, STREAM_NAN, STREAM_ORDER };

static double unit(const struct world *world, int64_t trial, int stream, int rung)
{
    return random_unit(world->seed, (uint32_t)trial, (uint64_t)stream, (uint32_t)rung);
}

double world_value(const struct world *world, int64_t trial, int rung)
{
    double odd = unit(world, trial, STREAM_NAN, rung);
    if (odd < world->faults / 2)
        return (double)NAN;
    if (odd < world->faults)
        return odd < world->faults * 0.75 ? (double)INFINITY : -(double)INFINITY;
    double value =
        unit(world, trial, STREAM_QUALITY, 0) + unit(world, trial, STREAM_NOISE, rung) / (1 + rung) - 0.7;
    return nearbyint(value * 50) / 50; /* coarse, so that ties and zeros of both signs are common */
}

double world_tie(const struct world *world, int64_t trial, int rung)
{
    double tie = nearbyint(unit(world, trial, STREAM_TIE, rung) * 4);
    return tie == 4 ? (double)NAN : tie;
}

int world_fate(const struct world *world, int64_t trial, int rung, enum world_state *state)
{
    double fate = unit(world, trial, STREAM_FATE, rung);
    *state = WORLD_RUNNING;
    if (fate < world->faults)
        *state = WORLD_CRASHED;
    else if (fate < 2 * world->faults)
        *state = WORLD_DIVERGED;
    if (*state != WORLD_RUNNING)
        return 0;
    return fate < 3 * world->faults && rung + 2 < stopping_rung_count(world->stopping) ? 2 : 1;
}

void world_start(struct world *world, const struct stopping_settings *settings, uint64_t seed, int64_t limit,
                 int64_t slots)
{
    struct error err;
    *world = (struct world){.settings = *settings,
                            .seed = seed,
                            .order_seed = seed,
                            .limit = limit,
                            .slots = slots,
                            .faults = 0.04};
    world->stopping = stopping_create(settings, &err);
    if (!world->stopping)
        fail_msg("%s", err.message);
    assert_true(stopping_rung_count(world->stopping) <= WORLD_RUNGS);
    assert_true(limit <= WORLD_TRIALS);
}

void world_stop(struct world *world)
{
    stopping_destroy(world->stopping);
    world->stopping = NULL;
}

int64_t world_running(const struct world *world)
{
    int64_t running = 0;
    for (int64_t trial = 1; trial <= world->count; trial++)
        running += world->trials[trial].state == WORLD_RUNNING;
    return running;
}

/* One slot takes a promoted trial, or a new one; false when there is neither. */
static bool fill_slot(struct world *world)
{
    int64_t running = world_running(world);
    int64_t trial = stopping_next_promotion(world->stopping, running);
    if (world->check_f)
        world->check_f(world, trial, running);
    if (trial) {
        struct world_trial *promoted = &world->trials[trial];
        assert_int_equal(promoted->state, WORLD_PAUSED);
        assert_int_equal(stopping_promote(world->stopping, trial),
                         stopping_level(world->stopping, promoted->entered));
        promoted->state = WORLD_RUNNING;
        promoted->promoted[promoted->entered - 1] = true;
        return true;
    }
    if (world->count < world->limit) {
        assert_int_equal(stopping_add(world->stopping, ++world->count), 0);
        return true;
    }
    if (!world->closed)
        stopping_close(world->stopping);
    bool first = !world->closed;
    world->closed = true;
    return first && stopping_next_promotion(world->stopping, running) != 0;
}

static void report(struct world *world, int64_t trial)
{
    struct world_trial *reporting = &world->trials[trial];
    int rung = reporting->entered;
    enum world_state ends;
    int entering = world_fate(world, trial, rung, &ends);
    enum stopping_verdict verdict = STOPPING_CONTINUE;
    if (!entering) {
        stopping_end(world->stopping, trial, ends == WORLD_DIVERGED);
        reporting->state = ends;
        return;
    }
    for (int i = 0; i < entering && verdict != STOPPING_STOP; i++, rung++) {
        reporting->value[rung] = world_value(world, trial, reporting->entered - i);
        reporting->tie[rung] = world_tie(world, trial, reporting->entered - i);
        reporting->order[rung] = world->entries++;
        reporting->entered++;
        verdict = stopping_enter(world->stopping, trial, rung, reporting->value[rung], reporting->tie[rung]);
        assert_int_equal(stopping_enter(world->stopping, trial, rung, 123, 456), verdict); /* a repeat */
        reporting->promoted[rung] = verdict == STOPPING_CONTINUE;
    }
    switch (verdict) {
    case STOPPING_CONTINUE:
        break;
    case STOPPING_PAUSE:
        reporting->state = WORLD_PAUSED;
        break;
    case STOPPING_STOP:
        reporting->state = WORLD_PRUNED;
        break;
    case STOPPING_FINISH:
        reporting->state = WORLD_FINISHED;
        break;
    }
}

bool world_step(struct world *world)
{
    while (world_running(world) < world->slots && fill_slot(world))
        continue;
    int64_t running = world_running(world);
    if (running) {
        int64_t chosen =
            (int64_t)random_below(world->order_seed, world->steps++, STREAM_ORDER, 0, (uint64_t)running);
        int64_t trial = 1;
        while (world->trials[trial].state != WORLD_RUNNING || chosen-- > 0)
            trial++;
        report(world, trial);
    }
    for (int64_t trial; (trial = stopping_next_prune(world->stopping, world_running(world)));) {
        assert_int_equal(world->trials[trial].state, WORLD_PAUSED);
        stopping_prune(world->stopping, trial);
        world->trials[trial].state = WORLD_PRUNED;
    }
    return running > 0;
}

void world_run(struct world *world)
{
    while (world_step(world))
        continue;
    assert_int_equal(world->count, world->limit);
    for (int64_t trial = 1; trial <= world->count; trial++) {
        assert_int_not_equal(world->trials[trial].state, WORLD_PAUSED);
        assert_int_not_equal(world->trials[trial].state, WORLD_RUNNING);
    }
}

static void replay_entry(const struct world *world, struct stopping *stopping, int64_t trial, int rung)
{
    const struct world_trial *from = &world->trials[trial];
    stopping_enter(stopping, trial, rung, from->value[rung], from->tie[rung]);
    if (from->promoted[rung])
        stopping_promote(stopping, trial);
}

static void replay_entries(const struct world *world, struct stopping *stopping, bool by_trial)
{
    for (int64_t trial = world->count; by_trial && trial >= 1; trial--) {
        for (int rung = 0; rung < world->trials[trial].entered; rung++)
            replay_entry(world, stopping, trial, rung);
    }
    for (int entry = 0; !by_trial && entry < world->entries; entry++) {
        for (int64_t trial = 1; trial <= world->count; trial++) {
            for (int rung = 0; rung < world->trials[trial].entered; rung++) {
                if (world->trials[trial].order[rung] == entry)
                    replay_entry(world, stopping, trial, rung);
            }
        }
    }
}

struct stopping *world_replay(const struct world *world, bool by_trial)
{
    struct stopping *stopping = stopping_create(&world->settings, NULL);
    assert_non_null(stopping);
    for (int64_t trial = 1; trial <= world->count; trial++)
        assert_int_equal(stopping_add(stopping, trial), 0);
    replay_entries(world, stopping, by_trial);
    for (int64_t trial = 1; trial <= world->count; trial++) {
        enum world_state state = world->trials[trial].state;
        if (state == WORLD_CRASHED || state == WORLD_DIVERGED)
            stopping_end(stopping, trial, state == WORLD_DIVERGED);
        else if (state == WORLD_PRUNED)
            stopping_prune(stopping, trial);
    }
    if (world->closed)
        stopping_close(stopping);
    return stopping;
}

void world_compare(const struct world *world, struct stopping *other)
{
    int64_t running = world_running(world);
    /* The order among halving's brackets is free, so only whether there is one. */
    bool one_bracket = world->settings.bracket_size == 0;
    int64_t mine = stopping_next_promotion(world->stopping, running);
    int64_t theirs = stopping_next_promotion(other, running);
    assert_int_equal(one_bracket ? mine : mine != 0, one_bracket ? theirs : theirs != 0);
    assert_int_equal(stopping_next_prune(world->stopping, running), stopping_next_prune(other, running));
    for (int64_t trial = 1; trial <= world->count; trial++) {
        assert_int_equal(stopping_target(world->stopping, trial), stopping_target(other, trial));
        for (int rung = 0; rung < world->trials[trial].entered; rung++)
            assert_int_equal(stopping_enter(world->stopping, trial, rung, 9, 9),
                             stopping_enter(other, trial, rung, 9, 9));
    }
}

bool world_before(const struct world *world, int64_t left, int64_t right, int rung)
{
    double a = world->trials[left].value[rung], b = world->trials[right].value[rung];
    double s = world->trials[left].tie[rung], t = world->trials[right].tie[rung];
    if ((isfinite(a) != 0) != (isfinite(b) != 0))
        return isfinite(a);
    if (isfinite(a) && a != b)
        return world->settings.maximize ? a > b : a < b;
    if ((isfinite(s) != 0) != (isfinite(t) != 0))
        return isfinite(s);
    if (isfinite(s) && s != t)
        return world->settings.tie_minimize ? s < t : s > t;
    return left < right;
}
