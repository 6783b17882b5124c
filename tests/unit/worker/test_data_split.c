/* The split: shares, strata, the same for one seed and another for the next; statistics from training rows
 * only. */
#include "tests/unit/worker/data_files_fixture.h"
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

static const struct split_options shares = {.validation = 0.15, .test = 0.25, .seed = 1};

/* Groups of 1, 2, ... 8 rows, again and again, numbered in the order of rows that lie apart. */
static int make_groups(int32_t *group)
{
    int groups = 0;
    for (int i = 0; i < ROWS; groups++)
        for (int k = 0; k < groups % 8 + 1 && i < ROWS; k++, i++)
            group[i * 7 % ROWS] = groups;
    return groups;
}

static void check_whole(const unsigned char *part, const int32_t *group, int groups)
{
    int *of = calloc((size_t)groups, sizeof *of);
    for (int i = 0; i < ROWS; i++)
        of[group[i]] |= 1 << part[i];
    for (int g = 0; g < groups; g++)
        assert_true(of[g] == 1 || of[g] == 2 || of[g] == 4);
    free(of);
}

static void groups_stay_whole_and_shares_hold(void **state)
{
    (void)state;
    int32_t label[ROWS], group[ROWS];
    unsigned char part[ROWS], again[ROWS], other[ROWS];
    struct error err = {0};
    make_labels(label);
    int groups = make_groups(group);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct split_options options = shares;
        int count[CLASSES][SPLIT_COUNT] = {{0}}, total[SPLIT_COUNT] = {0};
        options.seed = seed;
        assert_int_equal(split_groups(part, group, groups, label, CLASSES, ROWS, &options, &err), 0);
        check_whole(part, group, groups);
        for (int i = 0; i < ROWS; i++) {
            count[label[i]][part[i]]++;
            total[part[i]]++;
        }
        assert_in_range(total[SPLIT_TEST], 246, 254);
        assert_in_range(total[SPLIT_VALIDATION], 146, 154);
        const int size[CLASSES] = {600, 300, 99, 1};
        for (int c = 0; c < 3; c++) { /* within 4 rows, half the largest group */
            assert_true(abs(count[c][SPLIT_TEST] * 4 - size[c]) <= 16);
            assert_true(abs(count[c][SPLIT_VALIDATION] * 20 - size[c] * 3) <= 80);
        }
        assert_int_equal(count[3][SPLIT_TRAIN], 1);
    }
    assert_int_equal(split_groups(again, group, groups, label, CLASSES, ROWS, &shares, &err), 0);
    struct split_options second = shares;
    second.seed = 2;
    assert_int_equal(split_groups(other, group, groups, label, CLASSES, ROWS, &second, &err), 0);
    assert_int_equal(split_groups(part, group, groups, label, CLASSES, ROWS, &shares, &err), 0);
    assert_memory_equal(part, again, ROWS);
    int moved = 0;
    for (int i = 0; i < ROWS; i++)
        moved += part[i] != other[i];
    assert_in_range(moved, 300, 800);
}

static void groups_of_regression_and_large_ones(void **state)
{
    (void)state;
    int32_t group[ROWS];
    unsigned char part[ROWS];
    struct error err = {0};
    int total[SPLIT_COUNT] = {0}, large_ones[SPLIT_COUNT] = {0};
    for (int i = 0; i < ROWS; i++) /* one of 300 rows, 70 of 10 */
        group[i] = i < 300 ? 0 : 1 + (i - 300) / 10;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct split_options options = shares;
        options.seed = seed;
        assert_int_equal(split_groups(part, group, 71, NULL, 0, ROWS, &options, &err), 0);
        check_whole(part, group, 71);
        memset(total, 0, sizeof total);
        for (int i = 0; i < ROWS; i++)
            total[part[i]]++;
        assert_int_equal(part[0], SPLIT_TRAIN); /* it would burst the others */
        assert_in_range(total[SPLIT_TEST], 245, 255);
        assert_in_range(total[SPLIT_VALIDATION], 145, 155);
        large_ones[part[999]]++;
    }
    for (int split = 0; split < SPLIT_COUNT; split++)
        assert_true(large_ones[split] > 0); /* chance decides over one group of many */
    for (int i = 0; i < ROWS; i++)          /* three groups: one for each part */
        group[i] = i / 400;
    assert_int_equal(split_groups(part, group, 3, NULL, 0, ROWS, &shares, &err), 0);
    assert_true(part[0] != part[400] && part[400] != part[999] && part[0] != part[999]);
    memset(group, 0, sizeof group);
    assert_int_equal(split_groups(part, group, 1, NULL, 0, ROWS, &shares, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "data.group: 1 groups"));
}

static void the_newest_rows_test(void **state)
{
    (void)state;
    double time[ROWS];
    unsigned char part[ROWS];
    struct error err = {0};
    for (int i = 0; i < ROWS; i++)
        time[i * 7 % ROWS] = 1e9 + i;
    assert_int_equal(split_by_time(part, time, ROWS, &shares, &err), 0);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(part[i * 7 % ROWS], i < 600 ? SPLIT_TRAIN : i < 750 ? SPLIT_VALIDATION : SPLIT_TEST);
    /* Ties: days of 40 rows, so cuts at 760 (nearer to 750 than 720) and 600 (610 wanted). */
    for (int i = 0; i < ROWS; i++)
        time[i] = i / 40; /* days */
    assert_int_equal(split_by_time(part, time, ROWS, &shares, &err), 0);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(part[i], i < 600 ? SPLIT_TRAIN : i < 760 ? SPLIT_VALIDATION : SPLIT_TEST);
    for (int i = 0; i < ROWS; i++)
        time[i] = i < 500 ? 1 : 2;
    assert_int_equal(split_by_time(part, time, ROWS, &shares, &err), -1);
    assert_non_null(strstr(err.message, "data.time: rows of one time stay together"));
    struct split_options without = {.validation = 0.3};
    assert_int_equal(split_by_time(part, time, ROWS, &without, &err), 0);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(part[i], i < 500 ? SPLIT_TRAIN : SPLIT_VALIDATION);
}

static void groups_of_a_column(void **state)
{
    (void)state;
    char text[2000];
    int size = snprintf(text, sizeof text, "patient,a,y\n");
    for (int i = 0; i < 60; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "p%d,%d,%s\n", i % 15, i,
                         i % 15 % 2 ? "ill" : "well");
    size += snprintf(text + size, sizeof text - (size_t)size, ",60,ill\n,61,well\n");
    write_file("a.csv", text);
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y', 'group': 'patient'}");
    assert_int_equal(all_rows(&dataset), 62);
    assert_int_equal(dataset.features, 1);
    assert_true(has_note(&dataset, "column \"patient\" splits the rows (data.group) and is no feature"));
    assert_true(has_note(&dataset, "2 rows without a group"));
    int of[15] = {0};
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++) {
            long long row = llround(value_at(&dataset, split, i, "a"));
            if (row < 60)
                of[row % 15] |= 1 << split;
        }
    for (int g = 0; g < 15; g++)
        assert_true(of[g] == 1 || of[g] == 2 || of[g] == 4);
    dataset_release(&dataset);
    files_refused("{'path': 'a.csv', 'target': 'y', 'group': 'y'}", "data.group", "target already");
    files_refused("{'path': 'a.csv', 'target': 'y', 'group': 'patent'}", "data.group",
                  "did you mean patient");
    files_refused("{'path': 'a.csv', 'target': 'y', 'group': 'patient', 'time': 'a'}",
                  "data.group and data.time");
    forget("a.csv");
}

/* One group of 50 rows and ten alone: nobody should take the score of two rows for that of twelve. */
static void parts_far_from_their_shares(void **state)
{
    (void)state;
    char text[2000];
    int size = snprintf(text, sizeof text, "g,a,b,y\n");
    for (int i = 0; i < 60; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%d,%d,%s\n", i < 50 ? 0 : i, i, i % 7,
                         i % 2 ? "ill" : "well");
    write_file("a.csv", text);
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y', 'group': 'g'}");
    char words[120];
    snprintf(words, sizeof words,
             "data.validation takes %lld of 60 rows, not the 12 of its share, since data.group",
             (long long)dataset.rows[SPLIT_VALIDATION]);
    assert_true(dataset.rows[SPLIT_VALIDATION] < 6);
    assert_true(has_note(&dataset, words));
    dataset_release(&dataset);
    dataset = load_files("{'path': 'a.csv', 'target': 'y', 'group': 'a'}");
    assert_false(has_note(&dataset, "of its share"));
    dataset_release(&dataset);
    dataset = load_files("{'path': 'a.csv', 'target': 'y', 'time': 'a'}");
    assert_false(has_note(&dataset, "of its share"));
    dataset_release(&dataset);
    forget("a.csv");
}

/* Row i is of day i / 2, written down from the newest to the oldest. */
static void check_times(const char *format, bool dates)
{
    char text[2000];
    int size = snprintf(text, sizeof text, "a,when,y\n");
    for (int i = 39; i >= 0; i--) {
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,", i);
        size += dates ? snprintf(text + size, sizeof text - (size_t)size, format, 1 + i / 20, 1 + i / 2 % 10)
                      : snprintf(text + size, sizeof text - (size_t)size, format, i / 2 - 5);
        size += snprintf(text + size, sizeof text - (size_t)size, ",%d\n", i % 2);
    }
    write_file("a.csv", text);
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y', 'time': 'when'}");
    assert_int_equal(dataset.features, 1);
    const int64_t rows[] = {24, 8, 8};
    for (int split = 0; split < SPLIT_COUNT; split++) {
        assert_int_equal(dataset.rows[split], rows[split]);
        for (int64_t i = 0; i < rows[split]; i++) {
            long long row = llround(value_at(&dataset, split, i, "a"));
            assert_int_equal(row < 24 ? SPLIT_TRAIN : row < 32 ? SPLIT_VALIDATION : SPLIT_TEST, split);
        }
    }
    dataset_release(&dataset);
}

static void times_of_a_column(void **state)
{
    (void)state;
    check_times("%d", false);
    check_times("%d.5", false);
    check_times("2024-%02d-%02d", true);
    check_times("2024/%02d/%02d 12:30:00", true);
    check_times("2024-%02d-%02dT12:30:00Z", true);
    const char *settings = "{'path': 'a.csv', 'target': 'y', 'time': 'when'}";
    write_file("a.csv", "a,when,y\n1,2024-01-01,0\n2,2024-1-2,1\n3,2024-01-03,0\n4,2024-01-04,1\n");
    files_refused(settings, "a.csv:3:2: found '2024-1-2'", "\"when\"", "2024-01-31");
    write_file("a.csv", "a,when,y\n1,2024-01-01,0\n2,2024/01/02,1\n3,2024-01-03,0\n4,2024-01-04,1\n");
    files_refused(settings, "a.csv:3:2: found '2024/01/02'", "the same way in all rows");
    write_file("a.csv", "a,when,y\n1,31/12/2023,0\n2,01/01/2024,1\n3,02/01/2024,0\n4,03/01/2024,1\n");
    files_refused(settings, "a.csv:2:2: found '31/12/2023'");
    write_file("a.csv", "a,when,y\n1,1,0\n2,,1\n3,3,0\n4,4,1\n");
    files_refused(settings, "a.csv:3:2: found nothing");
    write_file("a.csv", "a,when,y\n1,1,0\n2,2,0\n3,3,0\n4,4,0\n5,5,1\n6,6,1\n");
    files_refused(settings, "no row of class '1' is old enough");
    forget("a.csv");
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
        cmocka_unit_test(groups_stay_whole_and_shares_hold),
        cmocka_unit_test(groups_of_regression_and_large_ones),
        cmocka_unit_test(the_newest_rows_test),
        cmocka_unit_test(groups_of_a_column),
        cmocka_unit_test(parts_far_from_their_shares),
        cmocka_unit_test(times_of_a_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
