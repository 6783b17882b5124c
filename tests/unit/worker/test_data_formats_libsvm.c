/* LIBSVM: indices from 0 or 1, comments, queries as groups, sparse rows made dense within a bound. */
#include "tests/unit/worker/data_files_fixture.h"

/* Row i has feature_1 = i, feature_3 = -i unless that is 0; feature_2 is never written. */
static void write_rows(const char *name, int rows, int base, bool query)
{
    char text[4000];
    int size = snprintf(text, sizeof text, "# made by hand\n\n");
    for (int i = 0; i < rows; i++) {
        size += snprintf(text + size, sizeof text - (size_t)size, "%+d", i % 2 ? 1 : -1);
        if (query)
            size += snprintf(text + size, sizeof text - (size_t)size, " qid:%d", i / 4);
        size += snprintf(text + size, sizeof text - (size_t)size, " %d:1", base);
        if (i)
            size += snprintf(text + size, sizeof text - (size_t)size, "\t%d:%d %d:%d.0", base + 1, i,
                             base + 3, -i);
        size += snprintf(text + size, sizeof text - (size_t)size, " # row %d\r\n", i);
    }
    write_file(name, text);
}

static void check_rows(const struct dataset *dataset, const char *a, const char *b, int rows)
{
    assert_int_equal(all_rows(dataset), rows);
    assert_int_equal(dataset->classes, 2);
    assert_string_equal(class_name(dataset, 0), "-1");
    assert_string_equal(class_name(dataset, 1), "1");
    assert_int_equal(dataset->features, 2); /* the constant ones are dropped */
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset->rows[split]; i++) {
            double value = value_at(dataset, split, i, a);
            assert_true(fabs(value - (double)llround(value)) < 1e-5);
            assert_true(fabs(value + value_at(dataset, split, i, b)) < 1e-5);
            assert_int_equal(dataset->label[split][i], llround(value) % 2);
        }
}

static void indices_from_one_and_from_zero(void **state)
{
    (void)state;
    write_rows("a.txt", 20, 1, false);
    struct dataset dataset = load_files("{'path': 'a.txt'}");
    check_rows(&dataset, "feature_2", "feature_4", 20);
    assert_true(has_note(&dataset, "feature_1, feature_3")); /* constant: 1 and 0 everywhere */
    dataset_release(&dataset);
    write_rows("a.txt", 20, 0, false);
    dataset = load_files("{'path': 'a.txt', 'format': 'libsvm'}");
    check_rows(&dataset, "feature_1", "feature_3", 20);
    assert_true(has_note(&dataset, "feature_0, feature_2"));
    dataset_release(&dataset);
    forget("a.txt");
}

/* Queries of four rows: each in one part, and no feature. */
static void queries_are_groups(void **state)
{
    (void)state;
    write_rows("a.txt", 40, 1, true);
    struct dataset dataset = load_files("{'path': 'a.txt'}");
    check_rows(&dataset, "feature_2", "feature_4", 40);
    assert_true(has_note(&dataset, "\"qid\" is the group"));
    int part_of[10] = {0};
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++)
            part_of[llround(value_at(&dataset, split, i, "feature_2")) / 4] |= 1 << split;
    for (int group = 0; group < 10; group++)
        assert_true(part_of[group] == 1 || part_of[group] == 2 || part_of[group] == 4);
    dataset_release(&dataset);
    forget("a.txt");
}

/* Columns go by index: the test rows may lack the last ones, and have some more. */
static void test_rows_of_other_indices(void **state)
{
    (void)state;
    write_rows("a.txt", 20, 1, false);
    write_file("b.txt", "1 1:1 2:7\n-1 9:5\n");
    struct dataset dataset = load_files("{'path': 'a.txt', 'test_path': 'b.txt'}");
    assert_int_equal(dataset.rows[SPLIT_TEST], 2);
    assert_true(fabs(value_at(&dataset, SPLIT_TEST, 0, "feature_2") - 7) < 1e-5);
    assert_true(fabs(value_at(&dataset, SPLIT_TEST, 0, "feature_4")) < 1e-5);
    assert_true(fabs(value_at(&dataset, SPLIT_TEST, 1, "feature_2")) < 1e-5);
    assert_int_equal(dataset.label[SPLIT_TEST][0], 1);
    assert_int_equal(dataset.label[SPLIT_TEST][1], 0);
    assert_true(has_note(&dataset, "ignored 5 columns"));
    dataset_release(&dataset);
    forget("a.txt", "b.txt");
}

static void regression_and_missing_values(void **state)
{
    (void)state;
    write_file("a.txt", "0.5 1:1 2:2\n1.25 1:2 2:nan\n-3.5 1:3 2:1\n2 1:4 2:9\n7.5 1:5 2:4\n8.25 1:6 2:3\n");
    struct dataset dataset = load_files("{'path': 'a.txt', 'test': 0, 'validation': 0.3}");
    assert_int_equal(dataset.task, TASK_REGRESSION);
    assert_int_equal(all_rows(&dataset), 6);
    dataset_release(&dataset);
    forget("a.txt");
}

static void faults_are_placed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *words;
    } refused[] = {
        {"1 1:2\nx 1:3\n", ":2: found 'x'", "number as the label"},
        {"1 1:2\n1,2 1:3\n", ":2: found '1,2'", "several labels"},
        {"1 1:2\n0 1:3 1:4\n", ":2: found '1:4'", "ascending"},
        {"1 1:2\n0 2:3 1:4\n", ":2: found '1:4'", "ascending"},
        {"1 1:2\n\n# x\n0 1:y\n", ":4: found '1:y'", "INDEX:VALUE"},
        {"1 1:2\n0 1:1e\n", ":2: found '1:1e'", "INDEX:VALUE with a number"},
        {"1 1:2\n0 7\n", ":2: found '7'", "INDEX:VALUE"},
        {"1 qid:a 1:2\n", ":1: found 'qid:a'", "qid:NUMBER"},
        {"1 1:2\n0 1000001:2\n", ":2: found '1000001:2'", "fewer features"},
        {"1 1:2\n0 99999999999999999999:2\n", ":2: found", "fewer features"},
        {"1\n0\n", "INDEX:VALUE", "nothing to learn"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        write_file("a.txt", refused[i].text);
        files_refused("{'path': 'a.txt', 'format': 'libsvm'}", refused[i].place, refused[i].words);
    }
    forget("a.txt");
}

/* 2 million rows of a million features would be 22 TiB; the file has a few MiB. */
static void a_dense_table_beyond_memory_is_refused(void **state)
{
    (void)state;
    size_t rows = 2000000, size = 0;
    char *text = malloc(rows * 4 + 100);
    assert_non_null(text);
    size += (size_t)sprintf(text, "1 1000000:1\n");
    for (size_t i = 1; i < rows; i++) {
        memcpy(text + size, "0\n", 2);
        size += 2;
    }
    write_file_bytes("a.txt", text, size);
    free(text);
    files_refused("{'path': 'a.txt'}", "2000000 rows of 1000000 features", "half of this machine's memory",
                  "GiB", "keep fewer");
    forget("a.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_from_one_and_from_zero),
        cmocka_unit_test(queries_are_groups),
        cmocka_unit_test(test_rows_of_other_indices),
        cmocka_unit_test(regression_and_missing_values),
        cmocka_unit_test(faults_are_placed),
        cmocka_unit_test(a_dense_table_beyond_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
