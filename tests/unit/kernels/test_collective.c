/* CPU devices of one trial: sums and exchanges between processes, and what happens when one of them does not
 * come. */
#include "kernels/collective.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE 20.0 /* seconds; far beyond what a loaded machine needs */

/* What a rank does in its own process; true: as it should be. */
typedef bool rank_f(const struct collective_id *id, int rank, int ranks);

/* Runs all ranks in processes of their own; how many of them did not do as they should. */
static int run_ranks(rank_f *rank_function, int ranks)
{
    struct collective_id id;
    struct error err;
    pid_t children[COLLECTIVE_RANKS];
    int failed = 0;

    int told[2];
    assert_int_equal(pipe(told), 0);
    for (int rank = 0; rank < ranks; rank++) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] > 0)
            continue;
        /* Rank 0 makes the id and tells it; each of the others reads one copy. */
        if (rank == 0) {
            if (collective_cpu_id(&id, ranks, &err) != 0)
                _exit(1);
            for (int i = 1; i < ranks; i++)
                if (write(told[1], &id, sizeof id) != (ssize_t)sizeof id)
                    _exit(1);
        } else if (read(told[0], &id, sizeof id) != (ssize_t)sizeof id) {
            _exit(1);
        }
        _exit(rank_function(&id, rank, ranks) ? 0 : 1);
    }
    for (int rank = 0; rank < ranks; rank++) {
        int status;
        assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
        failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    close(told[0]);
    close(told[1]);
    return failed;
}

/* Values whose sum depends on the order in which it is made. */
static real value_of(int rank, int64_t i)
{
    return (real)((double)((i * 7919 + rank * 104729) % 20011) / 977.0 - 9 + rank * 1e-3);
}

static bool sums_are_right(struct collective *collective, int64_t count)
{
    int rank = collective_rank(collective), ranks = collective_ranks(collective);
    real *x = malloc((size_t)count * sizeof *x + 1);
    bool right = x != NULL;

    for (int64_t i = 0; i < count; i++)
        x[i] = value_of(rank, i);
    collective_sum(collective, x, count);
    for (int64_t i = 0; i < count && right; i++) {
        real expected = value_of(0, i);
        for (int other = 1; other < ranks; other++)
            expected += value_of(other, i);
        right = x[i] == expected;
    }
    free(x);
    return right && collective_check(collective, NULL) == 0;
}

static bool exchanges_are_right(struct collective *collective, size_t bytes)
{
    int rank = collective_rank(collective), ranks = collective_ranks(collective);
    unsigned char *own = malloc(bytes), *all = malloc(bytes * (size_t)ranks);
    bool right = own && all;

    memset(own, 'a' + rank, bytes);
    collective_gather(collective, all, own, bytes);
    for (size_t i = 0; i < bytes * (size_t)ranks && right; i++)
        right = all[i] == 'a' + i / bytes;
    collective_broadcast(collective, own, bytes, ranks - 1);
    for (size_t i = 0; i < bytes && right; i++)
        right = own[i] == 'a' + ranks - 1;
    double mine[2] = {rank + 0.1, 1e300}, expected = 0.1;
    for (int other = 1; other < ranks; other++)
        expected += other + 0.1;
    collective_sum_double(collective, mine, 2);
    right = right && mine[0] == expected;
    free(own);
    free(all);
    return right && collective_check(collective, NULL) == 0;
}

static bool works(const struct collective_id *id, int rank, int ranks)
{
    struct error err;
    struct collective *collective = collective_cpu_join(id, rank, ranks, DEADLINE, &err);
    /* nothing, less than ranks, one piece, a piece and one, several and a rest */
    static const int64_t counts[] = {0, 1, 3, 1000, 65536, 65537, 300001};
    bool right = collective != NULL;

    for (size_t i = 0; i < sizeof counts / sizeof *counts && right; i++)
        right = sums_are_right(collective, counts[i]);
    right = right && exchanges_are_right(collective, 5) && exchanges_are_right(collective, 600000);
    collective_destroy(collective);
    return right;
}

static void test_sums_and_exchanges(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 5; ranks++)
        assert_int_equal(run_ranks(works, ranks), 0);
}

/* Ranks meet so often that one overtaking another would show. */
static bool meets_often(const struct collective_id *id, int rank, int ranks)
{
    struct collective *collective = collective_cpu_join(id, rank, ranks, DEADLINE, NULL);
    bool right = collective != NULL;

    for (int i = 0; i < 2000 && right; i++) {
        real x = (real)(rank + i);
        collective_sum(collective, &x, 1);
        right = x == (real)(ranks * (ranks - 1) / 2 + ranks * i);
    }
    right = right && collective_seconds(collective) > 0;
    collective_destroy(collective);
    return right;
}

static void test_many_meetings(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(meets_often, 3), 0);
}

/* Joins, and lets `wrong` happen on rank 1; the others have to fail in time, with `text`. */
static bool others_fail(const struct collective_id *id, int rank, int ranks, double seconds,
                        void (*wrong)(struct collective *collective), const char *text)
{
    struct error err = {0};
    struct collective *collective = collective_cpu_join(id, rank, ranks, seconds, &err);
    int64_t since = clock_now().monotonic_ns;
    real x = 1;

    if (!collective)
        return false;
    if (rank == 1) {
        wrong(collective);
        _exit(0);
    }
    for (int i = 0; i < 10; i++)
        collective_sum(collective, &x, 1); /* after the first failure the rest does nothing */
    bool failed = collective_check(collective, &err) != 0 && err.code == ERROR_RESOURCE;
    bool in_time = clock_now().monotonic_ns - since < (int64_t)(10 * NS_PER_SECOND);
    if (!strstr(err.message, text))
        fprintf(stderr, "rank %d: %s\n", rank, err.message);
    collective_destroy(collective);
    return failed && in_time && strstr(err.message, text);
}

static void end_at_once(struct collective *collective)
{
    (void)collective;
    _exit(0);
}

static void give_up(struct collective *collective)
{
    collective_abort(collective, "has no memory");
}

static void leave(struct collective *collective)
{
    collective_destroy(collective);
    pause();
}

static void hang(struct collective *collective)
{
    (void)collective;
    alarm(2);
    pause(); /* the alarm ends it */
}

/* Nobody waits for its parent to look at it: it has ended all the same. */
static bool sees_death(const struct collective_id *id, int rank, int ranks)
{
    return others_fail(id, rank, ranks, DEADLINE, end_at_once, "has ended");
}

static bool sees_abort(const struct collective_id *id, int rank, int ranks)
{
    return others_fail(id, rank, ranks, DEADLINE, give_up, "rank 1 has no memory");
}

static bool sees_hang(const struct collective_id *id, int rank, int ranks)
{
    return others_fail(id, rank, ranks, 0.5, hang, "rank 1 has not come within 0.5 s");
}

static bool sees_leaving(const struct collective_id *id, int rank, int ranks)
{
    alarm(rank == 1 ? 2 : 0);
    return others_fail(id, rank, ranks, DEADLINE, leave, "rank 1 has left");
}

static void test_a_rank_that_ends(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(sees_death, 3), 0);
}

static void test_a_rank_that_gives_up(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(sees_abort, 3), 0);
}

static void test_a_rank_that_hangs(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(sees_hang, 3), 1); /* the one that hangs */
}

static void test_a_rank_that_leaves(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(sees_leaving, 3), 1);
}

/* A rank that never joins is told by its number. */
static void test_a_rank_that_never_joins(void **state)
{
    struct collective_id id;
    struct error err = {0};

    (void)state;
    assert_int_equal(collective_cpu_id(&id, 2, &err), 0);
    assert_null(collective_cpu_join(&id, 0, 2, 0.2, &err));
    assert_non_null(strstr(err.message, "rank 1 has not come within 0.2 s"));
    /* and whoever comes later finds nothing */
    assert_null(collective_cpu_join(&id, 1, 2, 0.2, &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
}

static void test_an_id_of_nobody(void **state)
{
    struct collective_id id = {{0}};
    struct error err = {0};

    (void)state;
    assert_null(collective_cpu_join(&id, 1, 2, 0.2, &err));
    assert_non_null(strstr(err.message, "another machine"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_and_exchanges),      cmocka_unit_test(test_many_meetings),
        cmocka_unit_test(test_a_rank_that_ends),        cmocka_unit_test(test_a_rank_that_gives_up),
        cmocka_unit_test(test_a_rank_that_hangs),       cmocka_unit_test(test_a_rank_that_leaves),
        cmocka_unit_test(test_a_rank_that_never_joins), cmocka_unit_test(test_an_id_of_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
