/* How a table may be written down: every spelling of the same 10 rows must give the same dataset. */
#include "tests/unit/worker/data_fixture.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* 10 rows: a = i, b = i*i, label = i is odd. The text is made with the given delimiter and line end. */
static char *table_text(const char *header, const char *delimiter, const char *end, bool last_end)
{
    static char text[2000];
    int size = snprintf(text, sizeof text, "%s%s", header, *header ? end : "");
    for (int i = 0; i < 10; i++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d%s%d%s%s%s", i, delimiter, i * i,
                         delimiter, i % 2 ? "odd" : "even", i < 9 || last_end ? end : "");
    return text;
}

static void check_rows(const struct dataset *dataset)
{
    assert_int_equal(dataset->task, TASK_CLASSIFICATION);
    assert_int_equal(dataset->classes, 2);
    assert_int_equal(dataset->features, 2);
    assert_int_equal(dataset->rows[SPLIT_TRAIN], 6);
    assert_int_equal(dataset->rows[SPLIT_VALIDATION], 2);
    assert_int_equal(dataset->rows[SPLIT_TEST], 2);
    int seen = 0;
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset->rows[split]; i++) {
            double a = original(dataset, (enum split)split, i, 0),
                   b = original(dataset, (enum split)split, i, 1);
            int value = (int)lround(a);
            assert_true(fabs(a - value) < 1e-5 && fabs(b - value * value) < 1e-4);
            assert_string_equal(class_name(dataset, dataset->label[split][i]), value % 2 ? "odd" : "even");
            seen |= 1 << value;
        }
    assert_int_equal(seen, 1023);
}

static void check_text(const char *text, const char *target, const char *more)
{
    struct dataset dataset = load_text(text, target, more);
    check_rows(&dataset);
    dataset_release(&dataset);
}

static void delimiters(void **state)
{
    (void)state;
    const char *const delimiter[] = {",", ";", "\t", " ", "   ", ", ", " ; "};
    for (size_t i = 0; i < sizeof delimiter / sizeof *delimiter; i++) {
        char header[100];
        snprintf(header, sizeof header, "a%sb%slabel", delimiter[i], delimiter[i]);
        check_text(table_text(header, delimiter[i], "\n", true), "\"label\"", "");
        check_text(table_text("", delimiter[i], "\n", true), "2", "");
        check_text(table_text("", delimiter[i], "\n", true), "-1", "");
    }
    check_text(table_text("a,b,label", ",", "\n", true), "\"label\"", "\"delimiter\": \"comma\"");
    check_text(table_text("a,b,label", ",", "\n", true), "\"label\"", "\"delimiter\": \",\"");
}

static void line_ends(void **state)
{
    (void)state;
    const char *const end[] = {"\n", "\r\n", "\r", "\n\n", "\r\n  \r\n", "\n,,\n"};
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        check_text(table_text("a,b,label", ",", end[i], true), "\"label\"", "");
        check_text(table_text("a,b,label", ",", end[i], false), "\"label\"", "");
    }
}

static void headers(void **state)
{
    (void)state;
    check_text(table_text("\xef\xbb\xbf"
                          "a,b,label",
                          ",", "\n", true),
               "\"label\"", "");
    check_text(table_text("\" a \",\"b\", \"label\" ", ",", "\n", true), "\"label\"", "");
    check_text(table_text("a,b,label", ",", "\n", true), "\"label\"", "\"header\": true");
    check_text(table_text("", ",", "\n", true), "2", "\"header\": \"false\"");
    check_text(table_text("", ",", "\n", true), "\"-1\"", "\"header\": false");
    check_text(table_text("1,2,3", ",", "\n", true), "\"3\"", "\"header\": true");
    struct dataset dataset = load_text(table_text("a,b,label", ",", "\n", true), "-1", "");
    assert_true(has_note(&dataset, "the first row is a header"));
    assert_string_equal(feature_name(&dataset, 1), "b");
    dataset_release(&dataset);
    dataset = load_text(table_text("", ",", "\n", true), "-1", "");
    assert_true(has_note(&dataset, "the first row is data"));
    assert_string_equal(feature_name(&dataset, 1), "column_1");
    dataset_release(&dataset);
}

/* All text: a header is what its columns do not repeat. */
static void headers_of_texts(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("size,kind\nbig,yes\nbig,no\nsmall,no\nsmall,yes\nbig,yes\nsmall,no\n", "1", "");
    assert_int_equal(all_rows(&dataset), 6);
    dataset_release(&dataset);
    dataset = load_text("big,yes\nbig,no\nsmall,no\nsmall,yes\nbig,yes\nsmall,no\n", "1", "");
    assert_int_equal(all_rows(&dataset), 6);
    dataset_release(&dataset);
    dataset = load_text("big,yes\nbig,no\nsmall,no\nsmall,yes\nbig,yes\nsmall,no\n", "\"yes\"", "");
    assert_int_equal(all_rows(&dataset), 5); /* asked for by name, so it is one */
    dataset_release(&dataset);
}

static void doubled_names(void **state)
{
    (void)state;
    struct dataset dataset = load_text(table_text("a,a,label", ",", "\n", true), "\"label\"", "");
    assert_string_equal(feature_name(&dataset, 0), "a");
    assert_string_equal(feature_name(&dataset, 1), "a.2");
    assert_true(has_note(&dataset, "another column is called \"a\""));
    dataset_release(&dataset);
}

/* A name that each of thousands of columns has costs no search for each. */
static void one_name_for_all(void **state)
{
    enum { COLUMNS = 4000, ROWS = 6 };
    (void)state;
    char *text = malloc((size_t)COLUMNS * (ROWS + 1) * 4 + 1), *at = text;
    for (int row = -1; row < ROWS; row++)
        for (int c = 0; c < COLUMNS; c++)
            at += row < 0 ? sprintf(at, "n%c", c + 1 < COLUMNS ? ',' : '\n')
                          : sprintf(at, "%d%c", (row + c) % 2, c + 1 < COLUMNS ? ',' : '\n');
    struct dataset dataset = load_text(text, "\"n.4000\"", "\"header\":\"true\"");
    assert_int_equal(dataset.features, COLUMNS - 1);
    assert_string_equal(feature_name(&dataset, 0), "n");
    assert_string_equal(feature_name(&dataset, COLUMNS - 2), "n.3999");
    assert_true(has_note(&dataset, "column 11 is \"n.11\" here"));
    assert_false(has_note(&dataset, "column 12 is"));
    assert_true(has_note(&dataset, "3989 more columns share a name"));
    dataset_release(&dataset);
    free(text);
}

static void quotes(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("text,n,label\n\"a, \"\"b\"\"\",\"1\",x\n\"two\nlines\",2,y\n\"a, "
                  "\"\"b\"\"\",3,x\n\"two\nlines\",4,y\n"
                  "\"a, \"\"b\"\"\",5,x\n\"two\nlines\",6,y\n\"a, \"\"b\"\"\",5,x\n\"two\nlines\",6,y\n",
                  "\"label\"", "");
    assert_int_equal(all_rows(&dataset), 8);
    const json_t *features = json_object_get(dataset.preprocessing, "features");
    assert_string_equal(json_get_string(json_array_get(features, 0), "category", ""), "a, \"b\"");
    assert_string_equal(json_get_string(json_array_get(features, 1), "category", ""), "two\nlines");
    dataset_release(&dataset);
}

static void lines_are_counted_through_quotes(void **state)
{
    (void)state;
    refused("t,n,label\n\"two\nlines\",1,x\n\n\"two\r\nlines\",2,y\r\nc,3,x\rc,4,y\nc,5,x\nc,oops,x\n",
            "\"label\"", "", ":10:2: found 'oops', expected a number (column \"n\")");
    refused("a,b\n1,2\n3,\"4\n5,6\n", "\"b\"", "", ":3: a quoted field is never closed");
}

static void gzip_whatever_its_name(void **state)
{
    (void)state;
    const char *text = table_text("a,b,label", ",", "\n", true);
    unsigned char packed[4000];
    size_t size = 0;
    /* Two members, as `cat a.gz b.gz` makes, and padding behind them. */
    for (int part = 0; part < 2; part++) {
        z_stream stream = {0};
        assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        size_t half = strlen(text) / 2;
        stream.next_in = (Bytef *)(part ? text + half : text);
        stream.avail_in = (uInt)(part ? strlen(text) - half : half);
        stream.next_out = packed + size;
        stream.avail_out = (uInt)(sizeof packed - size);
        assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
        size += stream.total_out;
        deflateEnd(&stream);
    }
    packed[size] = packed[size + 1] = 0;
    write_bytes(packed, size + 2);
    struct dataset dataset = load_options("\"label\"", "");
    check_rows(&dataset);
    dataset_release(&dataset);
    write_bytes(packed, size - 9);
    load_refused("\"label\"", "", (const char *const[]){"gzip data is damaged or cut off", NULL});
}

static void decimal_commas(void **state)
{
    (void)state;
    struct dataset dataset = load_text("a;b\n0,5;1,5\n1,5;2,5\n2,5;3,5\n3,5;4,5\n4,5;5,5\n", "\"b\"", "");
    assert_int_equal(dataset.task, TASK_REGRESSION);
    assert_int_equal(dataset.features, 1);
    for (int64_t i = 0; i < dataset.rows[SPLIT_TRAIN]; i++) {
        double y = dataset.y[SPLIT_TRAIN][i] * dataset.target_sd + dataset.target_mean;
        assert_true(fabs(y - original(&dataset, SPLIT_TRAIN, i, 0) - 1) < 1e-5);
    }
    dataset_release(&dataset);
}

static void things_that_are_no_table(void **state)
{
    (void)state;
    refused("", "0", "", "the file is empty");
    refused("\n\n  \n", "0", "", "the file is empty");
    refused("a,b,label\n", "\"label\"", "", "a header but no rows");
    refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "0", "", "Git LFS",
            "git lfs pull");
    refused("\n <!DOCTYPE html><html>", "0", "", "web page");
    refused("PK\003\004", "0", "", "zip archive");
    refused("@RELATION iris\n", "0", "", "ARFF");
    write_bytes("a\0b", 3);
    load_refused("0", "", (const char *const[]){"zero bytes", NULL});
    refused("a,b\n1,2\n3\n4,5,6\n7,8\n", "\"b\"", "", "2 rows with another number of fields",
            ":3: found 1 field, expected 2", ":4: found 3 fields, expected 2");
}

static void a_missing_file_is_no_usage_error(void **state)
{
    (void)state;
    struct dataset dataset;
    struct error err = {0};
    json_t *options = json_pack("{s:s, s:i}", "path", "does/not/exist.csv", "target", 0);
    assert_int_equal(dataset_load(&dataset, options, NULL, 1, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, "does/not/exist.csv"));
    json_decref(options);
}

/* Reading a device or a pipe would never end; a sparse file of 8 TiB fits no memory. */
static void files_that_cannot_be_tables_are_not_read(void **state)
{
    (void)state;
    char folder[] = "/tmp/rung-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/data.csv", folder);
    static const char *const messages[] = {"is not a regular file", "is larger than this machine's memory",
                                           "is not a regular file"};
    for (int i = 0; i < 3; i++) {
        struct dataset dataset;
        struct error err = {0};
        int fd = i == 1 ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
        assert_int_equal(i == 0 ? mkfifo(path, 0600) : i == 1 ? ftruncate(fd, 1LL << 43) : 0, 0);
        json_t *options = json_pack("{s:s, s:i}", "path", i == 2 ? "/dev/zero" : path, "target", 0);
        assert_int_equal(dataset_load(&dataset, options, NULL, 1, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
        assert_non_null(strstr(err.message, messages[i]));
        json_decref(options);
        if (fd >= 0)
            close(fd);
        unlink(path);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delimiters),
        cmocka_unit_test(line_ends),
        cmocka_unit_test(headers),
        cmocka_unit_test(headers_of_texts),
        cmocka_unit_test(doubled_names),
        cmocka_unit_test(one_name_for_all),
        cmocka_unit_test(quotes),
        cmocka_unit_test(lines_are_counted_through_quotes),
        cmocka_unit_test(gzip_whatever_its_name),
        cmocka_unit_test(decimal_commas),
        cmocka_unit_test(things_that_are_no_table),
        cmocka_unit_test(a_missing_file_is_no_usage_error),
        cmocka_unit_test(files_that_cannot_be_tables_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
