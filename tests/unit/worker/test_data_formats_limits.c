/* Equal rows, wide and large tables, and files that are not the data at all. */
#include "tests/unit/worker/data_files_fixture.h"

/* 60 rows: a = 0..19 three times over; the third time with another label. */
static void write_repeated(const char *name, const char *header, bool counted)
{
    char text[2000];
    int size = snprintf(text, sizeof text, "%s", header);
    for (int i = 0; i < 60; i++) {
        if (counted)
            size += snprintf(text + size, sizeof text - (size_t)size, "%d,", i);
        const char *y = (i % 20 < 10) == (i < 40) ? "no" : "yes";
        size +=
            snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s\n", i % 20, i % 2 ? "NA" : "-1.5", y);
    }
    write_file(name, text);
}

static void quirk_24_duplicates_are_counted(void **state)
{
    (void)state;
    write_repeated("a.csv", "a,b,y\n", false);
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y'}");
    assert_int_equal(all_rows(&dataset), 60);
    assert_true(has_note(&dataset, "20 rows are equal to an earlier one in every column; "));
    assert_true(has_note(&dataset, "20 rows are equal to an earlier one in every column but the target"));
    /* Rows of the other parts that also train, counted here by their values. */
    int leaked = 0;
    for (int split = 1; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++) {
            bool trains = false;
            for (int64_t j = 0; j < dataset.rows[SPLIT_TRAIN]; j++)
                trains |= dataset.label[split][i] == dataset.label[SPLIT_TRAIN][j] &&
                          !memcmp(dataset.x[split] + i * dataset.features,
                                  dataset.x[SPLIT_TRAIN] + j * dataset.features,
                                  (size_t)dataset.features * sizeof(float));
            leaked += trains;
        }
    char note[60];
    snprintf(note, sizeof note, "; %d of validation and test", leaked);
    assert_true(leaked > 0 && has_note(&dataset, note));
    dataset_release(&dataset);
    forget("a.csv");
}

static void quirk_24_duplicates_are_dropped(void **state)
{
    (void)state;
    write_repeated("a.csv", "a,b,y\n", false);
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y', 'deduplicate': true}");
    assert_int_equal(all_rows(&dataset), 40);
    assert_true(has_note(&dataset, "dropped 20 rows equal to an earlier one"));
    assert_false(has_note(&dataset, "data.deduplicate: true"));
    int count[20][2] = {{0}};
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++)
            count[llround(value_at(&dataset, split, i, "a"))][dataset.label[split][i]]++;
    for (int a = 0; a < 20; a++)
        assert_true(count[a][0] == 1 && count[a][1] == 1);
    dataset_release(&dataset);
    /* A column that counts the rows makes none of them different. */
    write_repeated("a.csv", ",a,b,y\n", true);
    dataset = load_files("{'path': 'a.csv', 'target': 'y', 'deduplicate': true}");
    assert_int_equal(all_rows(&dataset), 40);
    dataset_release(&dataset);
    forget("a.csv");
}

/* First kept: of two files, the second stays as it is, and what it shares with training is told. */
static void duplicates_of_test_rows_are_told(void **state)
{
    (void)state;
    write_file("a.csv", "a,y\n1,u\n2,v\n1,u\n3,u\n4,v\n5,u\n6,v\n7,u\n8,v\n");
    write_file("b.csv", "a,y\n1,u\n1,u\n99,v\n");
    struct dataset dataset =
        load_files("{'path': 'a.csv', 'test_path': 'b.csv', 'target': 'y', 'deduplicate': true}");
    assert_int_equal(dataset.rows[SPLIT_TRAIN] + dataset.rows[SPLIT_VALIDATION], 8);
    assert_int_equal(dataset.rows[SPLIT_TEST], 3);
    assert_true(has_note(&dataset, "2 rows are equal to an earlier one in every column"));
    dataset_release(&dataset);
    forget("a.csv", "b.csv");
}

/* -0 and 0, 1 and 1.0, two ways to say missing: equal values, however written. */
static void equal_however_written(void **state)
{
    (void)state;
    write_file("a.csv", "a,b,y\n0,1,u\n-0,1.0,u\n3,NA,v\n3.0,,v\n5,2,u\n6,3,v\n7,4,u\n8,5,v\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y', 'deduplicate': true}");
    assert_int_equal(all_rows(&dataset), 6);
    dataset_release(&dataset);
    forget("a.csv");
}

static void quirk_3_and_4_lines(void **state)
{
    (void)state;
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    for (int e = 0; e < 4; e++) { /* the last time, all of them mixed */
        char text[600];
        int size = snprintf(text, sizeof text, "a,y%s", ends[e % 3]);
        for (int i = 0; i < 12; i++) {
            size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s%s", i, i % 2 ? "v" : "u",
                             i == 11 ? "" : ends[e == 3 ? i % 2 : e]);
            if (i == 5)
                size += snprintf(text + size, sizeof text - (size_t)size, "%s%s", ends[e % 3], ends[e % 3]);
        }
        for (int blanks = 0; blanks < 2; blanks++) {
            write_file("a.csv", text);
            struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y'}");
            assert_int_equal(all_rows(&dataset), 12);
            assert_int_equal(dataset.classes, 2);
            dataset_release(&dataset);
            size += snprintf(text + size, sizeof text - (size_t)size, "%s%s , %s", ends[e % 3], ends[e % 3],
                             ends[e % 3]);
        }
    }
    forget("a.csv");
}

/* Ragged rows are errors with their lines; a comment or a metadata line first, and a footer, are seen to. */
static void quirk_20_ragged_rows(void **state)
{
    (void)state;
    write_file("a.csv", "a,b,y\n1,2,u\n3,v\n5,6,v\n7,8,9,u\n9,1,u\n2,2,v\n");
    files_refused("{'path': 'a.csv', 'target': 'y'}", "2 rows with another number of fields",
                  "a.csv:3: found 2 fields, expected 3", "a.csv:5: found 4 fields");
    write_file("a.csv", "# made by hand\na,b,y\n1,2,u\n3,4,v\n5,6,v\n7,8,u\n9,1,u\n2,2,v\n");
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y'}");
    assert_int_equal(all_rows(&dataset), 6);
    dataset_release(&dataset);
    forget("a.csv");
}

static void quirk_25_not_the_data(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *words, *remedy;
    } impostors[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", 63, "Git LFS", "git lfs pull"},
        {"\n<!DOCTYPE html><html>", 22, "web page", "download the file itself"},
        {"<html>", 6, "web page", "download"},
        {"PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0x.npy", 35, "NumPy archive",
         "numpy.save"},
        {"PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml", 49,
         "spreadsheet", "save the sheet as CSV"},
        {"PK\3\4", 4, "zip archive", "unpack"},
        {"\x89HDF\r\n\x1a\n", 8, "HDF5", "numpy.save"},
        {"PAR1....", 8, "Parquet", "CSV"},
        {"ARROW1\0\0", 8, "Arrow", "CSV"},
        {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8, ".xls", "CSV"},
        {"\x80\x04\x95\x00", 4, "pickle", "numpy.save"},
        {"BZh91AY", 7, "bzip2", "gzip"},
        {"\xfd"
         "7zXZ\0",
         6, "xz", "gzip"},
        {"\xff\xfe"
         "a\0",
         4, "UTF-16", "UTF-8"},
        {"{\"a\": [1, 2]}", 13, "JSON", "CSV"},
        {"[{\"a\": 1}, {\"a\": 2}]", 20, "JSON", "CSV"},
        {"@relation iris\n", 15, "ARFF", "CSV"},
        {"\x89PNG\r\n\x1a\n", 8, "one image", "IDX or NPY"},
        {"a,b\n1,\0\n", 8, "zero bytes", "no IDX or NPY"},
        {"", 0, "empty", "a.csv"},
    };
    for (size_t i = 0; i < sizeof impostors / sizeof *impostors; i++) {
        write_file_bytes("a.csv", impostors[i].bytes, impostors[i].size);
        files_refused("{'path': 'a.csv', 'target': 0}", impostors[i].words, impostors[i].remedy);
    }
    char tar[600] = "table.csv";
    memcpy(tar + 257, "ustar", 5);
    write_file_bytes("a.csv", tar, sizeof tar);
    files_refused("{'path': 'a.csv', 'target': 0}", "tar archive", "unpack");
    forget("a.csv");
}

/* 5,001 columns, and a name and a text of 3,000 characters. */
static void quirk_25_wide_tables_and_long_fields(void **state)
{
    (void)state;
    enum { COLUMNS = 5001, ROWS = 12, LONG = 3000 };
    size_t room = (size_t)COLUMNS * (ROWS + 2) * 8 + 3 * (ROWS + 2) * LONG, size = 0;
    char *text = malloc(room), *field = malloc(LONG + 1);
    assert_true(text && field);
    memset(field, 'x', LONG);
    field[LONG] = 0;
    for (int c = 0; c + 2 < COLUMNS; c++)
        size += (size_t)snprintf(text + size, room - size, "c%d,", c);
    size += (size_t)snprintf(text + size, room - size, "%s,y\n", field);
    for (int row = 0; row < ROWS; row++) {
        for (int c = 0; c + 2 < COLUMNS; c++)
            size += (size_t)snprintf(text + size, room - size, "%d,", (row * 7 + c) % 13);
        size += (size_t)snprintf(text + size, room - size, "\"%s%d\",%d\n", field, row % 3, row % 2);
    }
    write_file("a.csv", text);
    struct dataset dataset = load_files("{'path': 'a.csv', 'target': 'y'}");
    assert_int_equal(all_rows(&dataset), ROWS);
    assert_int_equal(dataset.features, COLUMNS - 2 + 3);
    dataset_release(&dataset);
    free(text);
    free(field);
    forget("a.csv");
}

static void the_format_is_decided(void **state)
{
    (void)state;
    write_file("a.csv", "1 1:2\n0 1:3\n1 1:4\n0 1:5\n1 1:6\n0 1:7\n");
    struct dataset dataset = load_files("{'path': 'a.csv'}");
    assert_int_equal(dataset.features, 1);
    dataset_release(&dataset);
    /* As a table it has a column of texts. */
    dataset = load_files("{'path': 'a.csv', 'format': 'csv', 'target': 0, 'test': 0}");
    assert_int_equal(dataset.features, dataset.rows[SPLIT_TRAIN]);
    dataset_release(&dataset);
    files_refused("{'path': 'a.csv', 'format': 'table', 'target': 0}", "data.format", "\"table\"");
    write_file("a.csv", "0 a:1\n1 1:2\n");
    files_refused("{'path': 'a.csv', 'format': 'libsvm'}", "a.csv:1: found 'a:1'");
    forget("a.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quirk_24_duplicates_are_counted),
        cmocka_unit_test(quirk_24_duplicates_are_dropped),
        cmocka_unit_test(duplicates_of_test_rows_are_told),
        cmocka_unit_test(equal_however_written),
        cmocka_unit_test(quirk_3_and_4_lines),
        cmocka_unit_test(quirk_20_ragged_rows),
        cmocka_unit_test(quirk_25_not_the_data),
        cmocka_unit_test(quirk_25_wide_tables_and_long_fields),
        cmocka_unit_test(the_format_is_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
