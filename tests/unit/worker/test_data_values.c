/* What columns and cells mean: numbers, texts, missing values, targets, and the refusals that name them. */
#include "tests/unit/worker/data_fixture.h"
#include "worker/training/data_cell.h"

#include <math.h>

static void check_cell(const char *text, enum cell_kind kind, double value)
{
    static struct cell_marker marker = {.text = "-999", .is_number = true, .number = -999};
    static const struct cell_rules rules = {.decimal_comma = true, .markers = &marker, .marker_count = 1};
    double number = 0;
    const char *from = text;
    size_t size = strlen(text);
    cell_trim(&from, &size);
    enum cell_kind found = cell_read(from, size, &rules, &number);
    if (found != kind || (kind == CELL_NUMBER && number != value))
        fail_msg("'%s': kind %d value %.17g, expected kind %d value %.17g", text, found, number, kind, value);
}

static void cells(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double value;
    } numbers[] = {{"0", 0},
                   {"7", 7},
                   {"-7", -7},
                   {"+1", 1},
                   {"1.", 1},
                   {".5", .5},
                   {"-.5", -.5},
                   {"1e5", 1e5},
                   {"1E-3", 1e-3},
                   {"0.1", 0.1},
                   {"00.5", .5},
                   {"7,4", 7.4},
                   {" 3\t", 3},
                   {"\xc2\xa0"
                    "4\xc2\xa0",
                    4},
                   {"\xe2\x88\x92"
                    "2.5",
                    -2.5},
                   {"123456789012345", 123456789012345.0},
                   {"9007199254740993", 9007199254740992.0},
                   {"0.30000000000000004", 0.30000000000000004},
                   {"1.7976931348623157e308", 1.7976931348623157e308},
                   {"4.9406564584124654e-324", 4.9406564584124654e-324}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check_cell(numbers[i].text, CELL_NUMBER, numbers[i].value);
    const char *const texts[] = {"x",   "1x", "0x10", "inf", "-inf",  "1e999", "1 2",
                                 "--1", "+",  ".",    "e5",  "1,2,3", "$5",    "5%"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_cell(texts[i], CELL_TEXT, 0);
    const char *const missing[] = {"", "?", "NA", "N/A", "n/a", "nan", "NaN", "null", " ", "-999", "-999.0"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        check_cell(missing[i], CELL_MISSING, 0);
    check_cell("-", CELL_DOUBTFUL, 0);
    check_cell("None", CELL_DOUBTFUL, 0);
    check_cell("00501", CELL_CODE, 0);
}

/* `rows` rows with cell(i) in the column under test, a second column of numbers, and two classes. */
static char *rows_of(int rows, const char *(*cell)(int))
{
    static char text[20000];
    int size = snprintf(text, sizeof text, "c,n,label\n");
    for (int i = 0; i < rows; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%s,%d,%s\n", cell(i), i,
                         i % 2 ? "odd" : "even");
    return text;
}

static const char *one_text(int i)
{
    return i == 57 ? "oops" : "3.5";
}

static const char *colours(int i)
{
    static const char *const name[] = {"red", "green", "blue", "?"};
    return name[i % 4];
}

static const char *codes(int i)
{
    static const char *const name[] = {"00501", "10001"};
    return name[i % 2];
}

static const char *many(int i)
{
    static char name[20];
    snprintf(name, sizeof name, "name %d", i);
    return name;
}

static const char *constant(int i)
{
    (void)i;
    return "0.1";
}

static const char *gap(int i)
{
    return i == 5 || i == 8 ? "NA" : i % 3 ? "1" : "2";
}

static void a_text_among_numbers_is_named(void **state)
{
    (void)state;
    refused(rows_of(100, one_text), "\"label\"", "", "1 cell cannot be used",
            ":59:1: found 'oops', expected a number (column \"c\")");
}

/* The training rows' mean stands for a missing number, and a feature says so. */
static void missing_numbers_are_filled_in(void **state)
{
    (void)state;
    struct dataset dataset = load_text(rows_of(100, gap), "\"label\"", "");
    assert_int_equal(dataset.features, 3);
    assert_string_equal(feature_name(&dataset, 1), "c missing");
    int missing = 0;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++) {
            const float *x = dataset.x[split] + i * 3;
            int row = (int)lround(original(&dataset, (enum split)split, i, 2));
            bool expected = row == 5 || row == 8;
            assert_true(x[1] == (expected ? 1 : 0) && (x[0] == 0) == expected);
            missing += expected;
        }
    assert_int_equal(missing, 2);
    assert_true(has_note(&dataset, "filled in 1 column with numbers missing in training"));
    dataset_release(&dataset);
}

static void texts_become_categories(void **state)
{
    (void)state;
    struct dataset dataset = load_text(rows_of(100, colours), "\"label\"", "");
    assert_int_equal(dataset.features, 5); /* ?, blue, green, red; n */
    const char *const category[] = {"?", "blue", "green", "red"};
    const json_t *features = json_object_get(dataset.preprocessing, "features");
    for (size_t f = 0; f < 4; f++)
        assert_string_equal(json_get_string(json_array_get(features, f), "category", ""), category[f]);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++) {
            int row = (int)lround(original(&dataset, (enum split)split, i, 4));
            for (int f = 0; f < 4; f++)
                assert_true(dataset.x[split][i * 5 + f] == (float)!strcmp(category[f], colours(row)));
        }
    dataset_release(&dataset);
}

static void codes_are_texts(void **state)
{
    (void)state;
    struct dataset dataset = load_text(rows_of(40, codes), "\"label\"", "");
    assert_int_equal(dataset.features, 3);
    dataset_release(&dataset);
}

static void an_unseen_category_is_all_zeros(void **state)
{
    (void)state;
    /* One row in 100 is the only "rare" one; whichever split it is in, the features are those of training. */
    char text[4000];
    bool met = false;
    for (int rare = 0; rare < 100 && !met; rare++) {
        int size = snprintf(text, sizeof text, "c,n,label\n");
        for (int i = 0; i < 100; i++)
            size += snprintf(text + size, sizeof text - (size_t)size, "%s,%d,%s\n",
                             i == rare ? "rare"
                             : i % 3   ? "a"
                                       : "b",
                             i, i % 2 ? "odd" : "even");
        struct dataset dataset = load_text(text, "\"label\"", "");
        for (int64_t i = 0; i < dataset.rows[SPLIT_TEST]; i++) {
            const float *x = dataset.x[SPLIT_TEST] + i * dataset.features;
            if (dataset.features == 3 && lround(original(&dataset, SPLIT_TEST, i, 2)) == rare) {
                assert_true(x[0] == 0 && x[1] == 0);
                met = true;
            }
        }
        dataset_release(&dataset);
    }
    assert_true(met);
}

static void useless_columns_are_dropped_with_a_note(void **state)
{
    (void)state;
    struct dataset dataset = load_text(rows_of(100, many), "\"label\"", "");
    assert_int_equal(dataset.features, 1);
    assert_true(has_note(&dataset, "dropped 1 column of texts that are all different: c"));
    dataset_release(&dataset);
    dataset = load_text(rows_of(100, constant), "\"label\"", "");
    assert_int_equal(dataset.features, 1);
    assert_true(has_note(&dataset, "dropped 1 column constant in training: c"));
    dataset_release(&dataset);
    dataset = load_text(",e,n,label\n0,,1,x\n1,,2,y\n2,,3,x\n3,,4,y\n4,,5,x\n5,,6,y\n", "\"label\"", "");
    assert_int_equal(dataset.features, 1);
    assert_true(has_note(&dataset, "without values: e"));
    assert_true(has_note(&dataset, "only count the rows: column_0"));
    dataset_release(&dataset);
    refused("c,label\n1,x\n1,y\n1,x\n1,y\n1,x\n1,y\n", "\"label\"", "", "no column is left");
}

static bool all_finite(const float *x, int64_t count)
{
    for (int64_t i = 0; x && i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* One value far from all others, in any row: what it cannot be standardised to is refused, and named if the
 * training rows do not have it, never passed on as an infinity. */
static void check_far_value(const char *far, bool in_target, const char *message)
{
    int refusals = 0, loads = 0;
    for (int row = 0; row < 40; row++) {
        char text[2000], line[20];
        int size = snprintf(text, sizeof text, "a,y\n");
        for (int i = 0; i < 40; i++) {
            const char *value = i == row ? far : i % 3 ? "1.5" : "2.5";
            size += snprintf(text + size, sizeof text - (size_t)size,
                             in_target ? "%1$d,%2$s\n" : "%2$s,%1$d.5\n", i, value);
        }
        write_bytes(text, (size_t)size);
        snprintf(line, sizeof line, ":%d:%d: ", row + 2, in_target ? 2 : 1);
        struct dataset dataset;
        struct error err = {0};
        json_t *options = options_of("\"y\"", "");
        if (dataset_load(&dataset, options, NULL, FIXTURE_SEED, &err) == 0) {
            for (int split = 0; split < SPLIT_COUNT; split++) {
                assert_true(all_finite(dataset.x[split], dataset.rows[split] * dataset.features));
                assert_true(all_finite(dataset.y[split], dataset.rows[split]));
            }
            dataset_release(&dataset);
            loads++;
        } else {
            assert_int_equal(err.code, ERROR_USAGE);
            bool named = strstr(err.message, line) && strstr(err.message, message);
            if (!named && !strstr(err.message, "standardise"))
                fail_msg("row %d: %s", row, err.message);
            refusals += named;
        }
        json_decref(options);
        unlink(fixture_path);
    }
    assert_int_equal(refusals, 16); /* validation and test rows */
    assert_int_equal(loads, strstr(far, "e300") ? 0 : 24);
}

static void far_values_never_become_infinite(void **state)
{
    (void)state;
    check_far_value("1e60", false, "found 1e+60, too far from the training rows (column \"a\", centre ");
    check_far_value("-1e300", false, "found -1e+300, too far");
    check_far_value("1e60", true, "found 1e+60, too far from the training rows (column \"y\", centre ");
}

static void targets_are_found(void **state)
{
    (void)state;
    const char *text = "alpha,beta,label\n1,2,x\n2,3,y\n3,5,x\n4,4,y\n5,1,x\n";
    refused(text, "\"lable\"", "", "found 'lable'", "did you mean label?", "alpha, beta, label");
    refused(text, "3", "", "found 3", "index 0 to 2");
    refused(text, "-4", "", "found -4");
    refused(text, "null", "", "data.target: missing");
}

static void classes_are_sorted_by_value_or_text(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("a,y\n1,10\n2,9\n3,-1\n4,10\n5,9\n6,-1\n7,10\n8,9\n9,-1\n", "\"y\"", "");
    assert_int_equal(dataset.classes, 3);
    assert_string_equal(class_name(&dataset, 0), "-1");
    assert_string_equal(class_name(&dataset, 1), "9");
    assert_string_equal(class_name(&dataset, 2), "10");
    dataset_release(&dataset);
    dataset = load_text("a,y\n1,+\n2,-\n3,+\n4,-\n5,+\n6,-\n", "\"y\"", ""); /* "-" is a class here */
    assert_int_equal(dataset.classes, 2);
    assert_string_equal(class_name(&dataset, 1), "-");
    dataset_release(&dataset);
}

static void the_task_follows_the_target(void **state)
{
    (void)state;
    char text[2000];
    int size = snprintf(text, sizeof text, "a,y\n");
    for (int i = 0; i < 60; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%d\n", i * i, i % 30);
    struct dataset dataset = load_text(text, "\"y\"", "");
    assert_int_equal(dataset.task, TASK_REGRESSION); /* 30 different integers */
    dataset_release(&dataset);
    dataset = load_text(text, "\"y\"", "\"task\": \"classification\"");
    assert_int_equal(dataset.classes, 30);
    dataset_release(&dataset);
    dataset = load_text("a,y\n1,0\n2,1\n3,0\n4,1\n5,0\n", "\"y\"", "\"task\": \"regression\"");
    assert_int_equal(dataset.task, TASK_REGRESSION);
    dataset_release(&dataset);
    refused("a,y\n1,x\n2,z\n3,x\n4,z\n", "\"y\"", "\"task\": \"regression\"", "found 'x', expected a number");
}

static void bad_labels_are_named(void **state)
{
    (void)state;
    refused("a,y\n1,0.5\n2,nan\n3,1.5\n4,2.5\n5,3.5\n6,inf\n7,2.25\n8,7.5\n", "\"y\"", "",
            ":3:2: found 'nan', expected a label", ":7:2: found 'inf', expected a number");
    refused("a,y\n1,x\n2,\n3,z\n4,x\n", "\"y\"", "", ":3:2: found nothing, expected a label");
    refused("a,y\n1,x\n2,x\n3,x\n4,x\n", "\"y\"", "", "one class only ('x')");
    refused("a,y\n1,1.5\n2,1.5\n3,1.5\n4,1.5\n", "\"y\"", "", "the same value in every row");
    refused("a,y\n1,p\n2,q\n3,r\n4,s\n", "\"y\"", "", "4 classes in 4 rows");
}

static void options_are_checked(void **state)
{
    (void)state;
    const char *text = "a,y\n1,x\n2,z\n3,x\n4,z\n5,x\n6,z\n";
    refused(text, "\"y\"", "\"task\": \"clustering\"", "data.task: found \"clustering\"");
    refused(text, "\"y\"", "\"validation\": 0", "data.validation: found 0");
    refused(text, "\"y\"", "\"validation\": 0.5, \"test\": 0.5", "found 1, accepted less than 1");
    refused("a,y\n1,x\n2,z\n3,x\n4,z\n", "\"y\"", "\"validation\": 0.05", "too few rows", "4 give");
    refused(text, "\"y\"", "\"preprocess\": \"ranks\"", "data.preprocess: found 'ranks'");
    refused(text, "\"y\"", "\"missing\": [1.5, [2]]", "data.missing: found [2], accepted a text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells),
        cmocka_unit_test(a_text_among_numbers_is_named),
        cmocka_unit_test(missing_numbers_are_filled_in),
        cmocka_unit_test(texts_become_categories),
        cmocka_unit_test(codes_are_texts),
        cmocka_unit_test(an_unseen_category_is_all_zeros),
        cmocka_unit_test(useless_columns_are_dropped_with_a_note),
        cmocka_unit_test(far_values_never_become_infinite),
        cmocka_unit_test(targets_are_found),
        cmocka_unit_test(classes_are_sorted_by_value_or_text),
        cmocka_unit_test(the_task_follows_the_target),
        cmocka_unit_test(bad_labels_are_named),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
