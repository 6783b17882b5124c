/* The engine's containers against the plainest model of them. The seed is printed. */
#include "coordinator/engine_state.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t seed;
static uint32_t drawn;

static uint64_t draw(uint64_t bound)
{
    return random_below(seed, drawn++, 1, 0, bound);
}

static int choose_seed(void **state)
{
    (void)state;
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return 0;
}

static void test_table_is_a_map(void **state)
{
    (void)state;
    enum { KEYS = 300 };
    void *model[KEYS] = {0};
    struct table table = {0};
    for (int step = 0; step < 20000; step++) {
        size_t key = draw(KEYS);
        uint64_t spread = key % 2 ? key : key << 40; /* consecutive ones and ones that share their low bits */
        if (draw(5) < 3) {
            model[key] = &model[draw(KEYS)];
            assert_int_equal(engine_table_put(&table, spread, model[key]), 0);
        } else {
            assert_ptr_equal(engine_table_remove(&table, spread), model[key]);
            model[key] = NULL;
        }
        size_t other = draw(KEYS);
        assert_ptr_equal(engine_table_get(&table, other % 2 ? other : other << 40), model[other]);
    }
    size_t count = 0;
    for (size_t key = 0; key < KEYS; key++)
        count += model[key] != NULL;
    assert_int_equal(table.count, count);
    engine_table_release(&table);
    assert_null(engine_table_get(&table, 1));
}

static struct trial *smallest(struct trial *trials, const bool *in, size_t count)
{
    struct trial *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (in[i] && (!best || ranking_order.before(&trials[i], best)))
            best = &trials[i];
    return best;
}

static void test_heap_knows_its_smallest(void **state)
{
    (void)state;
    enum { TRIALS = 60 };
    struct trial *trials = calloc(TRIALS, sizeof(*trials));
    bool in[TRIALS] = {0};
    struct heap heap = {.order = &ranking_order};
    for (size_t i = 0; i < TRIALS; i++)
        trials[i].record.number = (int64_t)i + 1;
    for (int step = 0; step < 20000; step++) {
        size_t i = draw(TRIALS);
        if (!in[i]) {
            trials[i].rank_key = (double)draw(20);
            assert_int_equal(heap_push(&heap, &trials[i]), 0);
            in[i] = true;
        } else if (draw(2)) {
            trials[i].rank_key = (double)draw(20);
            heap_update(&heap, &trials[i]);
        } else if (draw(2)) {
            heap_remove(&heap, &trials[i]);
            heap_remove(&heap, &trials[i]); /* again: nothing */
            in[i] = false;
        } else {
            struct trial *top = heap_pop(&heap);
            in[top - trials] = false;
        }
        assert_ptr_equal(heap_top(&heap), smallest(trials, in, TRIALS));
    }
    heap_release(&heap);
    free(trials);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_a_map),
        cmocka_unit_test(test_heap_knows_its_smallest),
    };
    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
