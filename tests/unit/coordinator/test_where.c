/* The grammar of --where, on real rows; and its errors. */
#include "coordinator/where.h"
#include "tests/unit/coordinator/store_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static void fill(struct store *store)
{
    keep_sweep(store, "last");
    keep_trial(store, 1, 0.9,
               "{\"batch_size\": 64, \"model.kind\": \"mlp\", \"hidden\": [128, 128], \"bias\": true, "
               "\"norm\": \"none\"}");
    keep_trial(store, 2, 0.8,
               "{\"batch_size\": 128, \"model.kind\": \"linear\", \"hidden\": [64], \"bias\": false}");
    keep_trial(store, 3, 0.7,
               "{\"batch_size\": 0.30000000000000004, \"model.kind\": null, \"my key\": 5, \"bias\": 1}");
    keep_trial(store, 4, 0.6,
               "{\"batch_size\": \"64\", \"model.kind\": \"true\", \"state\": 7, \"big\": 9007199254740993}");
    struct record trial = trial_record(5, TRIAL_FAILED, (double)NAN, 2, "{\"batch_size\": 32}");
    trial.trial.reason = REASON_DIVERGED;
    trial.trial.derived = json_pack("{s:i}", "micro_batch", 8);
    keep(store, trial);
    keep(store, report_record(5, 1, 2, "{\"accuracy\": \"NaN\", \"loss\": \"Infinity\"}"));
}

/* The numbers of the trials that a condition leaves, as "1 2 3". */
static void expect(struct store *store, const char *where, const char *trials)
{
    struct error err = {0};
    struct leaderboard_query query = {.where = where, .sort = "trial"};
    json_t *rows = store_leaderboard(store, SWEEP_ID, &query, &err);
    if (rows == NULL) {
        fail_msg("%s", err.message);
    }
    char found[100] = "";
    for (size_t i = 0; i < json_array_size(rows); i++) {
        char number[24];
        snprintf(number, sizeof number, "%s%lld", i > 0 ? " " : "",
                 (long long)json_get_integer(json_array_get(rows, i), "trial", -1));
        strcat(found, number);
    }
    json_decref(rows);
    if (strcmp(found, trials) != 0) {
        fail_msg("%s: found %s, expected %s", where, found, trials);
    }
}

static void test_conditions(void **state)
{
    static const struct {
        const char *where, *trials;
    } cases[] = {
        {"batch_size >= 64", "1 2"},
        {"batch_size = 64", "1"},
        {"batch_size == 64.0", "1"},
        {"batch_size = '64'", "4"},
        {"batch_size != 64", "2 3 4 5"},
        {"not batch_size = 64", "2 3 4 5"},
        {"batch_size = 0.30000000000000004", "3"},
        {"batch_size = 0.3", ""},
        {"batch_size > 3e-1 and batch_size < 1e0", "3"},
        {"big = 9007199254740993", "4"},
        {"big > 9007199254740992", "4"},
        {"big > 9007199254740993", ""},
        {"state = completed", "1 2 3 4"},
        {"state != completed", "5"},
        {"reason in (diverged, crashed)", "5"},
        {"parameters.state = 7", "4"},
        {"model.kind = mlp", "1"},
        {"model.kind in ('mlp', \"linear\")", "1 2"},
        {"model.kind not in (mlp, linear)", "3 4 5"},
        {"norm = none", "1"}, /* a word like any other */
        {"norm != none", "2 3 4 5"},
        {"model.kind = null", "3 5"},
        {"model.kind != null", "1 2 4"},
        {"model.kind = 'true'", "4"},
        {"model.kind > 'l'", "1 2 4"},
        {"bias = true", "1"},
        {"bias = 1", "3"},
        {"bias != false", "1 3 4 5"},
        {"\"my key\" = 5", "3"},
        {"hidden = [128, 128]", "1"},
        {"hidden in ([64], [128,128])", "1 2"},
        {"accuracy >= 0.8", "1 2"},
        {"metrics.accuracy < 0.65", "4"},
        {"loss > 1e300", "5"},
        {"accuracy = NaN", "5"},
        {"accuracy < 1e9", "1 2 3 4"},
        {"micro_batch = 8", "5"},
        {"derived.micro_batch = 8 or rank = 1", "1 5"},
        {"rank = null", "5"},
        {"rank <= 2", "1 2"},
        {"objective > 0.65 and objective < 0.85", "2 3"},
        {"trial = 1 or trial = 2 and state = failed", "1"},
        {"(trial = 1 or trial = 2) and not state = failed", "1 2"},
        {"NOT NOT trial = 3", "3"},
        {"not (trial = 1 or trial = 2)", "3 4 5"},
        {"worker = node1", "1 2 3 4"},
        {"worker = null", "5"},
        {"worker != 'it''s'", "1 2 3 4 5"},
        {"seconds > 1 AND attempts = 1", "1 2 3 4"},
        {"batch_size=64", "1"},
        {"batch_size>-5", "1 2 3 5"},
        {"model.kind = '; DROP TABLE trial; --'", ""},
    };
    struct fixture *fixture = *state;
    fill(fixture->store);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(fixture->store, cases[i].where, cases[i].trials);
    }
}

static void test_errors(void **state)
{
    static const struct {
        const char *where, *message;
    } cases[] = {
        {"batch_sise > 3", "character 1: unknown name 'batch_sise' (did you mean 'batch_size'?)"},
        {"trial = 1 and acuracy > 3", "character 15: unknown name 'acuracy' (did you mean 'accuracy'?)"},
        {"stat = completed", "did you mean 'state'?"},
        {"qqqqqqqqq = 3", "unknown name 'qqqqqqqqq'; there are rank, trial, state,"},
        {"batch_size >= abc", "character 15: 'abc' is no number, which < and > compare"},
        {"hidden = 64", "character 10: hidden holds lists, such as [64], found '64'"},
        {"hidden = wide", "character 10: hidden holds lists, found 'wide'"},
        {"hidden in ([64], 128)", "character 18: hidden holds lists, such as [128]"},
        {"model.kind = 3", "character 14: model.kind holds text, found '3'"},
        {"micro_batch < '8'", "character 15: micro_batch holds numbers (written without quotes), found '8'"},
        {"derived.micro_batch = wide", "micro_batch holds numbers, found 'wide'"},
        {"accuracy > '0.5'", "character 12: accuracy holds numbers (written without quotes), found '0.5'"},
        {"accuracy = high", "character 12: a metric is a number, found 'high'"},
        {"state = stopped/pruned",
         "character 9: no state is called 'stopped/pruned'; write state = stopped and reason = pruned"},
        {"state = diverged", "no state is called 'diverged'; write reason = diverged"},
        {"state = done", "no state is called 'done'; there are waiting, running, paused, completed"},
        {"state = complete", "character 9: no state is called 'complete' (did you mean 'completed'?)"},
        {"", "character 1: expected a name, found the end"},
        {"batch_size", "character 11: expected a comparison"},
        {"batch_size >", "character 13: expected a value, found the end"},
        {"batch_size > 3 4", "character 16: expected and, or, or the end, found '4'"},
        {"(batch_size > 3", "expected ')', and, or, found the end"},
        {"batch_size in 3", "expected '(' after in, found '3'"},
        {"batch_size in (3", "expected ',' or ')', found the end"},
        {"batch_size not 3", "expected in, found '3'"},
        {"worker = 'x", "character 10: the quote ' is not closed"},
        {"hidden = [1, 2", "character 10: the list is not closed"},
        {"hidden = [1 2]", "not JSON"},
        {"hidden < [1]", "only be compared with = and !="},
        {"bias < true", "only be compared with = and !="},
        {"bias >= null", "only be compared with = and !="},
        {"objective > big", "objective is compared with a number or null, found 'big'"},
        {"worker = 3", "worker is compared with a string (quote it)"},
        {"batch_size ; 3", "character 12: ';' has no meaning here"},
        {"'\xc3\xa4' = 3 ; 3", "character 1: unknown name"},
    };
    struct fixture *fixture = *state;
    fill(fixture->store);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct leaderboard_query query = {.where = cases[i].where};
        json_t *rows = store_leaderboard(fixture->store, SWEEP_ID, &query, &err);
        assert_null(rows);
        assert_int_equal(err.code, ERROR_USAGE);
        if (strstr(err.message, cases[i].message) == NULL) {
            fail_msg("%s: '%s' does not contain '%s'", cases[i].where, err.message, cases[i].message);
        }
    }
}

static void test_limits(void **state)
{
    static const char *const parameters[] = {"x", NULL};
    const struct where_names names = {.parameters = parameters};
    struct where where;
    struct error err;
    (void)state;
    char text[20000] = "";
    for (int i = 0; i < 10000; i++) {
        text[i] = '(';
    }
    assert_int_equal(where_compile(&where, text, &names, 1, &err), -1);
    assert_non_null(strstr(err.message, "too deeply"));
    text[0] = '\0';
    for (int i = 0; i < 1000; i++) {
        strcat(text, "not ");
    }
    assert_int_equal(where_compile(&where, text, &names, 1, &err), -1);
    strcpy(text, "x = 1");
    for (int i = 0; i < 1000; i++) {
        strcat(text, " or x = 1");
    }
    assert_int_equal(where_compile(&where, text, &names, 1, &err), -1);
    assert_non_null(strstr(err.message, "comparisons"));
    assert_null(where.sql);
}

/* Appends one of the words, separated by a blank. */
static void add_word(char *text, const char *const *words, size_t count, unsigned *seed)
{
    strcat(text, words[(size_t)rand_r(seed) % count]);
    strcat(text, " ");
}
#define ADD(text, words, seed) add_word(text, words, sizeof words / sizeof *words, seed)

/* Random conditions, every fourth word out of place: each compiles and then runs, or is refused; nothing
 * crashes, and nothing that was typed gets into the SQL itself (SQLite would not know it). */
static void test_random_conditions(void **state)
{
    static const char *const names[] = {"batch_size", "\"state\"", "accuracy", "trial",
                                        "bias",       "not trial", "( rank"};
    static const char *const comparators[] = {"=", "!=", "<", ">=", "==", "in ("};
    static const char *const values[] = {"64", "-1.5e3", "'a'", "null", "true", "[1]", "completed", "1 )"};
    static const char *const joints[] = {"and", "or", ")", "or not", "and (", ""};
    static const char *const odd[] = {"in", "(",   ")",  ",",  "'",  "[",    ";",
                                      "--", "not", "\"", "%s", "?1", "batch"};
    struct fixture *fixture = *state;
    fill(fixture->store);
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    int compiled = 0;
    for (int round = 0; round < 2000; round++) {
        char text[300] = "";
        for (int i = rand_r(&seed) % 4; i >= 0; i--) {
            ADD(text, names, &seed);
            ADD(text, comparators, &seed);
            ADD(text, values, &seed);
            if (rand_r(&seed) % 4 == 0) {
                ADD(text, odd, &seed);
            }
            if (i > 0) {
                ADD(text, joints, &seed);
            }
        }
        struct error err = {0};
        struct leaderboard_query query = {.where = text};
        json_t *rows = store_leaderboard(fixture->store, SWEEP_ID, &query, &err);
        if (rows == NULL && err.code != ERROR_USAGE) {
            fail_msg("%s: %s", text, err.message);
        }
        compiled += rows != NULL;
        json_decref(rows);
    }
    print_message("%d of 2000 compiled\n", compiled);
    assert_in_range(compiled, 50, 1500);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_conditions),
        TEST(test_errors),
        TEST(test_limits),
        TEST(test_random_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
