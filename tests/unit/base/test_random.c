/* Philox against Random123's known answers; units stay inside (0, 1); integers are unbiased. */
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4];
        uint64_t key;
        uint32_t answer[4];
    } vectors[] = {
        {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         0xffffffffffffffff,
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const uint32_t *c = vectors[i].counter;
        struct philox block = philox4x32(vectors[i].key, c[0], c[1], c[2], c[3]);
        assert_memory_equal(block.word, vectors[i].answer, sizeof block.word);
    }
}

static void test_fnv1a(void **state)
{
    (void)state;
    assert_true(fnv1a64("", 0) == 0xcbf29ce484222325u);
    assert_true(fnv1a64("a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(fnv1a64("foobar", 6) == 0x85944171f73967e8u);
}

/* The words go where the header says: (trial, hash low, hash high, draw) and the 52 high bits of words 0
 * and 1. */
static void test_unit_layout(void **state)
{
    (void)state;
    struct philox block = philox4x32(9, 3, 0x89abcdef, 0x01234567, 2);
    uint64_t bits = ((uint64_t)block.word[0] << 32 | block.word[1]) >> 12;
    double expected = ((double)bits + 0.5) / 4503599627370496.0;
    assert_true(random_unit(9, 3, 0x0123456789abcdefu, 2) == expected);
}

static void test_unit_is_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 100000, CELLS = 100 };
    int cells[CELLS] = {0};
    double sum = 0;
    for (uint32_t trial = 1; trial <= DRAWS; trial++) {
        double u = random_unit(20260101, trial, fnv1a64("x", 1), 0);
        assert_true(u > 0 && u < 1);
        cells[(int)(u * CELLS)]++;
        sum += u;
    }
    double chi = 0, expected = (double)DRAWS / CELLS;
    for (int i = 0; i < CELLS; i++)
        chi += (cells[i] - expected) * (cells[i] - expected) / expected;
    assert_true(chi < 148.23); /* 99 degrees of freedom, p = 1e-3 */
    assert_true(fabs(sum / DRAWS - 0.5) < 3.3 / sqrt(12.0 * DRAWS));
}

static void test_below_is_unbiased(void **state)
{
    (void)state;
    /* Of 2^63 + 2^62 the lower third would be twice as likely if 64-bit numbers were only reduced. */
    const uint64_t bound = UINT64_C(3) << 62;
    enum { DRAWS = 30000 };
    int thirds[3] = {0};
    for (uint32_t trial = 0; trial < DRAWS; trial++) {
        uint64_t number = random_below(5, trial, 77, 0, bound);
        assert_true(number < bound);
        thirds[number >> 62]++;
    }
    double chi = 0;
    for (int i = 0; i < 3; i++)
        chi += pow(thirds[i] - DRAWS / 3.0, 2) / (DRAWS / 3.0);
    assert_true(chi < 13.82); /* 2 degrees of freedom, p = 1e-3 */
    for (uint32_t trial = 0; trial < 100; trial++)
        assert_true(random_below(5, trial, 77, 0, 1) == 0);
}

/* Every part of the counter matters, and nothing else does. */
static void test_draws_differ(void **state)
{
    (void)state;
    double base = random_unit(1, 1, 1, 0);
    assert_true(base == random_unit(1, 1, 1, 0));
    assert_true(base != random_unit(2, 1, 1, 0));
    assert_true(base != random_unit(UINT64_C(1) << 32 | 1, 1, 1, 0));
    assert_true(base != random_unit(1, 2, 1, 0));
    assert_true(base != random_unit(1, 1, 2, 0));
    assert_true(base != random_unit(1, 1, UINT64_C(1) << 32 | 1, 0));
    assert_true(base != random_unit(1, 1, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),     cmocka_unit_test(test_fnv1a),
        cmocka_unit_test(test_unit_layout),       cmocka_unit_test(test_unit_is_uniform),
        cmocka_unit_test(test_below_is_unbiased), cmocka_unit_test(test_draws_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
