/* The order-statistics treap against a plain sorted list, over random inputs. */
#include "base/random.h"
#include "search/ranking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { TRIALS = 200 };

struct list {
    int64_t trial[TRIALS];
    struct entry_key key[TRIALS + 1]; /* by trial */
    bool open[TRIALS + 1];
    int size;
};

static void list_insert(struct list *list, int64_t trial)
{
    int at = list->size++;
    for (; at > 0 &&
           entry_before(&list->key[trial], trial, &list->key[list->trial[at - 1]], list->trial[at - 1]);
         at--)
        list->trial[at] = list->trial[at - 1];
    list->trial[at] = trial;
}

static void list_remove(struct list *list, int64_t trial)
{
    for (int at = 0; at < list->size; at++) {
        if (list->trial[at] == trial) {
            memmove(list->trial + at, list->trial + at + 1,
                    (size_t)(--list->size - at) * sizeof *list->trial);
            return;
        }
    }
}

static void compare(const struct list *list, const struct ranking *ranking)
{
    int64_t place, first = 0, first_place = 0;
    for (int at = list->size - 1; at >= 0; at--) {
        int64_t trial = list->trial[at];
        if (list->open[trial]) {
            first = trial;
            first_place = at;
        }
        int better = 0;
        while (entry_better(&list->key[list->trial[better]], &list->key[trial]))
            better++;
        assert_int_equal(ranking_better(ranking, &list->key[trial]), better);
    }
    assert_int_equal(ranking_size(ranking), list->size);
    assert_int_equal(ranking_first_open(ranking, &place), first);
    if (first)
        assert_int_equal(place, first_place);
}

static void test_against_list(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct ranking ranking = {0};
        struct list list = {0};
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_int_equal(ranking_reserve(&ranking, TRIALS), 0);
        for (uint32_t step = 0; step < 600; step++) {
            int64_t trial = 1 + (int64_t)random_below(seed, step, 0, 0, TRIALS);
            bool is_in = false;
            for (int at = 0; at < list.size; at++)
                is_in |= list.trial[at] == trial;
            if (!is_in) {
                list.key[trial] = (struct entry_key){.value = (double)random_below(seed, step, 1, 0, 20) - 10,
                                                     .tie = (double)random_below(seed, step, 2, 0, 3),
                                                     .class = random_below(seed, step, 3, 0, 10) / 8};
                list.open[trial] = random_below(seed, step, 4, 0, 3) > 0;
                ranking_insert(&ranking, trial, &list.key[trial], list.open[trial]);
                list_insert(&list, trial);
            } else if (random_below(seed, step, 5, 0, 2)) {
                ranking_close(&ranking, trial);
                list.open[trial] = false;
            } else {
                ranking_remove(&ranking, trial);
                list_remove(&list, trial);
            }
            compare(&list, &ranking);
        }
        ranking_release(&ranking);
    }
}

static void test_no_entries(void **state)
{
    (void)state;
    struct ranking ranking = {0};
    struct entry_key key = {.value = 1};
    int64_t place;
    assert_int_equal(ranking_size(&ranking), 0);
    assert_int_equal(ranking_first_open(&ranking, &place), 0);
    assert_int_equal(ranking_better(&ranking, &key), 0);
    ranking_close(&ranking, 1);
    ranking_remove(&ranking, 1);
    ranking_insert(&ranking, 1, &key, true); /* no room was made */
    assert_int_equal(ranking_size(&ranking), 0);
    assert_int_equal(ranking_reserve(&ranking, INT64_C(1) << 40), -1);
    assert_int_equal(ranking_reserve(&ranking, 1000), 0);
    ranking_insert(&ranking, 1000, &key, true);
    ranking_insert(&ranking, 1000, &key, true); /* once only */
    assert_int_equal(ranking_size(&ranking), 1);
    ranking_release(&ranking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_list),
                                       cmocka_unit_test(test_no_entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
