/* Labels of the test rows in a file of their own: arrays as MNIST's four files, and tables with the target
 * anywhere. */
#include "tests/unit/worker/data_files_fixture.h"

#define FOUR "{'path': 'x', 'labels': 'l', 'test_path': 'xt', 'test_labels': 'lt'}"
#define FORGET forget("x", "l", "xt", "lt")

/* IDX of 8-bit integers: rows of two, where the second is the first one's square, and their labels. */
static void write_idx(const char *images, const char *labels, int from, int rows)
{
    unsigned char table[200] = {0, 0, 8, 2, 0, 0, 0, (unsigned char)rows, 0, 0, 0, 2};
    unsigned char classes[100] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)rows};
    for (int i = 0; i < rows; i++) {
        table[12 + 2 * i] = (unsigned char)(from + i);
        table[13 + 2 * i] = (unsigned char)((from + i) * (from + i));
        classes[8 + i] = (unsigned char)((from + i) % 2);
    }
    write_file_bytes(images, table, (size_t)(12 + 2 * rows));
    write_file_bytes(labels, classes, (size_t)(8 + rows));
}

static void four_arrays(void **state)
{
    (void)state;
    write_idx("x", "l", 0, 10);
    write_idx("xt", "lt", 10, 5);
    struct dataset dataset = load_files(FOUR);
    assert_int_equal(dataset.features, 2);
    assert_int_equal(dataset.rows[SPLIT_TEST], 5);
    assert_int_equal(dataset.rows[SPLIT_TRAIN] + dataset.rows[SPLIT_VALIDATION], 10);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++)
            assert_int_equal(dataset.label[split][i], llround(value_at(&dataset, split, i, "column_0")) % 2);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(llround(value_at(&dataset, SPLIT_TEST, i, "column_0")), 10 + i);
    dataset_release(&dataset);
    write_idx("xt", "lt", 10, 4);
    write_idx("elsewhere", "lt", 10, 5);
    files_refused(FOUR, "data.test_labels", "lt has 5 labels", "xt has 4 rows");
    files_refused("{'path': 'x', 'labels': 'l', 'test_path': 'xt'}", "has 2 columns", "has 3",
                  "data.test_labels is their file");
    forget("elsewhere");
    FORGET;
}

/* The training table has its target in the middle, whatever the test labels are called. */
static void tables_with_the_target_inside(void **state)
{
    (void)state;
    static const char *const headers[][3] = {
        {"a,y,b\n", "a,b\n", "class\n"}, {"a,y,b\n", "b,a\n", ""}, {"", "", ""}};
    for (size_t k = 0; k < sizeof headers / sizeof *headers; k++) {
        char x[200], xt[100], lt[60];
        snprintf(x, sizeof x, "%s1,no,-1\n2,yes,-2\n3,no,-3\n4,yes,-4\n5,no,-5\n6,yes,-6\n", headers[k][0]);
        bool turned = headers[k][1][0] == 'b';
        snprintf(xt, sizeof xt, turned ? "%s-7,7\n-8,8\n-9,9\n" : "%s7,-7\n8,-8\n9,-9\n", headers[k][1]);
        snprintf(lt, sizeof lt, "%sno\nyes\nno\n", headers[k][2]);
        write_file("x", x);
        write_file("xt", xt);
        write_file("lt", lt);
        struct dataset dataset =
            load_files("{'path': 'x', 'target': 1, 'test_path': 'xt', 'test_labels': 'lt'}");
        const char *a = headers[k][0][0] ? "a" : "column_0", *b = headers[k][0][0] ? "b" : "column_2";
        assert_int_equal(dataset.features, 2);
        for (int64_t i = 0; i < 3; i++) {
            assert_int_equal(llround(value_at(&dataset, SPLIT_TEST, i, a)), 7 + i);
            assert_int_equal(llround(value_at(&dataset, SPLIT_TEST, i, b)), -7 - i);
            assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][i]), i % 2 ? "yes" : "no");
        }
        dataset_release(&dataset);
    }
    FORGET;
}

static void what_cannot_be_meant(void **state)
{
    (void)state;
    write_file("x", "a,y\n1,no\n2,yes\n3,no\n4,yes\n");
    write_file("xt", "a\n5\n6\n");
    write_file("lt", "no\nyes\n");
    files_refused("{'path': 'x', 'target': 'y', 'test_labels': 'lt'}", "data.test_labels",
                  "without data.test_path");
    files_refused("{'path': 'x', 'target': ['a', 'y'], 'test_path': 'xt', 'test_labels': 'lt'}",
                  "data.test_labels and a list");
    write_file("lt", "no\nyes\nno\n");
    files_refused("{'path': 'x', 'target': 'y', 'test_path': 'xt', 'test_labels': 'lt'}", "data.test_labels",
                  "lt has");
    write_file("lt", "no\nmaybe\n");
    files_refused("{'path': 'x', 'target': 'y', 'test_path': 'xt', 'test_labels': 'lt'}", "'maybe'");
    write_file("xt", "y,a\nno,5\nyes,6\n");
    files_refused("{'path': 'x', 'target': 'y', 'test_path': 'xt', 'test_labels': 'lt'}", "data.test_labels",
                  "has the column \"y\" already");
    write_file("x", "1,no\n2,yes\n3,no\n4,yes\n");
    write_file("xt", "5,no\n6,yes\n");
    files_refused("{'path': 'x', 'target': 1, 'test_path': 'xt', 'test_labels': 'lt'}",
                  "must not have the labels, too");
    write_file("xt", "1 1:3\n0 1:4\n");
    files_refused("{'path': 'x', 'target': 1, 'test_path': 'xt', 'test_labels': 'lt'}",
                  "is LIBSVM, which has labels");
    FORGET;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_arrays),
        cmocka_unit_test(tables_with_the_target_inside),
        cmocka_unit_test(what_cannot_be_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
