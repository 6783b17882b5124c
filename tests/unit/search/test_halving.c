/* Synchronous successive halving: the rung tables, and independence of order, workers and restarts. */
#include "stopping_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct stopping_settings halving(int64_t trials, int64_t max_iter, double eta, int64_t bracket_size)
{
    return (struct stopping_settings){.kind = STOPPING_SUCCESSIVE_HALVING,
                                      .min_iter = 1,
                                      .max_iter = max_iter,
                                      .eta = eta,
                                      .trials = trials,
                                      .bracket_size = bracket_size,
                                      .tie_minimize = true};
}

/* Trials that enter each rung when nothing fails. */
static void check_table(int64_t trials, int64_t max_iter, double eta, int64_t bracket_size,
                        const int *expected)
{
    static struct world world;
    struct stopping_settings settings = halving(trials, max_iter, eta, bracket_size);
    world_start(&world, &settings, 1, trials, 5);
    world.faults = 0;
    world_run(&world);
    for (int rung = 0; rung < stopping_rung_count(world.stopping); rung++) {
        int entries = 0;
        for (int64_t trial = 1; trial <= trials; trial++)
            entries += world.trials[trial].entered > rung;
        assert_int_equal(entries, expected[rung]);
    }
    world_stop(&world);
}

static void test_rung_tables(void **state)
{
    (void)state;
    check_table(243, 81, 3, 0, (const int[]){243, 81, 27, 9, 3});
    check_table(64, 27, 3, 0, (const int[]){64, 21, 7, 2});
    check_table(10, 81, 3, 0, (const int[]){10, 3, 1, 1, 1});
    check_table(1, 27, 3, 0, (const int[]){1, 1, 1, 1});
    check_table(100, 10, 2.5, 0, (const int[]){100, 40, 16, 6});
    check_table(27, 9, 3, 9, (const int[]){27, 9, 3});
    check_table(20, 9, 3, 9, (const int[]){20, 7, 3}); /* brackets of 9, 9 and 2: 3 + 3 + 1 */
}

/* The end of a bracket of trials, computed at once from the curves: rung by rung, plain sorting. */
struct outcome {
    int entered[WORLD_TRIALS + 1];
    enum world_state state[WORLD_TRIALS + 1];
};

static double reference_value(const struct world *world, int64_t trial, int rung, double *tie)
{
    enum world_state ends;
    int from = 0; /* the report that entered `rung`: an earlier one where the trial jumped */
    while (from + world_fate(world, trial, from, &ends) <= rung)
        from += world_fate(world, trial, from, &ends);
    *tie = world_tie(world, trial, from);
    return world_value(world, trial, from);
}

static void reference_bracket(struct world *world, int64_t first, int64_t last, struct outcome *outcome)
{
    int64_t members[WORLD_TRIALS], count = 0;
    int top = stopping_rung_count(world->stopping) - 1;
    for (int64_t trial = first; trial <= last; trial++) {
        members[count++] = trial;
        outcome->entered[trial] = 0;
    }
    for (int rung = 0; rung <= top; rung++) {
        int64_t ranked[WORLD_TRIALS], n = 0, diverged = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t trial = members[i];
            enum world_state ends = WORLD_RUNNING;
            if (outcome->entered[trial] <= rung)
                outcome->entered[trial] += world_fate(world, trial, outcome->entered[trial], &ends);
            if (ends != WORLD_RUNNING) {
                outcome->state[trial] = ends;
                diverged += ends == WORLD_DIVERGED;
                continue;
            }
            struct world_trial *t = &world->trials[trial];
            t->value[rung] = reference_value(world, trial, rung, &t->tie[rung]);
            int64_t at = n++;
            for (; at > 0 && world_before(world, trial, ranked[at - 1], rung); at--)
                ranked[at] = ranked[at - 1];
            ranked[at] = trial;
        }
        int64_t winners = (int64_t)floor((double)(n + diverged) / world->settings.eta);
        winners = winners < 1 ? 1 : winners;
        count = 0;
        for (int64_t i = 0; i < n; i++) {
            if (rung == top)
                outcome->state[ranked[i]] = WORLD_FINISHED;
            else if (i < winners)
                members[count++] = ranked[i];
            else
                outcome->state[ranked[i]] = WORLD_PRUNED;
        }
    }
}

static void check_outcome(const struct world *world, const struct outcome *outcome)
{
    for (int64_t trial = 1; trial <= world->count; trial++) {
        assert_int_equal(world->trials[trial].state, outcome->state[trial]);
        assert_int_equal(world->trials[trial].entered, outcome->entered[trial]);
    }
}

static void test_same_for_any_order(void **state)
{
    (void)state;
    static const double etas[] = {3, 2, 2.5, 4};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static struct world world;
        static struct outcome outcome;
        int64_t trials = 5 + (int64_t)seed * 3, size = seed % 3 ? 0 : 7 + (int64_t)seed % 5;
        struct stopping_settings settings = halving(trials, 12 + (int64_t)seed, etas[seed % 4], size);
        settings.maximize = seed % 2;
        print_message("seed %llu: %lld trials, brackets of %lld\n", (unsigned long long)seed,
                      (long long)trials, (long long)size);
        for (uint64_t order = 0; order < 4; order++) {
            world_start(&world, &settings, seed, trials, 1 + (int64_t)order * 3);
            world.order_seed = seed * 100 + order;
            for (int64_t first = 1; first <= trials; first += size ? size : trials) {
                int64_t last = size && first + size - 1 < trials ? first + size - 1 : trials;
                reference_bracket(&world, first, last, &outcome);
            }
            world_run(&world);
            check_outcome(&world, &outcome);
            world_stop(&world);
        }
    }
}

static void test_recovers(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        static struct world world;
        struct stopping_settings settings = halving(60, 27, 3, seed % 2 ? 0 : 13);
        print_message("seed %llu\n", (unsigned long long)seed);
        world_start(&world, &settings, seed, 60, 4);
        for (int step = 0; world_step(&world); step++) {
            if (step % 5)
                continue;
            struct stopping *recovered = world_replay(&world, step % 2);
            world_compare(&world, recovered);
            stopping_destroy(world.stopping);
            world.stopping = recovered;
        }
        world_stop(&world);
    }
}

static struct stopping *start(const struct stopping_settings *settings, int64_t trials)
{
    struct stopping *stopping = stopping_create(settings, NULL);
    assert_non_null(stopping);
    for (int64_t trial = 1; trial <= trials; trial++)
        assert_int_equal(stopping_add(stopping, trial), 0);
    return stopping;
}

/* n counts diverged trials, which rank last, and not crashed ones; the bracket waits for both. */
static void test_counts(void **state)
{
    (void)state;
    struct stopping_settings settings = halving(9, 9, 3, 0);
    for (int diverged = 0; diverged < 2; diverged++) {
        struct stopping *stopping = start(&settings, 9);
        for (int trial = 1; trial <= 8; trial++)
            assert_int_equal(stopping_enter(stopping, trial, 0, 10 - trial, (double)NAN), STOPPING_PAUSE);
        assert_int_equal(stopping_next_promotion(stopping, 1), 0);
        assert_int_equal(stopping_next_prune(stopping, 1), 0);
        stopping_end(stopping, 9, diverged);
        for (int trial = 8; trial > (diverged ? 5 : 6); trial--) { /* floor(9/3) or floor(8/3) */
            assert_int_equal(stopping_next_promotion(stopping, 0), trial);
            assert_int_equal(stopping_promote(stopping, trial), 3);
            assert_int_equal(stopping_enter(stopping, trial, 0, 0, 0), STOPPING_CONTINUE);
        }
        assert_int_equal(stopping_next_promotion(stopping, 0), 0);
        int pruned = 0;
        for (int64_t trial; (trial = stopping_next_prune(stopping, 3)); pruned++) {
            stopping_prune(stopping, trial);
            assert_int_equal(stopping_enter(stopping, trial, 0, 0, 0), STOPPING_STOP);
        }
        assert_int_equal(pruned, diverged ? 5 : 6);
        stopping_destroy(stopping);
    }
}

static void test_all_fail(void **state)
{
    (void)state;
    struct stopping_settings settings = halving(3, 9, 3, 0);
    for (int diverged = 0; diverged < 2; diverged++) {
        struct stopping *stopping = start(&settings, 3);
        for (int trial = 1; trial <= 3; trial++)
            stopping_end(stopping, trial, diverged);
        assert_int_equal(stopping_next_promotion(stopping, 0), 0);
        assert_int_equal(stopping_next_prune(stopping, 0), 0);
        stopping_destroy(stopping);
    }
    /* NaN alone is no failure: one of them goes on. */
    struct stopping *stopping = start(&settings, 3);
    for (int trial = 1; trial <= 3; trial++)
        stopping_enter(stopping, trial, 0, (double)NAN, 3 - trial);
    assert_int_equal(stopping_next_promotion(stopping, 0), 3); /* the best tie value */
    stopping_destroy(stopping);
}

/* The sweep is drained before the bracket was full: it is judged with the trials it has. */
static void test_close_early(void **state)
{
    (void)state;
    struct stopping_settings settings = halving(100, 9, 3, 10);
    struct stopping *stopping = start(&settings, 13);
    for (int trial = 11; trial <= 13; trial++)
        stopping_enter(stopping, trial, 0, trial, 0);
    assert_int_equal(stopping_bracket(stopping, 10), 0);
    assert_int_equal(stopping_bracket(stopping, 11), 1);
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    stopping_close(stopping);
    assert_int_equal(stopping_next_promotion(stopping, 0), 11);
    stopping_destroy(stopping);
}

/* Whoever is cancelled while paused leaves n and the candidates; once let go on, its entry stays. */
static void test_cancelled(void **state)
{
    (void)state;
    struct stopping_settings settings = halving(6, 9, 3, 0);
    struct stopping *stopping = start(&settings, 6);
    for (int trial = 1; trial <= 5; trial++)
        stopping_enter(stopping, trial, 0, trial, 0);
    stopping_end(stopping, 1, false);
    stopping_enter(stopping, 6, 0, 6, 0);
    assert_int_equal(stopping_next_promotion(stopping, 0), 2); /* floor(5/3) = 1 */
    stopping_promote(stopping, 2);
    stopping_end(stopping, 2, false);
    assert_int_equal(stopping_next_promotion(stopping, 0), 0); /* decided once */
    stopping_destroy(stopping);
}

/* A loser that was let go on all the same, by hand: it is pruned at its next rung and counts nowhere. */
static void test_loser_trains_on(void **state)
{
    (void)state;
    struct stopping_settings settings = halving(3, 9, 3, 0);
    struct stopping *stopping = start(&settings, 3);
    for (int trial = 1; trial <= 3; trial++)
        stopping_enter(stopping, trial, 0, trial, 0);
    stopping_promote(stopping, stopping_next_promotion(stopping, 0));
    assert_int_equal(stopping_promote(stopping, 2), 3);
    assert_int_equal(stopping_enter(stopping, 2, 1, -5, 0), STOPPING_PAUSE);
    assert_int_equal(stopping_next_promotion(stopping, 1), 0); /* trial 1 is still on its way */
    assert_int_equal(stopping_next_prune(stopping, 1), 3);
    stopping_prune(stopping, 3);
    assert_int_equal(stopping_next_prune(stopping, 1), 2);
    stopping_prune(stopping, 2);
    assert_int_equal(stopping_enter(stopping, 1, 1, 1, 0), STOPPING_PAUSE);
    assert_int_equal(stopping_next_promotion(stopping, 0), 1);
    stopping_destroy(stopping);
}

static void test_many_trials(void **state)
{
    (void)state;
    enum { TRIALS = 100000 };
    for (int size = 0; size <= 10; size += 10) {
        struct stopping_settings settings = halving(TRIALS, 9, 3, size);
        struct stopping *stopping = start(&settings, TRIALS);
        int64_t promoted = 0, pruned = 0;
        for (int64_t trial = 1; trial <= TRIALS; trial++) {
            stopping_enter(stopping, trial, 0, (double)trial, 0);
            for (int64_t next; (next = stopping_next_promotion(stopping, 1)); promoted++)
                stopping_promote(stopping, next);
            for (int64_t next; (next = stopping_next_prune(stopping, 1)); pruned++)
                stopping_prune(stopping, next);
        }
        assert_int_equal(promoted, size ? TRIALS / 10 * 3 : TRIALS / 3);
        assert_int_equal(pruned, TRIALS - promoted);
        stopping_destroy(stopping);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rung_tables), cmocka_unit_test(test_same_for_any_order),
        cmocka_unit_test(test_recovers),    cmocka_unit_test(test_counts),
        cmocka_unit_test(test_all_fail),    cmocka_unit_test(test_close_early),
        cmocka_unit_test(test_cancelled),   cmocka_unit_test(test_loser_trains_on),
        cmocka_unit_test(test_many_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
