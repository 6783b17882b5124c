/* Scaling numbers and numbering texts: against values by hand and by the definitions written down again here,
 * and once more from the saved JSON alone. */
#include "tests/unit/worker/data_fixture.h"
#include "worker/training/data_preprocess.h"

#include "base/random.h"

#include <math.h>

static void check_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static struct scaling fit(enum preprocess preprocess, const double *given, int64_t count)
{
    double value[2000];
    struct scaling scaling;
    struct error err = {0};
    memcpy(value, given, (size_t)count * sizeof *value);
    if (scaling_fit(&scaling, preprocess, value, count, &err) < 0)
        fail_msg("%s", err.message);
    return scaling;
}

/* The percentage points that tables of the normal distribution print. */
static void normal_quantiles(void **state)
{
    (void)state;
    static const double known[][2] = {{0.5, 0},
                                      {0.6, 0.2533471031357997},
                                      {0.7, 0.5244005127080407},
                                      {0.8, 0.8416212335729143},
                                      {0.9, 1.2815515655446004},
                                      {0.975, 1.959963984540054},
                                      {0.999, 3.090232306167813},
                                      {1 - 1e-7, 5.199337582187471}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        check_near(normal_quantile(known[i][0]), known[i][1], 2e-9);
        check_near(normal_quantile(1 - known[i][0]), -known[i][1], 2e-9);
    }
    check_near(normal_quantile(1e-7), -5.199337582192817, 1e-10);
}

static void standard_by_hand(void **state)
{
    (void)state;
    struct scaling scaling = fit(PREPROCESS_STANDARD, (double[]){2, 4, 4, 4, 5, 5, 7, 9}, 8);
    check_near(scaling.centre, 5, 0);
    check_near(scaling.scale, 2, 1e-15);
    check_near(scaling_apply(&scaling, 8), 1.5, 1e-15);
    check_near(scaling_apply(&scaling, NAN), 0, 0);
}

static void robust_by_hand(void **state)
{
    (void)state;
    /* Sorted 1 2 4 8 100: quartiles 2 and 8. The far value moves neither. */
    struct scaling scaling = fit(PREPROCESS_ROBUST, (double[]){8, 1, 100, 2, 4}, 5);
    check_near(scaling.centre, 4, 0);
    check_near(scaling.scale, 6, 0);
    check_near(scaling_apply(&scaling, 100), 16, 1e-15);
    check_near(scaling_apply(&scaling, NAN), 0, 0);
    /* Four values: places 0.75, 1.5 and 2.25 between them. */
    scaling = fit(PREPROCESS_ROBUST, (double[]){40, 10, 30, 20}, 4);
    check_near(scaling.centre, 25, 1e-15);
    check_near(scaling.scale, 32.5 - 17.5, 1e-15);
    /* Most values equal: the quartiles are one, so the standard deviation: mean 2, squares 8 * 4 + 64. */
    scaling = fit(PREPROCESS_ROBUST, (double[]){0, 0, 0, 0, 0, 0, 0, 10, 0, 10}, 10);
    check_near(scaling.centre, 0, 0);
    check_near(scaling.scale, 4, 1e-15);
}

static void quantile_by_hand(void **state)
{
    (void)state;
    struct scaling scaling = fit(PREPROCESS_QUANTILE, (double[]){10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5}, 11);
    static const double score[] = {-5.199337582192817,  -1.2815515655446004, -0.8416212335729143,
                                   -0.5244005127080407, -0.2533471031357997, 0};
    for (int i = 0; i <= 5; i++) {
        check_near(scaling_apply(&scaling, i), score[i], 1e-9);
        check_near(scaling_apply(&scaling, 10 - i), -score[i], 1e-8);
    }
    check_near(scaling_apply(&scaling, 5.5), 0.12566134685507402, 1e-9); /* the share 0.55 */
    check_near(scaling_apply(&scaling, -100), score[0], 1e-9);
    check_near(scaling_apply(&scaling, 1e300), -score[0], 1e-8);
    check_near(scaling_apply(&scaling, NAN), 0, 1e-10); /* of the median */
    scaling_release(&scaling);
    /* Ties: 1 has the shares 0.25, 0.5 and 0.75 of 0 1 1 1 2; their middle is 0.5. */
    scaling = fit(PREPROCESS_QUANTILE, (double[]){1, 0, 1, 2, 1}, 5);
    check_near(scaling_apply(&scaling, 1), 0, 1e-10);
    check_near(scaling_apply(&scaling, 0.5), -1.1503493803760079, 1e-9); /* the share 0.125 */
    scaling_release(&scaling);
    /* Shares of the lowest value among many equal ones: it is the lower end, as everything below. */
    scaling = fit(PREPROCESS_QUANTILE, (double[]){0, 0, 0, 1}, 4);
    check_near(scaling_apply(&scaling, 0), score[0], 1e-9);
    scaling_release(&scaling);
}

/* The definitions once more, the slow way. */
static double linear_percentile(const double *sorted, int64_t count, double share)
{
    double place = share * (double)(count - 1), below = floor(place);
    double low = sorted[(int64_t)below], high = sorted[(int64_t)ceil(place)];
    return low + (high - low) * (place - below);
}

static double bisected_score(double p)
{
    double low = -6, high = 6;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(0.5 * erfc(-middle / sqrt(2)) < p ? &low : &high) = middle;
    }
    return low;
}

/* Interpolated from the left (the last of equal quantiles counts) and, mirrored, from the right; the mean of
 * both. */
static double slow_share(const double *quantile, int count, double x)
{
    double from_left = 0, from_right = 0;
    if (x <= quantile[0])
        return 0;
    if (x >= quantile[count - 1])
        return 1;
    for (int k = 0; k + 1 < count; k++)
        if (quantile[k] <= x && x < quantile[k + 1])
            from_left = k + (x - quantile[k]) / (quantile[k + 1] - quantile[k]);
    for (int k = count - 1; k > 0; k--)
        if (quantile[k - 1] < x && x <= quantile[k])
            from_right = k - (quantile[k] - x) / (quantile[k] - quantile[k - 1]);
    return (from_left + from_right) / 2 / (count - 1);
}

static double slow_score(const double *quantile, int count, double x)
{
    return bisected_score(fmin(fmax(slow_share(quantile, count, x), 1e-7), 1 - 1e-7));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantile_of_many_rows(void **state)
{
    (void)state;
    const uint64_t seed = 20;
    enum { COUNT = 1777 };
    static double value[COUNT], sorted[COUNT], quantile[QUANTILES_MAXIMUM];
    for (uint32_t i = 0; i < COUNT; i++) { /* half of them tied */
        struct philox words = philox4x32(seed, i, 0, 0, 0);
        double x = (double)words.word[0] / 4294967296.0;
        value[i] = words.word[1] % 2 ? floor(x * 20) : exp(6 * x);
    }
    memcpy(sorted, value, sizeof sorted);
    qsort(sorted, COUNT, sizeof *sorted, compare);
    for (int k = 0; k < QUANTILES_MAXIMUM; k++)
        quantile[k] = linear_percentile(sorted, COUNT, k / 999.0);
    struct scaling scaling = fit(PREPROCESS_QUANTILE, value, COUNT);
    assert_int_equal(scaling.quantiles, QUANTILES_MAXIMUM);
    for (int k = 0; k < QUANTILES_MAXIMUM; k++)
        check_near(scaling.quantile[k], quantile[k], 1e-13);
    for (int i = 0; i < COUNT; i += 7) {
        /* Rounding may part or join a tie that both sides compute; the score then differs by a step. */
        double x = scaling.quantile[i % QUANTILES_MAXIMUM] * (i % 3 ? 1 : 1.001);
        check_near(scaling_apply(&scaling, x), slow_score(scaling.quantile, QUANTILES_MAXIMUM, x), 1e-7);
    }
    scaling_release(&scaling);
}

static void what_no_scale_can_hold_is_refused(void **state)
{
    (void)state;
    static const enum preprocess kinds[] = {PREPROCESS_STANDARD, PREPROCESS_ROBUST, PREPROCESS_QUANTILE};
    for (int i = 0; i < 3; i++) {
        struct scaling scaling;
        struct error err = {0};
        double far[] = {-1.7e308, 1.7e308, 1, -1.7e308, 1.7e308};
        assert_int_equal(scaling_fit(&scaling, kinds[i], far, 5, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
        assert_non_null(strstr(err.message, "spans -1.7e+308 to 1.7e+308"));
    }
}

/* A table with all kinds of columns: n, numbers with gaps and ties, few texts with gaps, many texts with
 * gaps. */
#define ROWS 1800

struct cells {
    double number[ROWS]; /* NaN: missing */
    char few[ROWS][8], many[ROWS][12];
};

static struct cells cells;

static void draw_cells(uint64_t seed)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        struct philox words = philox4x32(seed, i, 1, 0, 0);
        cells.number[i] = words.word[0] % 10 == 0  ? NAN
                          : words.word[0] % 3 == 0 ? (double)(words.word[1] % 5)
                                                   : (double)words.word[1] / 1e7 - 150;
        snprintf(cells.few[i], sizeof cells.few[i], "%.*s", words.word[2] % 9 ? 1 : 0,
                 &"pqrstuvw"[words.word[2] % 8]);
        /* Some often, most once or never again. */
        uint32_t kind = words.word[3] % (words.word[3] % 7 ? 40 : 4000);
        snprintf(cells.many[i], sizeof cells.many[i], words.word[3] % 11 ? "m%u" : "", kind);
    }
}

static struct dataset load_cells(const char *preprocess)
{
    static char text[ROWS * 60];
    char more[100];
    int size = snprintf(text, sizeof text, "n,c,few,many,y\n");
    for (int i = 0; i < ROWS; i++) {
        char number[40] = "";
        if (!isnan(cells.number[i]))
            snprintf(number, sizeof number, "%.17g", cells.number[i]);
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s,%s,%s\n", i, number, cells.few[i],
                         cells.many[i], i % 2 ? "odd" : "even");
    }
    write_bytes(text, (size_t)size);
    snprintf(more, sizeof more, "\"preprocess\": \"%s\"", preprocess);
    return load_options("\"y\"", more);
}

/* What a saved description makes of one number. */
static double apply_number(const json_t *feature, const char *preprocess, double x)
{
    x = isnan(x) ? json_get_number(feature, "fill", NAN) : x;
    if (!strcmp(preprocess, "standard"))
        return (x - json_get_number(feature, "mean", NAN)) / json_get_number(feature, "sd", NAN);
    if (!strcmp(preprocess, "robust"))
        return (x - json_get_number(feature, "median", NAN)) / json_get_number(feature, "scale", NAN);
    if (!strcmp(preprocess, "none"))
        return x;
    double quantile[QUANTILES_MAXIMUM];
    const json_t *array = json_object_get(feature, "quantiles");
    int count = (int)json_array_size(array);
    for (int k = 0; k < count; k++)
        assert_true(json_number_get(json_array_get(array, (size_t)k), &quantile[k]));
    return slow_score(quantile, count, x);
}

static double apply_feature(const json_t *feature, const char *preprocess, int n)
{
    const char *name = json_get_string(feature, "name", "");
    if (json_object_get(feature, "missing_of")) {
        assert_string_equal(json_get_string(feature, "missing_of", ""), "c");
        return isnan(cells.number[n]);
    }
    if (json_object_get(feature, "category")) {
        assert_string_equal(name, "few");
        if (json_get_boolean(feature, "missing", false))
            return !*cells.few[n];
        return !strcmp(cells.few[n], json_get_string(feature, "category", "?"));
    }
    return apply_number(feature, preprocess, !strcmp(name, "n") ? n : cells.number[n]);
}

static int apply_category(const json_t *category, const char *text)
{
    const json_t *texts = json_object_get(category, "texts");
    for (size_t k = 0; k < json_array_size(texts); k++)
        if (!strcmp(json_string_value(json_array_get(texts, k)), text))
            return (int)k + 1;
    return 0;
}

/* The row numbers of a split, from the column n as the saved description inverts it. */
static int row_number(const struct dataset *dataset, const json_t *saved, enum split split, int64_t i)
{
    const json_t *feature = json_array_get(json_object_get(saved, "features"), 0);
    const char *preprocess = json_get_string(saved, "preprocess", "");
    double x = dataset->x[split][i * dataset->features];
    if (!strcmp(preprocess, "standard"))
        return (int)lround(x * json_get_number(feature, "sd", 0) + json_get_number(feature, "mean", 0));
    if (!strcmp(preprocess, "robust"))
        return (int)lround(x * json_get_number(feature, "scale", 0) + json_get_number(feature, "median", 0));
    return (int)lround(x);
}

static void the_saved_description_suffices(void **state)
{
    (void)state;
    draw_cells(3);
    for (int p = 0; preprocess_names[p]; p++) {
        struct dataset dataset = load_cells(preprocess_names[p]);
        char *text = json_canonical(dataset.preprocessing);
        json_t *saved = json_parse(text, strlen(text), NULL);
        free(text);
        assert_string_equal(json_get_string(saved, "preprocess", ""), preprocess_names[p]);
        const json_t *features = json_object_get(saved, "features");
        assert_int_equal(json_array_size(features), dataset.features);
        assert_int_equal(dataset.features, 3 + 9);
        assert_int_equal(dataset.categories, 1);
        const json_t *category = json_array_get(json_object_get(saved, "categories"), 0);
        assert_string_equal(json_get_string(category, "name", ""), "many");
        assert_int_equal(json_array_size(json_object_get(category, "texts")) + 1, dataset.cardinality[0]);
        /* Normal scores at the ends of n cannot be inverted: rows are told apart by order instead. */
        int last = -1;
        for (int64_t i = 0; i < dataset.rows[SPLIT_TEST]; i++) {
            int n = row_number(&dataset, saved, SPLIT_TEST, i);
            if (!strcmp(preprocess_names[p], "quantile")) {
                for (n = last + 1; n < ROWS; n++) {
                    double score = apply_feature(json_array_get(features, 0), "quantile", n);
                    if (fabs(score - dataset.x[SPLIT_TEST][i * dataset.features]) < 1e-5)
                        break;
                }
            }
            last = n;
            for (int64_t f = 0; f < dataset.features; f++)
                check_near(dataset.x[SPLIT_TEST][i * dataset.features + f],
                           apply_feature(json_array_get(features, (size_t)f), preprocess_names[p], n), 1e-5);
            assert_int_equal(dataset.category[SPLIT_TEST][i], apply_category(category, cells.many[n]));
        }
        json_decref(saved);
        dataset_release(&dataset);
    }
}

static void numbers_follow_frequency_in_training(void **state)
{
    (void)state;
    draw_cells(4);
    struct dataset dataset = load_cells("none");
    int rows_of[4000] = {0}, unseen = 0;
    for (int64_t i = 0; i < dataset.rows[SPLIT_TRAIN]; i++) {
        int n = row_number(&dataset, dataset.preprocessing, SPLIT_TRAIN, i);
        if (*cells.many[n])
            rows_of[atoi(cells.many[n] + 1)]++;
    }
    const json_t *category = json_array_get(json_object_get(dataset.preprocessing, "categories"), 0);
    const json_t *texts = json_object_get(category, "texts");
    int last = ROWS;
    const char *last_text = "";
    for (size_t k = 0; k < json_array_size(texts); k++) {
        const char *text = json_string_value(json_array_get(texts, k));
        int rows = rows_of[atoi(text + 1)];
        assert_true(rows >= 2 && (rows < last || (rows == last && strcmp(last_text, text) < 0)));
        rows_of[atoi(text + 1)] = -rows;
        last = rows;
        last_text = text;
    }
    for (int kind = 0; kind < 4000; kind++)
        assert_true(rows_of[kind] <= 1); /* only those of one row, or none, have no number of their own */
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++) {
            int n = row_number(&dataset, dataset.preprocessing, (enum split)split, i);
            int32_t number = dataset.category[split][i];
            assert_true(number >= 0 && number < dataset.cardinality[0]);
            bool known = *cells.many[n] && rows_of[atoi(cells.many[n] + 1)] < 0;
            assert_true((number > 0) == known);
            unseen += !known;
        }
    assert_true(unseen > 0 && has_note(&dataset, "embedded 1 column of more than 32 different texts"));
    assert_true(has_note(&dataset, "with texts that no training row has"));
    dataset_release(&dataset);
}

/* Whatever stands in rows that do not train, the description is the same. */
static void statistics_come_from_training_alone(void **state)
{
    (void)state;
    draw_cells(5);
    struct dataset rows = load_cells("none");
    for (int p = 0; preprocess_names[p]; p++) {
        draw_cells(5);
        struct dataset before = load_cells(preprocess_names[p]);
        for (int split = SPLIT_VALIDATION; split < SPLIT_COUNT; split++)
            for (int64_t i = 0; i < rows.rows[split]; i++) {
                int n = row_number(&rows, rows.preprocessing, (enum split)split, i);
                cells.number[n] = n % 2 ? 77777 : NAN;
                strcpy(cells.few[n], "new");
                strcpy(cells.many[n], "new");
            }
        struct dataset after = load_cells(preprocess_names[p]);
        assert_true(json_equal(before.preprocessing, after.preprocessing));
        assert_memory_equal(before.x[SPLIT_TRAIN], after.x[SPLIT_TRAIN],
                            (size_t)(before.rows[SPLIT_TRAIN] * before.features) * sizeof(float));
        dataset_release(&before);
        dataset_release(&after);
    }
    dataset_release(&rows);
}

static void gaps_outside_training_only_are_filled_in(void **state)
{
    (void)state;
    draw_cells(6);
    for (int n = 0; n < ROWS; n++)
        cells.number[n] = n % 10;
    struct dataset rows = load_cells("none");
    int gap = row_number(&rows, rows.preprocessing, SPLIT_TEST, 0);
    int64_t features = rows.features;
    dataset_release(&rows);
    cells.number[gap] = NAN;
    struct dataset dataset = load_cells("standard");
    assert_int_equal(dataset.features, features); /* no feature more */
    assert_true(dataset.x[SPLIT_TEST][1] == 0);
    assert_true(has_note(&dataset, "filled in 1 column with numbers missing, though not in training: c (1)"));
    dataset_release(&dataset);
}

static void the_number_of_one_hot_texts_is_a_setting(void **state)
{
    (void)state;
    draw_cells(7);
    static char text[ROWS * 20];
    int size = snprintf(text, sizeof text, "n,few,y\n");
    for (int i = 0; i < ROWS; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s\n", i, cells.few[i],
                         i % 2 ? "a" : "b");
    for (int most = 8; most <= 9; most++) { /* 8 texts, and the missing one */
        char more[60];
        snprintf(more, sizeof more, "\"max_categories\": %d", most);
        write_bytes(text, (size_t)size);
        struct dataset dataset = load_options("\"y\"", more);
        assert_int_equal(dataset.features, most == 8 ? 1 : 10);
        assert_int_equal(dataset.categories, most == 8 ? 1 : 0);
        if (most == 8)
            assert_int_equal(dataset.cardinality[0], 9);
        dataset_release(&dataset);
    }
}

/* There need be no numbers at all. */
static void embedded_columns_alone_are_enough(void **state)
{
    (void)state;
    static char text[8000];
    int size = snprintf(text, sizeof text, "word,y\n");
    for (int i = 0; i < 400; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "w%d,%s\n", i % 50, i % 2 ? "a" : "b");
    write_bytes(text, (size_t)size);
    struct dataset dataset = load_options("\"y\"", "");
    assert_int_equal(dataset.features, 0);
    assert_int_equal(dataset.categories, 1);
    assert_int_equal(dataset.cardinality[0], 51);
    dataset_release(&dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_quantiles),
        cmocka_unit_test(standard_by_hand),
        cmocka_unit_test(robust_by_hand),
        cmocka_unit_test(quantile_by_hand),
        cmocka_unit_test(quantile_of_many_rows),
        cmocka_unit_test(what_no_scale_can_hold_is_refused),
        cmocka_unit_test(the_saved_description_suffices),
        cmocka_unit_test(numbers_follow_frequency_in_training),
        cmocka_unit_test(statistics_come_from_training_alone),
        cmocka_unit_test(gaps_outside_training_only_are_filled_in),
        cmocka_unit_test(embedded_columns_alone_are_enough),
        cmocka_unit_test(the_number_of_one_hot_texts_is_a_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
