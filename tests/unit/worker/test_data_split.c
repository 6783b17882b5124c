/* The split: shares, strata, the same for one seed and another for the next; statistics from training rows
 * only. */
#include "tests/unit/worker/data_fixture.h"
#include "worker/training/data_split.h"

#include <math.h>

enum { ROWS = 1000, CLASSES = 4 };

/* Classes of 600, 300, 99 and 1 rows, mixed. */
static void make_labels(int32_t *label)
{
    for (int i = 0; i < ROWS; i++) {
        int k = i * 7 % ROWS;
        label[i] = k < 600 ? 0 : k < 900 ? 1 : k < 999 ? 2 : 3;
    }
}

static void split(unsigned char *part, const int32_t *label, uint64_t seed)
{
    struct error err = {0};
    if (split_rows(part, label, CLASSES, ROWS, 0.15, 0.25, seed, &err) < 0)
        fail_msg("%s", err.message);
}

static void shares_hold_in_every_class(void **state)
{
    (void)state;
    int32_t label[ROWS];
    unsigned char part[ROWS];
    make_labels(label);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        int count[CLASSES][SPLIT_COUNT] = {{0}}, total[SPLIT_COUNT] = {0};
        split(part, label, seed);
        for (int i = 0; i < ROWS; i++) {
            count[label[i]][part[i]]++;
            total[part[i]]++;
        }
        assert_int_equal(total[SPLIT_TEST], 250);
        assert_int_equal(total[SPLIT_VALIDATION], 150);
        const int size[CLASSES] = {600, 300, 99, 1};
        for (int c = 0; c < 3; c++) {
            assert_true(fabs(count[c][SPLIT_TEST] - 0.25 * size[c]) <= 1.5);
            assert_true(fabs(count[c][SPLIT_VALIDATION] - 0.15 * size[c]) <= 1.5);
        }
        assert_int_equal(count[3][SPLIT_TRAIN], 1);
    }
}

static void one_seed_one_split(void **state)
{
    (void)state;
    int32_t label[ROWS];
    unsigned char a[ROWS], b[ROWS], other[ROWS];
    make_labels(label);
    split(a, label, 1);
    split(b, label, 1);
    split(other, label, 2);
    assert_memory_equal(a, b, ROWS);
    int moved = 0;
    for (int i = 0; i < ROWS; i++)
        moved += a[i] != other[i];
    assert_in_range(moved, 300, 800); /* independent splits differ in 1 - (0.6^2 + 0.15^2 + 0.25^2) = 55 % */
}

/* Not of labels: position must not matter, as files are often sorted. */
static void without_labels_any_row_may_go_anywhere(void **state)
{
    (void)state;
    unsigned char part[ROWS];
    double mean = 0;
    int tests = 0;
    split(part, NULL, 3);
    for (int i = 0; i < ROWS; i++)
        if (part[i] == SPLIT_TEST) {
            mean += i;
            tests++;
        }
    assert_int_equal(tests, 250);
    mean /= tests;
    assert_true(fabs(mean - ROWS / 2.0) < 4 * ROWS / sqrt(12.0 * tests));
}

static const char digits[] = RUNG_SOURCE_DIR "/configs/digits.csv.gz";

static json_t *digits_options(void)
{
    return json_pack("{s:s, s:s}", "path", digits, "target", "label");
}

static void statistics_come_from_training_rows(void **state)
{
    (void)state;
    struct dataset dataset;
    struct error err = {0};
    json_t *options = digits_options();
    if (dataset_load(&dataset, options, NULL, 7, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(all_rows(&dataset), 1797);
    assert_int_equal(dataset.rows[SPLIT_TEST], 359);
    assert_int_equal(dataset.rows[SPLIT_VALIDATION], 359);
    assert_int_equal(dataset.classes, 10);
    for (int64_t f = 0; f < dataset.features; f++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < dataset.rows[SPLIT_TRAIN]; i++) {
            double x = dataset.x[SPLIT_TRAIN][i * dataset.features + f];
            sum += x;
            squares += x * x;
        }
        double mean = sum / (double)dataset.rows[SPLIT_TRAIN];
        assert_true(fabs(mean) < 1e-6);
        assert_true(fabs(squares / (double)dataset.rows[SPLIT_TRAIN] - mean * mean - 1) < 1e-5);
    }
    dataset_release(&dataset);
    json_decref(options);
}

static void the_refit_keeps_the_test_rows(void **state)
{
    (void)state;
    struct dataset search, refit;
    struct error err = {0};
    json_t *options = digits_options();
    assert_int_equal(dataset_load(&search, options, NULL, 7, &err), 0);
    assert_int_equal(dataset_load_refit(&refit, options, NULL, 7, &err), 0);
    assert_int_equal(refit.rows[SPLIT_TRAIN], search.rows[SPLIT_TRAIN] + search.rows[SPLIT_VALIDATION]);
    assert_int_equal(refit.rows[SPLIT_VALIDATION], 0);
    assert_int_equal(refit.rows[SPLIT_TEST], search.rows[SPLIT_TEST]);
    assert_memory_equal(refit.label[SPLIT_TEST], search.label[SPLIT_TEST],
                        (size_t)search.rows[SPLIT_TEST] * sizeof(int32_t));
    for (int64_t f = 0; f < search.features; f++) {
        int64_t g = 0; /* a column constant in the training rows may not be so in more of them */
        while (strcmp(feature_name(&search, f), feature_name(&refit, g)))
            g++;
        for (int64_t i = 0; i < search.rows[SPLIT_TEST]; i++)
            assert_true(fabs(original(&search, SPLIT_TEST, i, f) - original(&refit, SPLIT_TEST, i, g)) <
                        1e-4);
    }
    dataset_release(&search);
    dataset_release(&refit);
    json_decref(options);
}

static void regression_targets_are_standardised(void **state)
{
    (void)state;
    char text[4000];
    int size = snprintf(text, sizeof text, "a,y\n");
    for (int i = 0; i < 100; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%g\n", i, 1000 + 2.5 * i);
    struct dataset dataset = load_text(text, "\"y\"", "\"test\": 0");
    assert_int_equal(dataset.task, TASK_REGRESSION);
    assert_int_equal(dataset.rows[SPLIT_TEST], 0);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < dataset.rows[SPLIT_TRAIN]; i++) {
        double y = dataset.y[SPLIT_TRAIN][i];
        assert_true(fabs(y * dataset.target_sd + dataset.target_mean - 1000 -
                         2.5 * original(&dataset, SPLIT_TRAIN, i, 0)) < 1e-3);
        sum += y;
        squares += y * y;
    }
    assert_true(fabs(sum) < 1e-4 && fabs(squares / (double)dataset.rows[SPLIT_TRAIN] - 1) < 1e-5);
    dataset_release(&dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_hold_in_every_class),
        cmocka_unit_test(one_seed_one_split),
        cmocka_unit_test(without_labels_any_row_may_go_anywhere),
        cmocka_unit_test(statistics_come_from_training_rows),
        cmocka_unit_test(the_refit_keeps_the_test_rows),
        cmocka_unit_test(regression_targets_are_standardised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
