/* ASHA against algorithm 2 of Li et al. 2020, written here a second time from the list of entries alone. */
#include "stopping_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct stopping_settings promotion = {.kind = STOPPING_ASHA_PROMOTION,
                                                   .min_iter = 1,
                                                   .max_iter = 27,
                                                   .eta = 3,
                                                   .trials = -1,
                                                   .tie_minimize = true};
static const struct stopping_settings stopping_mode = {.kind = STOPPING_ASHA_STOPPING,
                                                       .min_iter = 1,
                                                       .max_iter = 27,
                                                       .eta = 3,
                                                       .trials = -1,
                                                       .tie_minimize = true};

/* Places of the trials at one rung, best first; the diverged ones are behind. Returns n. */
static int rung_entries(const struct world *world, int rung, int64_t places[WORLD_TRIALS])
{
    int ranked = 0, diverged = 0;
    for (int64_t trial = 1; trial <= world->count; trial++) {
        const struct world_trial *t = &world->trials[trial];
        if (t->state == WORLD_CRASHED)
            continue;
        if (t->state == WORLD_DIVERGED && t->entered == rung)
            diverged++;
        if (t->entered <= rung)
            continue;
        int at = ranked++;
        for (; at > 0 && world_before(world, trial, places[at - 1], rung); at--)
            places[at] = places[at - 1];
        places[at] = trial;
    }
    for (int i = 0; i < diverged; i++)
        places[ranked + i] = 0;
    return ranked + diverged;
}

/* get_job of algorithm 2, and the rule for the end of a search. */
static int64_t reference_job(const struct world *world, int64_t running)
{
    int64_t places[WORLD_TRIALS], best_of_highest = 0;
    int top = stopping_rung_count(world->stopping) - 1;
    bool finished = false;
    for (int64_t trial = 1; trial <= world->count; trial++)
        finished |= world->trials[trial].entered > top;
    for (int rung = top - 1; rung >= 0; rung--) {
        int n = rung_entries(world, rung, places);
        int candidates = (int)floor(n / world->settings.eta);
        for (int i = 0; i < n; i++) {
            const struct world_trial *t = &world->trials[places[i]];
            if (!places[i] || t->state != WORLD_PAUSED || t->entered != rung + 1)
                continue;
            if (i < candidates)
                return places[i];
            if (!best_of_highest)
                best_of_highest = places[i];
        }
    }
    return world->closed && running == 0 && !finished ? best_of_highest : 0;
}

static void check_job(struct world *world, int64_t promoted, int64_t running)
{
    assert_int_equal(promoted, reference_job(world, running));
}

static void test_promotion_matches_algorithm_2(void **state)
{
    (void)state;
    static const double etas[] = {3, 2, 4, 2.5, 1.7};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        static struct world world;
        struct stopping_settings settings = promotion;
        settings.eta = etas[seed % 5];
        settings.max_iter = 10 + (int64_t)seed;
        settings.maximize = seed % 2;
        settings.tie_minimize = seed % 3;
        print_message("seed %llu eta %g\n", (unsigned long long)seed, settings.eta);
        world_start(&world, &settings, seed, 20 + (int64_t)seed * 4, 1 + (int64_t)seed % 7);
        world.check_f = check_job;
        world_run(&world);
        world_stop(&world);
    }
}

/* Recovered at any moment, the object answers as before and goes on as before. */
static void check_recovery(const struct stopping_settings *settings, bool by_trial)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        static struct world world;
        print_message("seed %llu\n", (unsigned long long)seed);
        world_start(&world, settings, seed, 60, 4);
        for (int step = 0; world_step(&world); step++) {
            if (step % 7)
                continue;
            struct stopping *recovered = world_replay(&world, by_trial);
            world_compare(&world, recovered);
            stopping_destroy(world.stopping);
            world.stopping = recovered;
        }
        world_stop(&world);
    }
}

static void test_promotion_recovers(void **state)
{
    (void)state;
    check_recovery(&promotion, false);
    check_recovery(&promotion, true); /* promotions are inputs, so the order of entries does not matter */
}

static void test_stopping_recovers(void **state)
{
    (void)state;
    check_recovery(&stopping_mode, false);
}

static struct stopping *start(const struct stopping_settings *settings, int64_t trials)
{
    struct stopping *stopping = stopping_create(settings, NULL);
    assert_non_null(stopping);
    for (int64_t trial = 1; trial <= trials; trial++)
        assert_int_equal(stopping_add(stopping, trial), 0);
    return stopping;
}

/* Eta 3: n = 1, 2 go on; n = 3..5 the best 1; n = 6..8 the best 2. Each row: the place among n of the one
 * that enters. */
static void test_stopping_table(void **state)
{
    (void)state;
    static const int best[] = {0, 1, 2, 1, 1, 1, 2, 2, 2};
    for (int n = 1; n <= 8; n++) {
        for (int place = 0; place < n; place++) {
            struct stopping *stopping = start(&stopping_mode, n);
            for (int trial = 1; trial < n; trial++)
                stopping_enter(stopping, trial, 0, trial <= place ? trial : trial + 1, (double)NAN);
            enum stopping_verdict verdict = stopping_enter(stopping, n, 0, place + 0.5, (double)NAN);
            assert_int_equal(verdict, place < best[n] ? STOPPING_CONTINUE : STOPPING_STOP);
            assert_int_equal(stopping_target(stopping, n), place < best[n] ? 3 : 1);
            stopping_destroy(stopping);
        }
    }
}

static void test_stopping_lets_ties_live(void **state)
{
    (void)state;
    struct stopping *stopping = start(&stopping_mode, 12);
    for (int trial = 1; trial <= 9; trial++)
        assert_int_equal(stopping_enter(stopping, trial, 0, trial % 2 ? 0.0 : -0.0, 1), STOPPING_CONTINUE);
    /* The tie metric is part of the order: 9 entries are better. */
    assert_int_equal(stopping_enter(stopping, 10, 0, 0.0, 2), STOPPING_STOP);
    assert_int_equal(stopping_enter(stopping, 11, 0, (double)NAN, 0), STOPPING_STOP);
    assert_int_equal(stopping_enter(stopping, 12, 0, -(double)INFINITY, 0), STOPPING_STOP);
    stopping_destroy(stopping);
}

/* A crash takes its entry out of n; divergence counts in the rung that was not reached. */
static void test_stopping_counts(void **state)
{
    (void)state;
    struct stopping *stopping = start(&stopping_mode, 6);
    stopping_enter(stopping, 1, 0, 1, 0);
    stopping_enter(stopping, 2, 0, 2, 0);
    stopping_end(stopping, 1, false);
    assert_int_equal(stopping_enter(stopping, 3, 0, 9, 0), STOPPING_CONTINUE); /* n = 2 */
    stopping_end(stopping, 4, true);                                           /* n = 3 */
    assert_int_equal(stopping_enter(stopping, 5, 0, 3, 0), STOPPING_STOP);     /* n = 4, behind trial 2 */
    assert_int_equal(stopping_enter(stopping, 6, 0, 1.5, 0), STOPPING_CONTINUE);
    assert_int_equal(stopping_enter(stopping, 5, 1, 3, 0), STOPPING_STOP); /* a stopped trial stays so */
    stopping_destroy(stopping);
}

static void test_stopping_restored_verdict(void **state)
{
    (void)state;
    struct stopping *stopping = start(&stopping_mode, 3);
    stopping_enter(stopping, 1, 0, 1, 0);
    stopping_enter(stopping, 2, 0, 2, 0);
    assert_int_equal(stopping_enter(stopping, 3, 0, 3, 0), STOPPING_STOP);
    assert_int_equal(stopping_promote(stopping, 3), 3); /* it was told to go on */
    assert_int_equal(stopping_enter(stopping, 3, 0, 3, 0), STOPPING_CONTINUE);
    stopping_prune(stopping, 2);
    assert_int_equal(stopping_enter(stopping, 2, 0, 2, 0), STOPPING_STOP);
    stopping_destroy(stopping);
}

/* A jump over rungs: one entry with the same value at each, a candidate only at the last. */
static void test_promotion_jump(void **state)
{
    (void)state;
    struct stopping *stopping = start(&promotion, 6);
    assert_int_equal(stopping_enter(stopping, 1, 0, 1, 0), STOPPING_PAUSE);
    assert_int_equal(stopping_enter(stopping, 1, 1, 1, 0), STOPPING_PAUSE);
    assert_int_equal(stopping_target(stopping, 1), 3);
    assert_int_equal(stopping_enter(stopping, 1, 0, 5, 0), STOPPING_CONTINUE);
    stopping_enter(stopping, 2, 0, 2, 0);
    stopping_enter(stopping, 3, 0, 3, 0);
    /* n = 3 at rung 0, but its best is past it. */
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    for (int trial = 4; trial <= 6; trial++)
        stopping_enter(stopping, trial, 0, trial, 0);
    assert_int_equal(stopping_next_promotion(stopping, 0), 2);
    stopping_destroy(stopping);
}

/* Nobody got to the top and no trial comes any more: the best of the highest rung goes on, and the rest is
 * pruned. */
static void test_promotion_end_of_search(void **state)
{
    (void)state;
    struct stopping *stopping = start(&promotion, 2);
    stopping_enter(stopping, 1, 0, 0.5, 0);
    stopping_enter(stopping, 2, 0, 0.25, 0);
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    stopping_close(stopping);
    assert_int_equal(stopping_next_promotion(stopping, 1), 0); /* something still runs */
    assert_int_equal(stopping_next_prune(stopping, 0), 0);
    for (int rung = 0; rung < 3; rung++) {
        assert_int_equal(stopping_next_promotion(stopping, 0), 2);
        assert_int_equal(stopping_promote(stopping, 2), stopping_level(stopping, rung + 1));
        assert_int_equal(stopping_next_promotion(stopping, 1), 0);
        assert_int_equal(stopping_enter(stopping, 2, rung + 1, 0.25, 0),
                         rung < 2 ? STOPPING_PAUSE : STOPPING_FINISH);
    }
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    assert_int_equal(stopping_next_prune(stopping, 1), 0);
    assert_int_equal(stopping_next_prune(stopping, 0), 1);
    stopping_prune(stopping, 1);
    assert_int_equal(stopping_next_prune(stopping, 0), 0);
    stopping_destroy(stopping);
}

/* The one that was taken to the top fails on the way: the next best is taken. */
static void test_promotion_end_of_search_retries(void **state)
{
    (void)state;
    struct stopping *stopping = start(&promotion, 2);
    stopping_enter(stopping, 1, 0, 0.5, 0);
    stopping_enter(stopping, 2, 0, 0.25, 0);
    stopping_close(stopping);
    stopping_promote(stopping, stopping_next_promotion(stopping, 0));
    stopping_end(stopping, 2, true);
    assert_int_equal(stopping_next_promotion(stopping, 0), 1);
    stopping_promote(stopping, 1);
    stopping_end(stopping, 1, false);
    assert_int_equal(stopping_next_promotion(stopping, 0), 0);
    assert_int_equal(stopping_next_prune(stopping, 0), 0);
    stopping_destroy(stopping);
}

/* A hundred thousand trials in every mode, sorted so that a plain list or tree would be quadratic. */
static void test_many_trials(void **state)
{
    (void)state;
    enum { TRIALS = 100000 };
    for (int mode = 0; mode < 2; mode++) {
        struct stopping *stopping = start(mode ? &promotion : &stopping_mode, TRIALS);
        int64_t promotions = 0;
        for (int64_t trial = 1; trial <= TRIALS; trial++) {
            stopping_enter(stopping, trial, 0, (double)-trial, 0);
            for (int64_t next; (next = stopping_next_promotion(stopping, 1)); promotions++) {
                stopping_promote(stopping, next);
                stopping_enter(stopping, next, 1, 0, 0);
                stopping_end(stopping, next, false);
            }
        }
        assert_true(mode ? promotions >= TRIALS / 4 : promotions == 0);
        stopping_close(stopping);
        int64_t pruned = 0;
        for (int64_t trial; pruned < TRIALS / 2 && (trial = stopping_next_prune(stopping, 0)); pruned++)
            stopping_prune(stopping, trial);
        stopping_destroy(stopping);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promotion_matches_algorithm_2),
        cmocka_unit_test(test_promotion_recovers),
        cmocka_unit_test(test_stopping_recovers),
        cmocka_unit_test(test_stopping_table),
        cmocka_unit_test(test_stopping_lets_ties_live),
        cmocka_unit_test(test_stopping_counts),
        cmocka_unit_test(test_stopping_restored_verdict),
        cmocka_unit_test(test_promotion_jump),
        cmocka_unit_test(test_promotion_end_of_search),
        cmocka_unit_test(test_promotion_end_of_search_retries),
        cmocka_unit_test(test_many_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
