/* Leaderboard, show and list: order, keys, which metrics, and equal text for equal contents. */
#include "tests/unit/coordinator/store_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static json_t *board(struct store *store, const char *sort, int64_t top)
{
    struct error err = {0};
    struct leaderboard_query query = {.sort = sort, .top = top};
    json_t *rows = store_leaderboard(store, SWEEP_ID, &query, &err);
    if (rows == NULL) {
        fail_msg("%s", err.message);
    }
    return rows;
}

/* "trial:rank" of each row, "-" for no rank. */
static void assert_order(json_t *rows, const char *expected)
{
    char order[200] = "";
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        char part[50], rank[24] = "-";
        if (!json_is_null(json_object_get(row, "rank"))) {
            snprintf(rank, sizeof rank, "%lld", (long long)json_get_integer(row, "rank", -1));
        }
        snprintf(part, sizeof part, "%s%lld:%s", i > 0 ? " " : "",
                 (long long)json_get_integer(row, "trial", -1), rank);
        strcat(order, part);
    }
    json_decref(rows);
    assert_string_equal(order, expected);
}

static void assert_text(json_t *value, const char *expected)
{
    char *text = json_canonical(value);
    assert_string_equal(text, expected);
    free(text);
}

static void test_order(void **state)
{
    struct fixture *fixture = *state;
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.5, "{\"learning_rate\": 0.3}");
    keep_trial(fixture->store, 2, 0.9, "{\"learning_rate\": 0.1}");
    keep_trial(fixture->store, 3, 0.5, "{\"learning_rate\": 0.2}");
    keep(fixture->store, trial_record(4, TRIAL_FAILED, (double)NAN, 0, "{}"));
    keep(fixture->store, trial_record(5, TRIAL_STOPPED, -0.1, 1, "{\"learning_rate\": \"NaN\"}"));
    keep(fixture->store, trial_record(6, TRIAL_COMPLETED, (double)INFINITY, 1, "{}"));
    struct record refit = trial_record(0, TRIAL_COMPLETED, 0.99, 9, "{}");
    refit.trial.is_final = true;
    keep(fixture->store, refit);
    assert_order(board(fixture->store, NULL, 0), "2:1 1:2 3:3 5:4 4:- 6:-");
    assert_order(board(fixture->store, NULL, 2), "2:1 1:2");
    assert_order(board(fixture->store, "learning_rate", 0), "2:1 3:3 1:2 5:4 4:- 6:-");
    assert_order(board(fixture->store, "-learning_rate", 0), "1:2 3:3 2:1 5:4 4:- 6:-");
    assert_order(board(fixture->store, "-trial", 3), "6:- 5:4 4:-");
    assert_order(board(fixture->store, "state", 0), "2:1 1:2 3:3 6:- 4:- 5:4");
    struct error err = {0};
    struct leaderboard_query query = {.sort = "learning_rat"};
    assert_null(store_leaderboard(fixture->store, SWEEP_ID, &query, &err));
    assert_non_null(strstr(err.message, "did you mean 'learning_rate'?"));
    assert_null(store_leaderboard(fixture->store, "nothere", &(struct leaderboard_query){0}, &err));
    assert_int_equal(err.code, ERROR_USAGE);
}

static void test_minimize(void **state)
{
    struct fixture *fixture = *state;
    keep(fixture->store,
         sweep_record(SWEEP_ID, "m", 1, "{\"metric\": {\"name\": \"loss\", \"goal\": \"minimize\"}}"));
    keep(fixture->store, trial_record(1, TRIAL_COMPLETED, 2, 1, "{}"));
    keep(fixture->store, trial_record(2, TRIAL_COMPLETED, -1, 1, "{}"));
    keep(fixture->store, trial_record(3, TRIAL_COMPLETED, (double)-INFINITY, 1, "{}"));
    assert_order(board(fixture->store, NULL, 0), "2:1 1:2 3:-");
}

static void test_row(void **state)
{
    struct fixture *fixture = *state;
    keep_sweep(fixture->store, "last");
    struct record trial = trial_record(1, TRIAL_COMPLETED, 0.1, 2, "{\"b\": 1.0, \"a\": [1, \"x\"]}");
    trial.trial.derived = json_pack("{s:f}", "peak", 0.01);
    keep(fixture->store, trial);
    keep(fixture->store, attempt_record(1, 1, "node1", 0.1));
    struct record second = attempt_record(1, 2, "node2", 0.2);
    free(second.attempt.device);
    second.attempt.device = NULL;
    keep(fixture->store, second);
    keep(fixture->store, report_record(1, 1, 2, "{\"accuracy\": 9}"));
    keep(fixture->store, report_record(1, 2, 2, "{\"accuracy\": 0.1, \"loss\": \"NaN\"}"));
    keep(fixture->store, report_record(1, 1, 3, "{\"accuracy\": 8}"));
    json_t *rows = board(fixture->store, NULL, 0);
    assert_text(
        rows,
        "[{\"attempts\":2,\"derived\":{\"peak\":0.01},\"device\":null,\"metrics\":{\"accuracy\":0.1,"
        "\"loss\":\"NaN\"},\"objective\":0.1,\"parameters\":{\"a\":[1,\"x\"],\"b\":1.0},\"rank\":1,"
        "\"reason\":\"finished\",\"resource\":2,\"seconds\":0.30000000000000004,\"state\":\"completed\","
        "\"sweep\":\"digits\",\"trial\":1,\"worker\":\"node2\"}]");
    json_decref(rows);
}

/* Objective `best`: the metrics are those of the best epoch, by the newest attempt that reported it. */
static void test_metrics_of_the_best_epoch(void **state)
{
    static const char *const objectives[] = {"last", "best"};
    static const char *const expected[] = {"{\"accuracy\":0.5,\"loss\":3}", "{\"accuracy\":0.8,\"loss\":2}"};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < 2; i++) {
        keep_sweep(fixture->store, objectives[i]);
        keep(fixture->store, trial_record(1, TRIAL_COMPLETED, 0.8, 4, "{}"));
        keep(fixture->store, report_record(1, 1, 1, "{\"accuracy\": \"NaN\", \"loss\": 1}"));
        keep(fixture->store, report_record(1, 1, 2, "{\"accuracy\": 0.8, \"loss\": 2}"));
        keep(fixture->store, report_record(1, 1, 3, "{\"accuracy\": 0.99, \"loss\": 9}"));
        keep(fixture->store, report_record(1, 2, 3, "{\"accuracy\": 0.8, \"loss\": 4}"));
        keep(fixture->store, report_record(1, 2, 4, "{\"accuracy\": 0.5, \"loss\": 3}"));
        json_t *rows = board(fixture->store, NULL, 0);
        assert_text(json_object_get(json_array_get(rows, 0), "metrics"), expected[i]);
        json_decref(rows);
    }
}

static void test_metric_with_a_quote(void **state)
{
    struct fixture *fixture = *state;
    keep(fixture->store,
         sweep_record(SWEEP_ID, "q", 1, "{\"metric\": {\"name\": \"a\\\"b\", \"objective\": \"best\"}}"));
    keep(fixture->store, trial_record(1, TRIAL_COMPLETED, 0.5, 4, "{}"));
    keep(fixture->store, report_record(1, 1, 4, "{\"a\\\"b\": 0.5}"));
    assert_order(board(fixture->store, NULL, 0), "1:1");
}

static void test_show(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    keep_sweep(fixture->store, "last");
    keep(fixture->store, trial_record(7, TRIAL_PAUSED, 0.5, 2, "{\"a\": 1}"));
    struct record attempt = attempt_record(7, 1, "node1", 0.1);
    attempt.attempt.error = strdup("boom");
    attempt.attempt.outcome = OUTCOME_CRASHED;
    keep(fixture->store, attempt);
    keep(fixture->store, attempt_record(7, 2, "node2", 0.2));
    keep(fixture->store, report_record(7, 1, 1, "{\"accuracy\": 0.1}"));
    keep(fixture->store, report_record(7, 2, 1, "{\"accuracy\": 0.2}"));
    keep(fixture->store, report_record(7, 2, 2, "{\"accuracy\": 0.5}"));
    json_t *trial = store_trial(fixture->store, "digits", 7, &err);
    assert_non_null(trial);
    assert_text(json_object_get(trial, "curve"),
                "[{\"attempt\":2,\"metrics\":{\"accuracy\":0.2},\"resource\":1,\"seconds\":0.25},"
                "{\"attempt\":2,\"metrics\":{\"accuracy\":0.5},\"resource\":2,\"seconds\":0.25}]");
    const json_t *first = json_array_get(json_object_get(trial, "attempts"), 0);
    assert_string_equal(json_get_string(first, "error", ""), "boom");
    assert_string_equal(json_get_string(first, "outcome", ""), "crashed");
    assert_true(json_is_null(json_object_get(first, "ended_ms")));
    assert_string_equal(json_get_string(trial, "state", ""), "paused");
    json_decref(trial);
    assert_null(store_trial(fixture->store, SWEEP_ID, 8, &err));
    assert_string_equal(err.message, "sweep digits has no trial 8");
    assert_null(store_trial(fixture->store, "gone", 7, &err));
    assert_non_null(strstr(err.message, "has no sweep gone"));
}

/* Four seeds a point: the standard error of the best is 0.02 / 2. */
static void test_rows_as_good_as_the_best(void **state)
{
    struct fixture *fixture = *state;
    struct leaderboard_query query = {.where = "trial > 1"};
    static const double accuracies[] = {0.9, 0.889, 0.8901, 0.5};
    keep(fixture->store, sweep_record(SWEEP_ID, "digits", 1,
                                      "{\"metric\": {\"name\": \"accuracy\", \"goal\": \"maximize\"}, "
                                      "\"train\": {\"replicates\": 4}}"));
    for (int64_t trial = 1; trial <= 4; trial++) {
        char metrics[100];
        snprintf(metrics, sizeof metrics, "{\"accuracy\": %g, \"accuracy_sd\": %g}", accuracies[trial - 1],
                 trial == 1 ? 0.02 : 0.5);
        keep(fixture->store, trial_record(trial, TRIAL_COMPLETED, accuracies[trial - 1], 3, "{}"));
        keep(fixture->store, attempt_record(trial, 1, "node1", 1));
        keep(fixture->store, report_record(trial, 1, 3, metrics));
    }
    json_t *rows = store_leaderboard(fixture->store, SWEEP_ID, &query, NULL); /* without the best itself */
    assert_int_equal(json_array_size(rows), 3);
    assert_true(json_is_true(json_object_get(json_array_get(rows, 0), "within_one_se")));  /* 3 */
    assert_true(json_is_false(json_object_get(json_array_get(rows, 1), "within_one_se"))); /* 2 */
    assert_true(json_is_false(json_object_get(json_array_get(rows, 2), "within_one_se")));
    json_decref(rows);
}

static void test_list(void **state)
{
    struct fixture *fixture = *state;
    json_t *rows = store_list(fixture->store, NULL);
    assert_int_equal(json_array_size(rows), 0);
    json_decref(rows);
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.25, "{}");
    keep_trial(fixture->store, 2, 0.75, "{}");
    keep(fixture->store, trial_record(3, TRIAL_FAILED, (double)NAN, 0, "{}"));
    keep(fixture->store, trial_record(4, TRIAL_STOPPED, (double)INFINITY, 0, "{}"));
    struct record refit = trial_record(0, TRIAL_COMPLETED, 0.99, 9, "{}");
    refit.trial.is_final = true;
    keep(fixture->store, refit);
    struct record other = sweep_record("99999999", "empty", 5000, NULL);
    other.sweep.state = SWEEP_FINISHED;
    other.sweep.ended_ms = 6000;
    other.sweep.final = json_pack("{s:f}", "test_accuracy", 0.5);
    keep(fixture->store, other);
    rows = store_list(fixture->store, NULL);
    assert_text(rows,
                "[{\"baseline\":null,\"best\":null,\"best_trial\":null,\"completed\":0,\"created_ms\":5000,"
                "\"ended_ms\":6000,"
                "\"failed\":0,"
                "\"final\":{\"test_accuracy\":0.5},\"goal\":\"minimize\",\"id\":\"99999999\",\"method\":null,"
                "\"metric\":null,\"name\":\"empty\",\"parameters\":[],\"precision\":null,\"state\":"
                "\"finished\",\"stopped\":0,"
                "\"trials\":0},"
                "{\"baseline\":null,\"best\":0.75,\"best_trial\":2,\"completed\":2,\"created_ms\":1000,"
                "\"ended_ms\":null,\"failed\":1,"
                "\"final\":null,\"goal\":\"maximize\",\"id\":\"abcd1234\",\"method\":\"random\",\"metric\":"
                "\"accuracy\","
                "\"name\":\"digits\",\"parameters\":[\"learning_rate\"],\"precision\":null,\"state\":"
                "\"running\",\"stopped\":1,"
                "\"trials\":4}]");
    json_decref(rows);
}

static void test_answers(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.25, "{\"a\": 1}");
    keep_trial(fixture->store, 2, 0.5, "{\"a\": 2}");
    json_t *body = json_pack("{s:s, s:i, s:i}", "where", "a > 0", "top", 1, "trial", 2);
    json_t *answer = store_answer(fixture->store, SWEEP_ID, "leaderboard", body, &err);
    assert_order(answer, "2:1");
    answer = store_answer(fixture->store, SWEEP_ID, "show", body, &err);
    assert_int_equal(json_get_integer(answer, "trial", 0), 2);
    json_decref(answer);
    answer = store_answer(fixture->store, NULL, "list", NULL, &err);
    assert_int_equal(json_array_size(answer), 1);
    json_decref(answer);
    assert_null(store_answer(fixture->store, NULL, "leaderbord", body, &err));
    assert_non_null(strstr(err.message, "did you mean 'leaderboard'?"));
    assert_null(store_answer(fixture->store, NULL, NULL, NULL, &err));
    json_decref(body);
}

static double milliseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)(now.tv_sec - start->tv_sec) * 1e3 + (double)(now.tv_nsec - start->tv_nsec) * 1e-6;
}

/* 10,000 trials must not keep a live coordinator from its work for long. */
static void test_a_large_board(void **state)
{
    enum { TRIALS = 10000 };
    struct fixture *fixture = *state;
    struct record *records = calloc(3 * TRIALS, sizeof *records);
    keep_sweep(fixture->store, "best");
    for (int i = 0; i < TRIALS; i++) {
        records[3 * i] =
            trial_record(i + 1, TRIAL_COMPLETED, (i * 7919 % TRIALS) / 1e4, 1, "{\"learning_rate\": 0.1}");
        records[3 * i + 1] = attempt_record(i + 1, 1, "n", 0.1);
        records[3 * i + 2] = report_record(i + 1, 1, 1, "{\"accuracy\": 0.5}");
    }
    assert_int_equal(store_commit(fixture->store, SWEEP_ID, records, 3 * TRIALS, NULL), 0);
    for (int i = 0; i < 3 * TRIALS; i++) {
        record_release(&records[i]);
    }
    free(records);
    struct timespec start;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    json_t *rows = board(fixture->store, NULL, 20);
    double plain = milliseconds_since(&start);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    struct leaderboard_query query = {
        .where = "accuracy > 0.1 and learning_rate < 1", .sort = "learning_rate", .top = 20};
    json_t *filtered = store_leaderboard(fixture->store, SWEEP_ID, &query, NULL);
    print_message("top 20 of %d: %.1f ms, with where and sort %.1f ms\n", TRIALS, plain,
                  milliseconds_since(&start));
    assert_int_equal(json_array_size(filtered), 20);
    json_decref(filtered);
    assert_int_equal(json_array_size(rows), 20);
    assert_true(json_get_number(json_array_get(rows, 0), "objective", 0) == (TRIALS - 1) / 1e4);
    json_decref(rows);
}

/* What the refit was told besides its derived values is the sweep's, and no name of a trial's. */
static void test_the_refit(void **state)
{
    static const char *const foreign[] = {"baseline", "test_accuracy", "derived"};
    struct fixture *fixture = *state;
    struct error err = {0};
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.5, "{\"learning_rate\": 0.3}");
    struct record refit = trial_record(0, TRIAL_COMPLETED, 0.99, 9, "{\"learning_rate\": 0.3}");
    refit.trial.is_final = true;
    refit.trial.derived = json_pack("{s:{s:f}, s:{}, s:{s:i}}", "test_accuracy", "mean", 0.9, "baseline",
                                    "derived", "scale", 2);
    memset(refit.trial.checkpoint, 'a', 64);
    keep(fixture->store, refit);
    json_t *trial = store_trial(fixture->store, SWEEP_ID, 0, &err);
    assert_text(json_object_get(trial, "derived"), "{\"scale\":2}");
    assert_int_equal(strlen(json_get_string(trial, "checkpoint", "")), 64);
    json_decref(trial);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        struct leaderboard_query query = {.sort = foreign[i]};
        assert_null(store_leaderboard(fixture->store, SWEEP_ID, &query, &err));
        assert_non_null(strstr(err.message, "unknown name"));
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_order),
        TEST(test_minimize),
        TEST(test_row),
        TEST(test_metrics_of_the_best_epoch),
        TEST(test_metric_with_a_quote),
        TEST(test_show),
        TEST(test_rows_as_good_as_the_best),
        TEST(test_the_refit),
        TEST(test_list),
        TEST(test_answers),
        TEST(test_a_large_board),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
