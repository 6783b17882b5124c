/* Test rows in a table of their own: columns by name or position, classes spelt otherwise, what stays the
 * same for the refit. */
#include "tests/unit/worker/data_files_fixture.h"

static const char training[] = "a,kind,y\n1,red,no\n2,blue,yes\n3,red,no\n4,blue,yes\n5,red,no\n6,blue,yes\n"
                               "7,red,no\n8,blue,yes\n9,red,no\n10,blue,yes\n";
static const char bare[] = "1,red,no\n2,blue,yes\n3,red,no\n4,blue,yes\n5,red,no\n6,blue,yes\n"
                           "7,red,no\n8,blue,yes\n9,red,no\n10,blue,yes\n";

/* Row i of the test: a = 20 + i, the class yes for an even i. */
static void check_test_rows(const char *settings, const char *a, int64_t rows)
{
    struct dataset dataset = load_files(settings);
    assert_int_equal(dataset.rows[SPLIT_TEST], rows);
    assert_int_equal(dataset.rows[SPLIT_VALIDATION], 2);
    assert_int_equal(dataset.rows[SPLIT_TRAIN], 8);
    assert_int_equal(dataset.classes, 2);
    for (int64_t i = 0; i < rows; i++) {
        assert_true(fabs(value_at(&dataset, SPLIT_TEST, i, a) - (double)(20 + i)) < 1e-4);
        assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][i]), i % 2 ? "no" : "yes");
    }
    for (int64_t i = 0; i < 8; i++)
        assert_true(value_at(&dataset, SPLIT_TRAIN, i, a) < 10.5);
    dataset_release(&dataset);
}

static void columns_by_name_or_position(void **state)
{
    (void)state;
    const char *named = "{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}";
    const char *numbered = "{'path': 'a.csv', 'test_path': 'b.csv', 'target': -1}";
    write_file("a.csv", training);
    write_file("b.csv", "a,kind,y\n20,red,yes\n21,blue,no\n22,red,yes\n");
    check_test_rows(named, "a", 3);
    write_file("b.csv", "y;a;kind\nyes;20;red\nno;21;blue\n");
    check_test_rows(named, "a", 2);
    write_file("b.csv", "20,red,yes\n21,blue,no\n22,red,yes\n");
    check_test_rows(named, "a", 3);
    write_file("a.csv", bare);
    check_test_rows(numbered, "column_0", 3);
    write_file("b.csv", "a,kind,y\n20,red,yes\n21,blue,no\n22,red,yes\n23,red,no\n");
    check_test_rows(numbered, "column_0", 4);
    forget("a.csv", "b.csv");
}

static void columns_more_and_missing(void **state)
{
    (void)state;
    write_file("a.csv", training);
    write_file("b.csv", "id,y,a,kind,weight\n1,yes,20,red,7\n2,no,21,blue,9\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}");
    assert_int_equal(dataset.rows[SPLIT_TEST], 2);
    assert_true(has_note(&dataset, "ignored 2 columns that the training table lacks: id, weight"));
    assert_int_equal(dataset.features, 3);
    dataset_release(&dataset);
    const char *named = "{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}";
    write_file("b.csv", "y,a\nyes,20\nno,21\n");
    files_refused(named, "data.test_path", "b.csv lacks 1 column of", "kind");
    write_file("b.csv", "kind,a\nred,20\nblue,21\n");
    files_refused(named, "data.test_path", "lacks 1 column", ": y");
    write_file("b.csv", "20,yes\n21,no\n");
    files_refused(named, "data.test_path", "has 2 columns", "has 3");
    forget("a.csv", "b.csv");
}

/* What one file calls '<=50K' the other calls '<=50K.'; case and blanks differ too. */
static void quirk_22_classes_spelt_differently(void **state)
{
    (void)state;
    const char *settings = "{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}";
    write_file("a.csv", "a,y\n1,<=50K\n2,>50K\n3,<=50K\n4,>50K\n5,<=50K\n6,>50K\n7,<=50K\n8,>50K\n");
    write_file("b.csv", "a,y\n20,<=50K.\n21, >50k .\n22,<=50K.\n");
    struct dataset dataset = load_files(settings);
    assert_int_equal(dataset.classes, 2);
    assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][0]), "<=50K");
    assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][1]), ">50K");
    assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][2]), "<=50K");
    assert_true(has_note(&dataset, "'<=50K.' is '<=50K'"));
    assert_true(has_note(&dataset, "'>50k .' is '>50K'"));
    dataset_release(&dataset);
    write_file("b.csv", "a,y\n20,<=50K.\n21,about\n22,<=50K.\n");
    files_refused(settings, "3 rows of", "found '<=50K.', 'about'", "expected '<=50K', '>50K'");
    write_file("b.csv", "a,y\n20,<=50K.\n21,<=50K..\n"); /* two for one */
    files_refused(settings, "found '<=50K.', '<=50K..'");
    forget("a.csv", "b.csv");
}

static void classes_that_training_lacks(void **state)
{
    (void)state;
    write_file("a.csv", "a,y\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n");
    write_file("b.csv", "a,y\n20,1\n21,2\n");
    files_refused("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}", "1 rows of", "found '1', '2'",
                  "expected '0', '1'");
    write_file("b.csv", "a,y\n20,1\n21,1\n"); /* one that only training has is none */
    struct dataset dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}");
    assert_int_equal(dataset.classes, 2);
    dataset_release(&dataset);
    forget("a.csv", "b.csv");
}

static void categories_that_training_lacks(void **state)
{
    (void)state;
    write_file("a.csv", training);
    write_file("b.csv", "a,kind,y\n20,green,yes\n21,blue,no\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}");
    assert_int_equal(dataset.features, 3);
    for (int64_t f = 0; f < 3; f++)
        if (!strcmp(feature_name(&dataset, f), "kind"))
            assert_true(dataset.x[SPLIT_TEST][f] == 0);
    assert_true(has_note(&dataset, "no training row has"));
    dataset_release(&dataset);
    forget("a.csv", "b.csv");
}

/* Messages name the file that a cell stands in, with that file's lines. */
static void faults_are_placed_in_their_file(void **state)
{
    (void)state;
    write_file("a.csv", training);
    write_file("b.csv", "a,kind,y\n20,red,yes\noops,blue,no\n");
    files_refused("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}", "b.csv:3:1: found 'oops'");
    write_file("b.csv", "a,kind,y\n20,red,yes\n21,blue,\n");
    files_refused("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}", "b.csv:3:3: found nothing");
    write_file("b.csv", "a,kind,y\n20,red\n");
    files_refused("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}", "b.csv:2:");
    files_refused("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y', 'test': 0.1}",
                  "data.test_path and data.test");
    forget("a.csv", "b.csv");
}

/* What the training rows show to be numbers is none that the test rows alone would take for codes. */
static void thousands_in_both_files(void **state)
{
    (void)state;
    static const char *const tables[] = {"a,y\n1 000,no\n20 000,yes\n300 000,no\n5,yes\n7,no\n8,yes\n",
                                         "a,y\n1,no\n2,yes\n3,no\n5,yes\n7,no\n8,yes\n"};
    for (int i = 0; i < 2; i++) {
        write_file("a.csv", tables[i]);
        write_file("b.csv", "a,y\n100 000,no\n200 000,yes\n");
        struct dataset dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}");
        assert_int_equal(dataset.features, 1);
        assert_int_equal(llround(value_at(&dataset, SPLIT_TEST, 0, "a")), 100000);
        assert_int_equal(llround(value_at(&dataset, SPLIT_TEST, 1, "a")), 200000);
        dataset_release(&dataset);
    }
    forget("a.csv", "b.csv");
}

/* An index that each file counts anew is one, and so dropped. */
static void an_unnamed_index_in_both_files(void **state)
{
    (void)state;
    write_file("a.csv", ",a,y\n0,1,no\n1,2,yes\n2,3,no\n3,4,yes\n4,5,no\n5,6,yes\n");
    write_file("b.csv", ",a,y\n0,7,no\n1,8,yes\n2,9,no\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y'}");
    assert_int_equal(dataset.features, 1);
    assert_string_equal(feature_name(&dataset, 0), "a");
    dataset_release(&dataset);
    forget("a.csv", "b.csv");
}

static void the_refit_trains_on_all_of_the_first_file(void **state)
{
    (void)state;
    struct dataset dataset;
    struct error err = {0};
    write_file("a.csv", training);
    write_file("b.csv", "a,kind,y\n20,red,yes\n21,blue,no\n22,red,yes\n");
    json_t *data = settings_of("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y', 'test': 0}");
    assert_int_equal(dataset_load_refit(&dataset, data, NULL, FIXTURE_SEED, &err), 0);
    assert_int_equal(dataset.rows[SPLIT_TRAIN], 10);
    assert_int_equal(dataset.rows[SPLIT_VALIDATION], 0);
    assert_int_equal(dataset.rows[SPLIT_TEST], 3);
    int64_t f = feature_named(&dataset, "a");
    const json_t *a = json_array_get(json_object_get(dataset.preprocessing, "features"), (size_t)f);
    assert_true(fabs(json_get_number(a, "mean", 0) - 5.5) < 1e-12); /* test rows have no say */
    assert_int_equal(dataset.class_rows[0], 5);
    assert_int_equal(dataset.class_rows[1], 5);
    dataset_release(&dataset);
    json_decref(data);
    forget("a.csv", "b.csv");
}

/* One-hot targets and labels in a file: the test table has the columns under the same names. */
static void one_hot_targets_and_labels(void **state)
{
    (void)state;
    write_file("a.csv", "a,p,q\n1,1,0\n2,0,1\n3,1,0\n4,0,1\n5,1,0\n6,0,1\n");
    write_file("b.csv", "q,p,a\n1,0,20\n0,1,21\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': ['p', 'q']}");
    assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][0]), "q");
    assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][1]), "p");
    assert_int_equal(dataset.features, 1);
    dataset_release(&dataset);
    write_file("a.csv", "a\n1\n2\n3\n4\n5\n6\n");
    write_file("l.csv", "y\nu\nv\nu\nv\nu\nv\n");
    write_file("b.csv", "y,a\nv,20\nu,21\n");
    dataset = load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'labels': 'l.csv'}");
    assert_string_equal(class_name(&dataset, dataset.label[SPLIT_TEST][0]), "v");
    dataset_release(&dataset);
    write_file("b.csv", "20\n21\n");
    files_refused("{'path': 'a.csv', 'test_path': 'b.csv', 'labels': 'l.csv'}", "has 1 columns", "has 2",
                  "data.test_labels is their file");
    forget("a.csv", "b.csv", "l.csv");
}

/* Fetched blobs lie elsewhere under other names; messages keep the names of the settings. */
static void files_elsewhere(void **state)
{
    (void)state;
    struct dataset dataset;
    struct error err = {0};
    char path[80], labels[80], test[80];
    snprintf(path, sizeof path, "%s", file_named("blob1"));
    snprintf(labels, sizeof labels, "%s", file_named("blob2"));
    snprintf(test, sizeof test, "%s", file_named("blob3"));
    struct data_files files = {.path = path, .labels = labels, .test_path = test};
    write_file("blob1", "a\n1\n2\n3\n4\n5\n6\n");
    write_file("blob2", "y\nu\nv\nu\nv\nu\nv\n");
    write_file("blob3", "a,y\n20,v\n");
    const char *text = "{\"path\": \"x.csv\", \"labels\": \"y.csv\", \"test_path\": \"z.csv\"}";
    json_t *data = json_parse(text, strlen(text), &err);
    if (dataset_load(&dataset, data, &files, FIXTURE_SEED, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(dataset.rows[SPLIT_TEST], 1);
    dataset_release(&dataset);
    write_file("blob3", "a,y\noops,v\n");
    assert_int_equal(dataset_load(&dataset, data, &files, FIXTURE_SEED, &err), -1);
    assert_non_null(strstr(err.message, "z.csv:2:1: found 'oops'"));
    json_decref(data);
    forget("blob1", "blob2", "blob3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_by_name_or_position),
        cmocka_unit_test(columns_more_and_missing),
        cmocka_unit_test(quirk_22_classes_spelt_differently),
        cmocka_unit_test(classes_that_training_lacks),
        cmocka_unit_test(categories_that_training_lacks),
        cmocka_unit_test(faults_are_placed_in_their_file),
        cmocka_unit_test(thousands_in_both_files),
        cmocka_unit_test(an_unnamed_index_in_both_files),
        cmocka_unit_test(the_refit_trains_on_all_of_the_first_file),
        cmocka_unit_test(one_hot_targets_and_labels),
        cmocka_unit_test(files_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
