/* IDX and NPY arrays: every type of element, both orders of bytes and of indices, shapes, and damage. The
 * bytes are written down by hand from the formats' descriptions. */
#include "tests/unit/worker/data_files_fixture.h"
#include "worker/training/data_array.h"

#define ROWS 12

/* Row i of every table here: features i and 2 i + 1, and label i % 2. */
static void check_rows(const struct dataset *dataset)
{
    int64_t seen = 0;
    assert_int_equal(all_rows(dataset), ROWS);
    assert_int_equal(dataset->classes, 2);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset->rows[split]; i++) {
            double a = value_at(dataset, split, i, "column_0"), b = value_at(dataset, split, i, "column_1");
            int64_t row = llround(a);
            assert_true(fabs(a - (double)row) < 1e-5);
            assert_true(fabs(b - (double)(2 * row + 1)) < 1e-5);
            assert_int_equal(dataset->label[split][i], row % 2);
            seen |= 1 << row;
        }
    assert_int_equal(seen, (1 << ROWS) - 1);
}

static size_t put_header(unsigned char *bytes, unsigned char type, int dimensions, const unsigned *size)
{
    bytes[0] = bytes[1] = 0;
    bytes[2] = type;
    bytes[3] = (unsigned char)dimensions;
    for (int d = 0; d < dimensions; d++)
        for (int k = 0; k < 4; k++)
            bytes[4 + 4 * d + k] = (unsigned char)(size[d] >> (24 - 8 * k));
    return 4 + 4 * (size_t)dimensions;
}

/* A whole number as an element: integers and IEEE 754, in the order asked for. Returns its size. */
static size_t put_number(unsigned char *at, const char *type, bool big_endian, int number)
{
    size_t size = (size_t)(type[1] - '0');
    uint64_t bits = (uint64_t)(int64_t)number;
    float single = (float)number;
    double twice = number;
    if (type[0] == 'f' && size == 8)
        memcpy(&bits, &twice, 8);
    if (type[0] == 'f' && size == 4) {
        uint32_t low;
        memcpy(&low, &single, 4);
        bits = low;
    }
    if (type[0] == 'f' && size == 2) { /* 2^e (1 + m / 1024), exponents from 15 up */
        int exponent = 0;
        while (number >> exponent > 1)
            exponent++;
        bits = number ? (uint64_t)((exponent + 15) << 10 | ((number << (10 - exponent)) & 1023)) : 0;
    }
    for (size_t k = 0; k < size; k++)
        at[big_endian ? size - 1 - k : k] = (unsigned char)(bits >> (8 * k));
    return size;
}

/* (ROWS, 3): features and the label. */
static int cell(int row, int column)
{
    return column == 0 ? row : column == 1 ? 2 * row + 1 : row % 2;
}

static void every_idx_type(void **state)
{
    (void)state;
    static const struct {
        unsigned char code;
        const char *type;
    } types[] = {{8, "u1"}, {9, "i1"}, {11, "i2"}, {12, "i4"}, {13, "f4"}, {14, "f8"}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        unsigned char bytes[1000];
        size_t size = put_header(bytes, types[t].code, 2, (const unsigned[]){ROWS, 3});
        for (int row = 0; row < ROWS; row++)
            for (int c = 0; c < 3; c++)
                size += put_number(bytes + size, types[t].type, true, cell(row, c));
        write_file_bytes("a.idx", bytes, size);
        struct dataset dataset = load_files("{'path': 'a.idx', 'target': -1}");
        check_rows(&dataset);
        dataset_release(&dataset);
    }
    forget("a.idx");
}

static void negative_numbers(void **state)
{
    (void)state;
    static const char *const types[] = {"i1", "i2", "i4", "i8"};
    static const enum element elements[] = {ELEMENT_INT8, ELEMENT_INT16, ELEMENT_INT32, ELEMENT_INT64};
    for (int t = 0; t < 4; t++) {
        unsigned char bytes[8];
        struct error err = {0};
        struct table table;
        put_number(bytes, types[t], true, -5);
        struct array array = {bytes, elements[t], true, false, 1, {1}};
        assert_int_equal(array_to_table(&array, "a", &table, &err), 0);
        assert_true(table.columns[0].number[0] == -5);
        data_table_release(&table);
    }
}

/* binary16 by hand: 0x3c00 is 1, 0xc000 -2, 0x7bff 65504, 0x0001 2^-24, 0x7e00 NaN, 0xfc00 -infinity. */
static void half_precision(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0x01,
                                          0x00, 0x00, 0x7e, 0x00, 0xfc, 0x00, 0x04};
    struct array array = {bytes, ELEMENT_FLOAT16, false, false, 1, {7}};
    struct error err = {0};
    struct table table;
    assert_int_equal(array_to_table(&array, "a", &table, &err), 0);
    const double *x = table.columns[0].number;
    assert_true(x[0] == 1 && x[1] == -2 && x[2] == 65504 && x[3] == 0x1p-24);
    assert_true(isnan(x[4]) && x[5] == -INFINITY && x[6] == 0x1p-14);
    data_table_release(&table);
}

/* (12, 2, 2) images of which row i holds i, 2 i + 1, 0, i % 3; labels in a file of their own. */
static void images_are_flattened(void **state)
{
    (void)state;
    unsigned char bytes[100], labels[100];
    size_t size = put_header(bytes, 8, 3, (const unsigned[]){ROWS, 2, 2});
    size_t labels_size = put_header(labels, 8, 1, (const unsigned[]){ROWS});
    for (int row = 0; row < ROWS; row++) {
        const unsigned char image[] = {(unsigned char)row, (unsigned char)(2 * row + 1), 0,
                                       (unsigned char)(row % 3)};
        memcpy(bytes + size, image, 4);
        size += 4;
        labels[labels_size++] = (unsigned char)(row % 2);
    }
    write_file_bytes("images", bytes, size);
    write_file_bytes("labels", labels, labels_size);
    struct dataset dataset = load_files("{'path': 'images', 'labels': 'labels'}");
    check_rows(&dataset);
    assert_int_equal(dataset.features, 3); /* column_2 is constant */
    assert_int_equal(feature_named(&dataset, "column_2"), -1);
    assert_true(has_note(&dataset, "column_2"));
    dataset_release(&dataset);
    files_refused("{'path': 'images'}", "data.target", "data.labels", "4 columns");
    forget("images", "labels");
}

static void damaged_idx(void **state)
{
    (void)state;
    unsigned char bytes[60] = {0};
    size_t size = put_header(bytes, 8, 2, (const unsigned[]){4, 3});
    write_file_bytes("a.idx", bytes, size + 11);
    files_refused("{'path': 'a.idx', 'target': 0}", "cut off", "4 x 3", "11 bytes");
    write_file_bytes("a.idx", bytes, size + 13);
    files_refused("{'path': 'a.idx', 'target': 0}", "cut off", "13 bytes");
    write_file_bytes("a.idx", bytes, 9);
    files_refused("{'path': 'a.idx', 'target': 0}", "cut off");
    bytes[2] = 7;
    write_file_bytes("a.idx", bytes, size + 12);
    files_refused("{'path': 'a.idx', 'target': 0, 'format': 'idx'}", "no IDX file", "data.format");
    files_refused("{'path': 'a.idx', 'target': 0}", "zero bytes");
    size = put_header(bytes, 8, 2, (const unsigned[]){0, 3});
    write_file_bytes("a.idx", bytes, size);
    files_refused("{'path': 'a.idx', 'target': 0}", "0 x 3", "no rows");
    size = put_header(bytes, 8, 2, (const unsigned[]){0xffffffff, 0xffffffff});
    write_file_bytes("a.idx", bytes, size);
    files_refused("{'path': 'a.idx', 'target': 0}", "4294967295 rows", "at most 2147483647");
    forget("a.idx");
}

/* Magic, version, length, dict, padding, elements. */
static size_t put_npy(unsigned char *bytes, int version, const char *dict)
{
    size_t start = version == 1 ? 10 : 12, length = 118;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[7] = 0;
    memset(bytes + 8, 0, 4);
    bytes[8] = (unsigned char)length;
    memset(bytes + start, ' ', length);
    memcpy(bytes + start, dict, strlen(dict));
    bytes[start + length - 1] = '\n';
    return start + length;
}

static void write_npy(const char *type, bool big_endian, bool fortran, int version)
{
    unsigned char bytes[1000];
    char dict[110];
    snprintf(dict, sizeof dict, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (%d, 3), }",
             type[1] == '1' ? '|'
             : big_endian   ? '>'
                            : '<',
             type, fortran ? "True" : "False", ROWS);
    size_t size = put_npy(bytes, version, dict);
    for (int i = 0; i < 3 * ROWS; i++) {
        int row = fortran ? i % ROWS : i / 3, c = fortran ? i / ROWS : i % 3;
        size += put_number(bytes + size, type, big_endian, cell(row, c));
    }
    write_file_bytes("a.npy", bytes, size);
}

static void every_npy_type_and_order(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int form = 0; form < 4; form++) {
            write_npy(types[t], form & 1, form & 2, 1 + (int)t % 3);
            struct dataset dataset = load_files("{'path': 'a.npy', 'target': 2}");
            check_rows(&dataset);
            dataset_release(&dataset);
        }
    forget("a.npy");
}

/* (4, 2, 3) in Fortran order: element (i, j, k) lies at i + 4 j + 8 k and goes to column 3 j + k. */
static void fortran_order_of_three_dimensions(void **state)
{
    (void)state;
    unsigned char bytes[300];
    struct error err = {0};
    struct array array;
    struct table table;
    size_t size = put_npy(bytes, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (4, 2, 3)}");
    for (int k = 0; k < 3; k++)
        for (int j = 0; j < 2; j++)
            for (int i = 0; i < 4; i++)
                bytes[size++] = (unsigned char)(100 * j + 10 * k + i);
    assert_int_equal(npy_read(&array, (const char *)bytes, size, "a", &err), 0);
    assert_int_equal(array_to_table(&array, "a", &table, &err), 0);
    assert_int_equal(table.column_count, 6);
    for (int c = 0; c < 6; c++)
        for (int i = 0; i < 4; i++)
            assert_true(table.columns[c].number[i] == 100 * (c / 3) + 10 * (c % 3) + i);
    data_table_release(&table);
}

static void booleans_and_missing_numbers(void **state)
{
    (void)state;
    unsigned char bytes[400];
    size_t size = put_npy(bytes, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (12,)}");
    for (int i = 0; i < ROWS; i++)
        bytes[size++] = i % 2;
    write_file_bytes("b.npy", bytes, size);
    size = put_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 1)}");
    for (int i = 0; i < ROWS; i++)
        size += put_number(bytes + size, "f4", false, i);
    memcpy(bytes + size - 4, "\0\0\xc0\x7f", 4); /* NaN */
    write_file_bytes("a.npy", bytes, size);
    struct dataset dataset = load_files("{'path': 'a.npy', 'labels': 'b.npy', 'test': 0}");
    assert_int_equal(dataset.classes, 2);
    assert_string_equal(class_name(&dataset, 1), "1");
    assert_true(has_note(&dataset, "filled in") || has_note(&dataset, "missing"));
    dataset_release(&dataset);
    forget("a.npy", "b.npy");
}

/* float32 has no -99.9, only the number nearest to it; and infinities are no texts here. */
static void what_the_settings_call_missing(void **state)
{
    (void)state;
    const float odd[] = {-99.9f, -1, INFINITY, -INFINITY};
    unsigned char bytes[1000];
    size_t size = put_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 2), }");
    for (int i = 0; i < ROWS; i++) {
        float row[2] = {i % 3 ? (float)i : odd[i / 3], (float)(i % 2)};
        memcpy(bytes + size, row, sizeof row);
        size += sizeof row;
    }
    write_file_bytes("a.npy", bytes, size);
    struct dataset dataset =
        load_files("{'path': 'a.npy', 'target': 1, 'test': 0, 'missing': [-99.9, '-1', 'inf', '-Infinity']}");
    int64_t missing = 0, f = feature_named(&dataset, "column_0 missing");
    assert_true(f >= 0);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset.rows[split]; i++)
            missing += dataset.x[split][i * dataset.features + f] == 1;
    assert_int_equal(missing, 4);
    dataset_release(&dataset);
    files_refused("{'path': 'a.npy', 'target': 1, 'missing': [-99.9, -1, 'inf']}",
                  "a.npy:10:1: found '-Infinity'", "data.missing");
    forget("a.npy");
}

static void arrays_that_are_no_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        const char *words;
    } refused[] = {
        {"{'descr': '<U10', 'fortran_order': False, 'shape': (4,), }", "numpy.unique"},
        {"{'descr': '|S3', 'fortran_order': False, 'shape': (4,), }", "save texts as CSV"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", "save texts as CSV"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (4,), }", "astype"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (4,), }", "astype"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", "each field"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "no dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0), }", "4 x 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, -1), }", "header is damaged"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4,), }", "header is damaged"},
        {"{'descr': '<f4', 'shape': (4,), }", "header is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4", "header is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 9), }", "at most"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2147483647, 2147483647, 9), }", "cut off"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", "5 elements of 4 bytes"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        unsigned char bytes[400];
        size_t size = put_npy(bytes, 1, refused[i].dict);
        memset(bytes + size, 0, 16);
        write_file_bytes("a.npy", bytes, size + 16);
        files_refused("{'path': 'a.npy', 'target': 0}", refused[i].words);
    }
    write_file_bytes("a.npy", "\x93NUMPY\x01\x00\xff\xff{}", 12);
    files_refused("{'path': 'a.npy', 'target': 0}", "header is damaged");
    write_file_bytes("a.npy", "\x93NUMPY\x09\x00\x02\x00{}", 12);
    files_refused("{'path': 'a.npy', 'target': 0}", "header is damaged");
    files_refused("{'path': 'a.npy', 'target': 0, 'format': 'csv'}", "NumPy array", "data.format");
    write_file("a.npy", "1,2\n");
    files_refused("{'path': 'a.npy', 'target': 0, 'format': 'npy'}", "no NPY file");
    forget("a.npy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_idx_type),
        cmocka_unit_test(negative_numbers),
        cmocka_unit_test(half_precision),
        cmocka_unit_test(images_are_flattened),
        cmocka_unit_test(damaged_idx),
        cmocka_unit_test(every_npy_type_and_order),
        cmocka_unit_test(fortran_order_of_three_dimensions),
        cmocka_unit_test(booleans_and_missing_numbers),
        cmocka_unit_test(what_the_settings_call_missing),
        cmocka_unit_test(arrays_that_are_no_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
