/* Numbers scaled and texts numbered in whole tables, and once more from the saved JSON alone. */
#include "tests/unit/worker/scaling_fixture.h"

#include "base/random.h"

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
        snprintf(cells.many[i], sizeof cells.many[i], "m%u", kind);
        if (words.word[3] % 11 == 0)
            cells.many[i][0] = 0;
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
        cmocka_unit_test(the_saved_description_suffices),
        cmocka_unit_test(numbers_follow_frequency_in_training),
        cmocka_unit_test(statistics_come_from_training_alone),
        cmocka_unit_test(gaps_outside_training_only_are_filled_in),
        cmocka_unit_test(the_number_of_one_hot_texts_is_a_setting),
        cmocka_unit_test(embedded_columns_alone_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
