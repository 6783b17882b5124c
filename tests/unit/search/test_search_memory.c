/* Search when memory ends at the 1st, 2nd, ... allocation: no step half-done, nothing leaked. */
#include "failing_memory.h"
#include "space_fixture.h"
#include "search/sampler.h"
#include "search/stopping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void fill_space(struct space *space)
{
    space_add_values(space, "a", "[1, 1.0, \"x\", [1, {\"k\": null}]]");
    space_add_range(space, "b", DISTRIBUTION_INT_UNIFORM, 1, 5);
    space_add_range(space, "c", DISTRIBUTION_LATTICE, 0, 1)->step = 0.25;
    space_add_values(space, "d", "[7]")->distribution = DISTRIBUTION_CONSTANT;
}

static void check_proposals(const struct sampler_methods *sampler, const struct space *space)
{
    const char *whole = text_of(sampler->propose(space, 1, 17));
    for (long n = 1;; n++) {
        memory_fail_at(n);
        json_t *point = sampler->propose(space, 1, 17);
        int failed = memory_has_failed();
        memory_fail_at(0);
        assert_true((point == NULL) == (failed != 0));
        if (point) {
            assert_string_equal(text_of(point), whole);
            return;
        }
    }
}

static void test_samplers(void **state)
{
    (void)state;
    struct space space = {0};
    fill_space(&space);
    check_proposals(&random_sampler, &space);
    check_proposals(&grid_sampler, &space);
    for (long n = 1, result = -1; result != 0; n++) {
        memory_fail_at(n);
        result = space_prepare(&space);
        memory_fail_at(0);
    }
    check_proposals(&grid_sampler, &space);
    space_release(&space);
}

/* A trial that could not be added is not there; adding it again works, and so does all that follows. */
static void run_rule(enum stopping_kind kind)
{
    const struct stopping_settings settings = {
        .kind = kind, .min_iter = 1, .max_iter = 9, .eta = 3, .trials = 300, .bracket_size = 20};
    struct stopping *stopping = NULL;
    struct error err = {0};
    for (long n = 1; !stopping; n++) {
        memory_fail_at(n);
        stopping = stopping_create(&settings, &err);
        memory_fail_at(0);
        assert_true(stopping || err.code == ERROR_MEMORY);
    }
    int64_t promoted = 0, failures = 0;
    for (int64_t trial = 1; trial <= 300; trial++) {
        for (long n = 1, added = -1; added != 0; n++, failures++) {
            memory_fail_at(n);
            added = stopping_add(stopping, trial);
            memory_fail_at(0);
        }
        memory_fail_at(1); /* from here on nothing may need memory, but for the C library's sort */
        stopping_enter(stopping, trial, 0, (double)-trial, 0);
        for (int64_t next; (next = stopping_next_promotion(stopping, 1)); promoted++)
            stopping_promote(stopping, next);
        memory_fail_at(0);
    }
    assert_true(failures > 300);
    assert_true(kind == STOPPING_ASHA_STOPPING ? promoted == 0 : promoted >= 90);
    stopping_destroy(stopping);
}

static void test_stopping(void **state)
{
    (void)state;
    run_rule(STOPPING_SUCCESSIVE_HALVING);
    run_rule(STOPPING_ASHA_PROMOTION);
    run_rule(STOPPING_ASHA_STOPPING);
}

int main(void)
{
    memory_setup();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samplers), cmocka_unit_test(test_stopping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
