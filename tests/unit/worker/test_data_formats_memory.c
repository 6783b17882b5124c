/* Arrays, LIBSVM, and data in several files when memory ends at the 1st, 2nd, ... allocation: an error, or
 * the whole dataset. */
#include "data_files_fixture.h"
#include "failing_memory.h"

typedef void (*fail_f)(long n);
static const fail_f fail_modes[] = {memory_fail_at, memory_fail_once_at};

/* A sum over everything that training sees; the same for the same rows. */
static double sum_of(const struct dataset *dataset)
{
    double sum = 0;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset->rows[split]; i++) {
            for (int64_t f = 0; f < dataset->features; f++)
                sum += (double)(i + 1) * dataset->x[split][i * dataset->features + f];
            sum += (double)(i + 1) * (dataset->classes ? dataset->label[split][i] : dataset->y[split][i]);
        }
    return sum;
}

static void check(const char *settings)
{
    json_t *data = settings_of(settings);
    for (size_t mode = 0; mode < sizeof fail_modes / sizeof *fail_modes; mode++) {
        double whole = 0;
        int failures = 0;
        for (long n = 0, failed = 1; failed || n == 1; n++) { /* n 0: nothing fails */
            struct dataset dataset;
            struct error err = {0};
            fail_modes[mode](n);
            int result = dataset_load(&dataset, data, NULL, FIXTURE_SEED, &err);
            failed = memory_has_failed();
            memory_fail_at(0);
            if (result != 0) {
                if (!failed || err.code != ERROR_MEMORY)
                    fail_msg("%s, allocation %ld: %s", settings, n, err.message);
                failures++;
                continue;
            }
            assert_true(n == 0 || sum_of(&dataset) == whole);
            whole = sum_of(&dataset);
            dataset_release(&dataset);
        }
        assert_true(failures > 30);
    }
    json_decref(data);
}

static void arrays_and_labels(void **state)
{
    (void)state;
    unsigned char images[8 + 4 + 20 * 3] = {0, 0, 8, 2, 0, 0, 0, 20, 0, 0, 0, 3};
    char labels[200] = "kind\n";
    for (int i = 0; i < 60; i++)
        images[12 + i] = (unsigned char)(i * 7 % 31);
    for (int i = 0; i < 20; i++)
        strcat(labels, i % 2 ? "odd\n" : "even\n");
    write_file_bytes("a.idx", images, 72);
    write_file("l.txt", labels);
    check("{'path': 'a.idx', 'labels': 'l.txt'}");
    check("{'path': 'a.idx', 'target': 1, 'group': 0, 'task': 'regression'}");
    forget("a.idx", "l.txt");
}

static void sparse_rows_and_test_rows(void **state)
{
    (void)state;
    char text[2000] = "";
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d qid:%d 1:%d %d:2\n", i % 2, i / 3, i,
                 2 + i % 5);
    write_file("a.txt", text);
    check("{'path': 'a.txt'}");
    check("{'path': 'a.txt', 'test_path': 'a.txt', 'deduplicate': true}");
    forget("a.txt");
}

static void tables_with_roles(void **state)
{
    (void)state;
    char text[3000] = "day,a,kind,p,q,y\n";
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "2024-01-%02d,%d,t%d,%d,%d,%s\n", 1 + i, i,
                 i % 3, i % 2, 1 - i % 2, i % 2 ? "Yes" : "No");
    write_file("a.csv", text);
    write_file("b.csv", "y,q,p,kind,a,more\nyes.,0,1,t1,7,0\nno.,1,0,t9,8,0\n");
    check("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y', 'time': 'day'}");
    check("{'path': 'a.csv', 'test_path': 'b.csv', 'target': ['p', 'q'], 'group': 'day'}");
    forget("a.csv", "b.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_and_labels),
        cmocka_unit_test(sparse_rows_and_test_rows),
        cmocka_unit_test(tables_with_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
