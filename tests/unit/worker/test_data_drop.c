/* Columns that are left out, and what counts as the columns of a file. */
#include "tests/unit/worker/data_files_fixture.h"

/* Row i: id 100 + i, a = i % 3, b = i * i, and its class. */
static void write_table(const char *name)
{
    char text[600];
    int size = snprintf(text, sizeof text, "id,a,b,y\n");
    for (int i = 0; i < 12; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%d,%d,%s\n", 100 + i, i % 3, i * i,
                         i % 2 ? "yes" : "no");
    write_file(name, text);
}

static void check_features(const char *settings, const char *const *names, int64_t count)
{
    struct dataset dataset = load_files(settings);
    assert_int_equal(dataset.features, count);
    for (int64_t f = 0; f < count; f++)
        assert_string_equal(feature_name(&dataset, f), names[f]);
    assert_true(has_note(&dataset, "that data.drop names"));
    dataset_release(&dataset);
}

static void by_name_index_or_list(void **state)
{
    (void)state;
    write_table("a.csv");
    check_features("{'path': 'a.csv', 'target': 'y', 'drop': 'id'}", (const char *const[]){"a", "b"}, 2);
    check_features("{'path': 'a.csv', 'target': 'y', 'drop': -2}", (const char *const[]){"id", "a"}, 2);
    check_features("{'path': 'a.csv', 'target': 'y', 'drop': ['a', 0]}", (const char *const[]){"b"}, 1);
    check_features("{'path': 'a.csv', 'target': 'y', 'drop': ['a', 1]}", (const char *const[]){"id", "b"}, 2);
    forget("a.csv");
}

static void what_is_needed_cannot_be_dropped(void **state)
{
    (void)state;
    write_table("a.csv");
    files_refused("{'path': 'a.csv', 'target': 'y', 'drop': 3}", "data.drop", "\"y\" is the target");
    files_refused("{'path': 'a.csv', 'target': 'y', 'group': 'a', 'drop': ['b', 'a']}", "data.drop",
                  "\"a\" is the group");
    files_refused("{'path': 'a.csv', 'target': 'y', 'time': 'b', 'drop': 'b'}", "data.drop",
                  "\"b\" is the time");
    files_refused("{'path': 'a.csv', 'target': ['a', 'b'], 'drop': 'b'}", "data.drop", "\"b\" is the target");
    files_refused("{'path': 'a.csv', 'target': 'y', 'drop': 'B'}", "data.drop: found 'B'", "did you mean b?",
                  "id, a, b, y");
    files_refused("{'path': 'a.csv', 'target': 'y', 'drop': [1.5]}", "data.drop: found 1.5");
    files_refused("{'path': 'a.csv', 'target': 'y', 'drop': [0, 1, 2]}", "no column is left");
    forget("a.csv");
}

/* An id would make every row another. */
static void rows_are_equal_whatever_is_dropped(void **state)
{
    (void)state;
    write_file("a.csv", "id,a,y\n1,5,no\n2,6,yes\n3,5,no\n4,7,yes\n5,8,no\n6,9,yes\n7,5,no\n");
    struct dataset dataset =
        load_files("{'path': 'a.csv', 'target': 'y', 'drop': 'id', 'deduplicate': true}");
    assert_int_equal(all_rows(&dataset), 5);
    dataset_release(&dataset);
    forget("a.csv");
}

/* The test table may lack what is dropped, and cells of it may be anything. */
static void other_files_and_bad_cells(void **state)
{
    (void)state;
    write_table("a.csv");
    write_file("b.csv", "y,b,a\nno,4,1\nyes,9,2\n");
    check_features("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y', 'drop': 'id'}",
                   (const char *const[]){"a", "b"}, 2);
    write_file("a.csv", "id,a,y\n1,5,no\n2,6,yes\n3,5,no\n4,7,yes\n5,8,no\nsix,9,yes\n7,5,no\n");
    files_refused("{'path': 'a.csv', 'target': 'y'}", "a.csv:7:1: found 'six'");
    check_features("{'path': 'a.csv', 'target': 'y', 'drop': 0}", (const char *const[]){"a"}, 1);
    forget("a.csv", "b.csv");
}

/* Labels from another file are no column of this one: -1 is its own last. */
static void labels_elsewhere_have_no_index(void **state)
{
    (void)state;
    write_file("a.csv", "g,a,b\n1,5,1\n1,6,1\n2,5,2\n2,7,2\n3,8,3\n3,9,3\n4,4,4\n4,3,4\n");
    write_file("l.txt", "no\nyes\nno\nyes\nno\nyes\nno\nyes\n");
    check_features("{'path': 'a.csv', 'labels': 'l.txt', 'drop': -1}", (const char *const[]){"g", "a"}, 2);
    check_features("{'path': 'a.csv', 'labels': 'l.txt', 'group': -1, 'drop': 0}", (const char *const[]){"a"},
                   1);
    files_refused("{'path': 'a.csv', 'labels': 'l.txt', 'drop': 3}", "data.drop: found 3",
                  "its 3 columns are g, a, b (index 0 to 2");
    forget("a.csv", "l.txt");
}

/* LIBSVM has labels; beside others they would be the answer. */
static void a_second_label_is_no_feature(void **state)
{
    (void)state;
    write_file("a.txt", "1 1:5 2:1\n0 1:6\n1 2:7\n0 1:8\n1 1:2 2:3\n0 2:4\n");
    write_file("l.txt", "no\nyes\nno\nyes\nno\nyes\n");
    struct dataset dataset = load_files("{'path': 'a.txt', 'labels': 'l.txt'}");
    assert_int_equal(dataset.features, 2);
    assert_string_equal(feature_name(&dataset, 0), "feature_1");
    assert_true(has_note(&dataset, "its labels are no feature"));
    dataset_release(&dataset);
    forget("a.txt", "l.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_name_index_or_list),
        cmocka_unit_test(what_is_needed_cannot_be_dropped),
        cmocka_unit_test(rows_are_equal_whatever_is_dropped),
        cmocka_unit_test(other_files_and_bad_cells),
        cmocka_unit_test(labels_elsewhere_have_no_index),
        cmocka_unit_test(a_second_label_is_no_feature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
