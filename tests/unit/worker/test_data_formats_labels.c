/* Where labels come from: a column anywhere, one-hot columns, a file of their own, or nowhere. */
#include "tests/unit/worker/data_files_fixture.h"

#define ROWS 12

/* "a,b" with a = i, b = i * i. */
static void write_features(const char *name, const char *header)
{
    char text[400];
    int size = snprintf(text, sizeof text, "%s", header);
    for (int i = 0; i < ROWS; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%d\n", i, i * i);
    write_file(name, text);
}

/* Row i has the class of that name, chosen by i % count. */
static void check_classes(const char *settings, const char *feature, const char *const *names, int count)
{
    struct dataset dataset = load_files(settings);
    assert_int_equal(all_rows(&dataset), ROWS);
    assert_int_equal(dataset.classes, count);
    int64_t class_rows = 0;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++) {
            long long row = llround(value_at(&dataset, split, i, feature));
            assert_string_equal(class_name(&dataset, dataset.label[split][i]), names[row % count]);
        }
    for (int64_t c = 0; c < count; c++)
        class_rows += dataset.class_rows[c];
    assert_int_equal(class_rows, dataset.rows[SPLIT_TRAIN]);
    dataset_release(&dataset);
}

static void quirk_21_target_first_middle_last_elsewhere_one_hot(void **state)
{
    (void)state;
    static const char *const names[] = {"no", "yes"};
    char text[600];
    int size = snprintf(text, sizeof text, "first,x,middle,y,last\n");
    for (int i = 0; i < ROWS; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%s,%d,%s,%d,%s\n", names[i % 2], i,
                         names[i % 2], i * i, names[i % 2]);
    write_file("a.csv", text);
    static const char *const targets[] = {"'first'", "0", "2", "'middle'", "4", "-1", "-5", "'-1'"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char settings[100];
        snprintf(settings, sizeof settings, "{'path': 'a.csv', 'target': %s}", targets[i]);
        check_classes(settings, "x", names, 2);
    }
    write_features("a.csv", "x,y\n");
    write_file("b.txt", "no\nyes\nno\nyes\nno\nyes\nno\nyes\nno\nyes\nno\nyes\n");
    check_classes("{'path': 'a.csv', 'labels': 'b.txt'}", "x", names, 2);
    forget("a.csv", "b.txt");
}

static void one_hot_columns(void **state)
{
    (void)state;
    static const char *const names[] = {"red", "green", "blue"};
    char numbers[600], flags[900];
    int n = snprintf(numbers, sizeof numbers, "green,x,red,y,blue\n");
    int f = snprintf(flags, sizeof flags, "green,x,red,y,blue\n");
    for (int i = 0; i < ROWS; i++) {
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "%d,%d,%d,%d,%d\n", i % 3 == 1, i, i % 3 == 0,
                      i * i, i % 3 == 2);
        f += snprintf(flags + f, sizeof flags - (size_t)f, "%s,%d,%s,%d,%s\n", i % 3 == 1 ? "True" : "False",
                      i, i % 3 == 0 ? "True" : "False", i * i, i % 3 == 2 ? "True" : "False");
    }
    write_file("a.csv", numbers);
    check_classes("{'path': 'a.csv', 'target': ['red', 'green', 'blue']}", "x", names, 3);
    check_classes("{'path': 'a.csv', 'target': [2, 0, -1]}", "x", names, 3);
    write_file("a.csv", flags);
    check_classes("{'path': 'a.csv', 'target': ['red', 'green', 'blue']}", "x", names, 3);
    forget("a.csv");
}

static void one_hot_columns_hold_exactly_one(void **state)
{
    (void)state;
    const char *settings = "{'path': 'a.csv', 'target': ['p', 'q']}";
    write_file("a.csv", "x,p,q\n1,0,1\n2,1,0\n3,1,1\n");
    files_refused(settings, "a.csv:4: found 2 of the 2 one-hot columns");
    write_file("a.csv", "x,p,q\n1,0,1\n2,0,0\n");
    files_refused(settings, "a.csv:3: found 0 of the 2 one-hot columns");
    write_file("a.csv", "x,p,q\n1,0,1\n2,0,2\n");
    files_refused(settings, "a.csv:3:3: found neither 0 nor 1", "\"q\"");
    write_file("a.csv", "x,p,q\n1,0,1\n2,,1\n");
    files_refused(settings, "a.csv:3:2: found neither 0 nor 1", "\"p\"");
    files_refused("{'path': 'a.csv', 'target': ['p', 'p']}", "\"p\" twice");
    files_refused("{'path': 'a.csv', 'target': ['p']}", "list of 1", "one column without a list");
    files_refused("{'path': 'a.csv', 'target': []}", "list of 0");
    files_refused("{'path': 'a.csv', 'target': ['p', 'z']}", "data.target", "'z'", "x, p, q");
    files_refused("{'path': 'a.csv', 'target': ['p', [1]]}", "data.target", "found [1]");
    forget("a.csv");
}

/* A label that cannot be is looked for where it was written down. */
static void faults_name_the_file_of_labels(void **state)
{
    (void)state;
    write_features("a.csv", "x,y\n");
    write_file("l.txt", "no\nyes\nno\nyes\nno\n?\nno\nyes\nno\nyes\nno\nyes\n");
    files_refused("{'path': 'a.csv', 'labels': 'l.txt'}", "a.csv:7: its label in ",
                  "l.txt: found '?', expected a label");
    write_file("l.txt", "no\nyes\nno\nyes\nno\nyes\nno\nyes\nno\nyes\nno\nyes\n");
    write_file("b.csv", "x,y\n1,2\n2,3\n");
    write_file("m.txt", "no\n?\n");
    files_refused("{'path': 'a.csv', 'labels': 'l.txt', 'test_path': 'b.csv', 'test_labels': 'm.txt'}",
                  "b.csv:3: its label in ", "m.txt: found '?'");
    write_file("a.csv", "x,y,z\n1,2,no\n2,3,yes\n3,4,no\n4,5,yes\n");
    files_refused("{'path': 'a.csv', 'target': 'z', 'test_path': 'b.csv', 'test_labels': 'm.txt'}",
                  "b.csv:3: its label in ", "m.txt: found '?'");
    write_file("a.csv", "x,y,z\n1,2,no\n2,3,?\n3,4,no\n4,5,yes\n");
    files_refused("{'path': 'a.csv', 'target': 'z', 'test_path': 'b.csv', 'test_labels': 'm.txt'}",
                  "a.csv:3:3: found '?'", "m.txt: found '?'");
    forget("a.csv", "l.txt", "b.csv", "m.txt");
}

/* A text of one label a line, whatever blanks and header it has; decided by the number of rows. */
static void labels_in_a_text(void **state)
{
    (void)state;
    static const char *const two[] = {"New York", "Rome"};
    static const char *const digits[] = {"3", "8"};
    char plain[300] = "", headed[300] = "city\n", numbers[300] = "", quoted[400] = "\"class\"\r\n";
    for (int i = 0; i < ROWS; i++) {
        strcat(strcat(plain, two[i % 2]), "\n");
        strcat(strcat(headed, two[i % 2]), "\n");
        strcat(strcat(numbers, digits[i % 2]), i + 1 < ROWS ? "\n" : "");
        strcat(strcat(strcat(quoted, "\""), two[i % 2]), "\"\r\n");
    }
    static const char *const headers[] = {"x,y\n", ""};
    for (int h = 0; h < 2; h++) {
        write_features("a.csv", headers[h]);
        const char *x = h ? "column_0" : "x";
        const char *texts[] = {plain, headed, quoted};
        for (int t = 0; t < 3; t++) {
            write_file("b.txt", texts[t]);
            check_classes("{'path': 'a.csv', 'labels': 'b.txt'}", x, two, 2);
        }
        write_file("b.txt", numbers);
        check_classes("{'path': 'a.csv', 'labels': 'b.txt'}", x, digits, 2);
    }
    forget("a.csv", "b.txt");
}

static void a_label_of_a_column_s_name(void **state)
{
    (void)state;
    write_features("a.csv", "x,label\n");
    write_file("b.txt", "0\n1\n0\n1\n0\n1\n0\n1\n0\n1\n0\n1\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'labels': 'b.txt'}");
    assert_int_equal(dataset.features, 2);
    assert_true(feature_named(&dataset, "label") >= 0);
    assert_string_equal(json_get_string(dataset.preprocessing, "target", ""), "label.2");
    dataset_release(&dataset);
    forget("a.csv", "b.txt");
}

static void labels_that_do_not_fit(void **state)
{
    (void)state;
    write_features("a.csv", "x,y\n");
    write_file("b.txt", "0\n1\n0\n");
    files_refused("{'path': 'a.csv', 'labels': 'b.txt'}", "data.labels", "b.txt has 3 labels",
                  "a.csv has 12 rows");
    write_file("b.txt", "id,label\n0,1\n1,0\n2,1\n3,1\n4,0\n5,1\n6,0\n7,1\n8,0\n9,1\n10,0\n11,1\n");
    files_refused("{'path': 'a.csv', 'labels': 'b.txt'}", "data.labels", "found 2 columns",
                  "one label a row");
    write_file("b.txt", "1 1:2 3:1\n0 1:2\n");
    files_refused("{'path': 'a.csv', 'labels': 'b.txt'}", "data.labels", "LIBSVM");
    write_file("b.txt", "");
    files_refused("{'path': 'a.csv', 'labels': 'b.txt'}", "data.labels", "b.txt", "empty");
    files_refused("{'path': 'a.csv', 'labels': 'b.txt', 'target': 'x'}", "data.labels and data.target");
    forget("a.csv", "b.txt");
}

static void a_target_must_be_somewhere(void **state)
{
    (void)state;
    write_features("a.csv", "x,y\n");
    files_refused("{'path': 'a.csv'}", "data.target: missing", "data.labels", "2 columns are x, y");
    files_refused("{'path': 'a.csv', 'target': null}", "data.target: missing");
    files_refused("{'path': 'a.csv', 'target': 'z'}", "data.target: found 'z'", "x, y");
    files_refused("{'path': 'a.csv', 'target': 2}", "data.target: found 2", "index 0 to 1");
    files_refused("{'path': 'a.csv', 'target': -3}", "data.target: found -3");
    files_refused("{'path': 'a.csv', 'target': 1.5}", "data.target: found 1.5");
    forget("a.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quirk_21_target_first_middle_last_elsewhere_one_hot),
        cmocka_unit_test(one_hot_columns),
        cmocka_unit_test(one_hot_columns_hold_exactly_one),
        cmocka_unit_test(faults_name_the_file_of_labels),
        cmocka_unit_test(labels_in_a_text),
        cmocka_unit_test(a_label_of_a_column_s_name),
        cmocka_unit_test(labels_that_do_not_fit),
        cmocka_unit_test(a_target_must_be_somewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
