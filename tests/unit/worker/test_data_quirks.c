/* What table files are like in the wild, one test a quirk: what is loaded, to the value. Every table has a
 * column `n` that names its rows 0, 1, 2, ..., and numbers stay as they are (preprocess: none). */
#include "tests/unit/worker/data_fixture.h"

#include <math.h>

#define RAW "\"preprocess\": \"none\", \"test\": 0"

static const json_t *feature_at(const struct dataset *dataset, int64_t f)
{
    return json_array_get(json_object_get(dataset->preprocessing, "features"), (size_t)f);
}

/* The feature called `name`; of a column of texts the one for `category`. */
static int64_t feature_of(const struct dataset *dataset, const char *name, const char *category)
{
    for (int64_t f = 0; f < dataset->features; f++) {
        const json_t *feature = feature_at(dataset, f);
        const char *text = json_get_string(feature, "category", NULL);
        bool same = category ? text && !strcmp(text, category) : !text;
        if (same && !strcmp(json_get_string(feature, "name", ""), name))
            return f;
    }
    fail_msg("no feature %s %s", name, category ? category : "");
    return -1;
}

struct row {
    enum split split;
    int64_t at;
};

static struct row row_of(const struct dataset *dataset, int n)
{
    int64_t f = feature_of(dataset, "n", NULL);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < dataset->rows[split]; i++)
            if (dataset->x[split][i * dataset->features + f] == (float)n)
                return (struct row){(enum split)split, i};
    fail_msg("no row %d", n);
    return (struct row){0};
}

static double value(const struct dataset *dataset, int n, const char *name)
{
    struct row row = row_of(dataset, n);
    return dataset->x[row.split][row.at * dataset->features + feature_of(dataset, name, NULL)];
}

static bool is_in(const struct dataset *dataset, int n, const char *name, const char *category)
{
    struct row row = row_of(dataset, n);
    return dataset->x[row.split][row.at * dataset->features + feature_of(dataset, name, category)] == 1;
}

static const char *class_of(const struct dataset *dataset, int n)
{
    struct row row = row_of(dataset, n);
    return class_name(dataset, dataset->label[row.split][row.at]);
}

static void check_values(const struct dataset *dataset, const char *name, int count, const double *expected)
{
    for (int n = 0; n < count; n++) {
        double found = value(dataset, n, name);
        if (found != (double)(float)expected[n])
            fail_msg("%s of row %d: %.9g, expected %.9g", name, n, found, expected[n]);
    }
}

static void check_note(const struct dataset *dataset, const char *words)
{
    if (has_note(dataset, words))
        return;
    char *notes = json_canonical(dataset->notes);
    fail_msg("no note \"%s\" in %s", words, notes);
}

/* Loads, compares column c with the numbers given, and expects a note (NULL: of no kind). Three rows are
 * written twice, since two classes need four. */
static void check_column(const char *text, const char *note, int count, const double *expected)
{
    char again[2000];
    const char *body = count < 4 ? strstr(text, "y\n") : NULL;
    snprintf(again, sizeof again, "%s%s", text, body ? body + 2 : "");
    struct dataset dataset = load_text(again, "\"y\"", RAW);
    assert_int_equal(all_rows(&dataset), count < 4 ? 2 * count : count);
    check_values(&dataset, "c", count, expected);
    if (note)
        check_note(&dataset, note);
    dataset_release(&dataset);
}

#define NUMBERS(...)                                                                                         \
    (sizeof(double[]){__VA_ARGS__} / sizeof(double)), (double[])                                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static void quirk_1_header_or_none(void **state)
{
    (void)state;
    struct dataset dataset = load_text("n,c,y\n0,5,a\n1,6,b\n2,7,a\n3,8,b\n", "-1", RAW);
    check_note(&dataset, "the first row is a header (\"n\"...), since words stand above columns of numbers");
    assert_int_equal(all_rows(&dataset), 4);
    dataset_release(&dataset);
    dataset = load_text("0,5,a\n1,6,b\n2,7,a\n3,8,b\n4,9,a\n", "-1", RAW);
    check_note(&dataset, "the first row is data (\"0\"...), since numbers stand above columns of numbers");
    assert_int_equal(all_rows(&dataset), 5);
    dataset_release(&dataset);
    dataset = load_text("k,y\np,a\nq,b\np,a\nq,b\np,a\nq,b\n", "-1", RAW);
    check_note(&dataset, "none of its texts comes again below; a guess");
    assert_int_equal(all_rows(&dataset), 6);
    dataset_release(&dataset);
    /* A header of numbers is told by the name among them; or the spec says it. */
    const char *years = "2019,2020,y\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n";
    dataset = load_text(years, "-1", RAW);
    assert_int_equal(all_rows(&dataset), 4);
    assert_string_equal(feature_name(&dataset, 0), "2019");
    dataset_release(&dataset);
    dataset = load_text("2019,2020,5\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n", "-1", RAW ", \"header\": true");
    assert_int_equal(all_rows(&dataset), 4);
    assert_string_equal(feature_name(&dataset, 1), "2020");
    dataset_release(&dataset);
}

static void quirk_2_unnamed_index(void **state)
{
    (void)state;
    static const char *const first[] = {",n,y\n", "\"\",n,y\n", "Unnamed: 0,n,y\n", "n,y\n"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s1,0,a\n2,1,b\n3,2,a\n4,3,b\n5,4,a\n", first[i]);
        struct dataset dataset = load_text(text, "\"y\"", RAW);
        assert_int_equal(dataset.features, 1);
        check_note(&dataset, "dropped 1 column that only count the rows");
        assert_string_equal(class_of(&dataset, 3), "b");
        dataset_release(&dataset);
    }
    /* An unnamed column that does not count them is a feature. */
    struct dataset dataset = load_text(",n,y\n3,0,a\n1,1,b\n2,2,a\n4,3,b\n", "\"y\"", RAW);
    assert_int_equal(dataset.features, 2);
    assert_true(value(&dataset, 0, "column_0") == 3);
    dataset_release(&dataset);
}

static void quirk_5_byte_order_mark_and_character_sets(void **state)
{
    (void)state;
    check_column("\xef\xbb\xbfn,c,y\n0,5,a\n1,6,b\n2,7,a\n", NULL, NUMBERS(5, 6, 7));
    /* Latin-1: 0xe9 is U+00E9; Windows-1252: 0x80 is the euro sign. */
    struct dataset dataset =
        load_text("n,c,y\n0,caf\xe9,a\n1,x,b\n2,caf\xe9,a\n3,x,b\n4,caf\xe9,a\n", "\"y\"", RAW);
    check_note(&dataset, ".csv:2: not UTF-8; read as Latin-1");
    assert_true(is_in(&dataset, 2, "c", "caf\xc3\xa9"));
    dataset_release(&dataset);
    check_column("n,c,y\n0,\x80\x35,a\n1,6\xa0\x80,b\n2,\x80 7,a\n", "with the sign of a currency: c",
                 NUMBERS(5, 6, 7));
    /* Damaged UTF-8 stays what it is. */
    dataset = load_text("n,c,y\n0,\xc3\xa9,a\n1,\xff,b\n2,\xc3\xa9,a\n3,\xff,b\n", "\"y\"", RAW);
    check_note(&dataset, ".csv:3: not UTF-8; each byte that is no character became U+FFFD");
    assert_true(is_in(&dataset, 3, "c", "\xef\xbf\xbd"));
    dataset_release(&dataset);
    /* A no-break blank around a field, and a Unicode minus. */
    check_column("n,c,y\n0,\xc2\xa0"
                 "5,a\n1,\xe2\x88\x92"
                 "6,b\n2,7\xc2\xa0,a\n",
                 NULL, NUMBERS(5, -6, 7));
}

static void quirk_6_delimiters(void **state)
{
    (void)state;
    check_column("n\tc\ty\n0\t5\ta, b\n1\t6\tb; c\n2\t7\ta, b\n", NULL, NUMBERS(5, 6, 7));
    check_column("n;c;y\n0;5;a\n1;6;b\n2;7;a\n", NULL, NUMBERS(5, 6, 7));
    check_column("  n   c y\n  0   5 a\n 1 6   b\n2\t7 a  \n", NULL, NUMBERS(5, 6, 7));
    check_column("sep=;\nn;c;y\n0;5;a\n1;6;b\n2;7;a\n", NULL, NUMBERS(5, 6, 7));
}

static void quirk_7_decimal_comma(void **state)
{
    (void)state;
    check_column("n;c;y\n0;7,4;a\n1;-0,5;b\n2;3;a\n", NULL, NUMBERS(7.4, -0.5, 3));
    /* Points between thousands, once commas are seen to be decimal anywhere in the table. */
    check_column("n;c;z;y\n0;1.234;7,4;a\n1;999;1,5;b\n2;1.000;2;a\n", "points stand between thousands",
                 NUMBERS(1234, 999, 1000));
    check_column("n;c;y\n0;1.234.567,5;a\n1;12.345;b\n2;1,25;a\n", "points stand between thousands",
                 NUMBERS(1234567.5, 12345, 1.25));
    /* Without that, or beside other points, they are decimal. */
    check_column("n;c;y\n0;1.001;a\n1;0.994;b\n2;1.234;a\n", NULL, NUMBERS(1.001, 0.994, 1.234));
    check_column("n;c;z;y\n0;1.234;0.5;a\n1;2.345;1,5;b\n2;3;1;a\n", NULL, NUMBERS(1.234, 2.345, 3));
    /* Other delimiters: the whole column decides. */
    check_column("n\tc\ty\n0\t7,4\ta\n1\t1.234,5\tb\n2\t3\ta\n", "with decimal commas: c",
                 NUMBERS(7.4, 1234.5, 3));
}

static void quirk_8_thousands_currency_percent(void **state)
{
    (void)state;
    check_column("n,c,y\n0,\"1,234\",a\n1,\"1,234,567.5\",b\n2,12,a\n", "separators between thousands: c",
                 NUMBERS(1234, 1234567.5, 12));
    check_column("n,c,y\n0,$5,a\n1,-$7.50,b\n2,\"$1,000\",a\n3,$ 3,b\n", "sign of a currency: c",
                 NUMBERS(5, -7.5, 1000, 3));
    check_column("n;c;y\n0;7,50 \xe2\x82\xac;a\n1;1.000 \xe2\x82\xac;b\n2;3 \xe2\x82\xac;a\n",
                 "sign of a currency: c", NUMBERS(7.5, 1000, 3));
    check_column("n,c,y\n0,12%,a\n1,0.5 %,b\n2,-3%,a\n", "in percent (12% is 12): c", NUMBERS(12, 0.5, -3));
    check_column("n,c,y\n0,1\xc2\xa0"
                 "234,a\n1,12\xe2\x80\xaf"
                 "000,b\n2,7,a\n",
                 "between thousands: c", NUMBERS(1234, 12000, 7));
    /* Two currencies, or percent beside plain numbers, are no one unit: texts. */
    struct dataset dataset = load_text("n,c,y\n0,$5,a\n1,\xe2\x82\xac"
                                       "5,b\n2,$5,a\n3,$5,b\n4,\xe2\x82\xac"
                                       "5,a\n5,\xe2\x82\xac"
                                       "5,b\n",
                                       "\"y\"", RAW);
    assert_true(is_in(&dataset, 2, "c", "$5") && is_in(&dataset, 4, "c",
                                                       "\xe2\x82\xac"
                                                       "5"));
    dataset_release(&dataset);
    dataset = load_text("n,c,y\n0,12%,a\n1,0.12,b\n2,12%,a\n3,0.12,b\n", "\"y\"", RAW);
    assert_true(is_in(&dataset, 0, "c", "12%") && is_in(&dataset, 1, "c", "0.12"));
    dataset_release(&dataset);
    /* One that does not fit among many is named. */
    refused("n,c,y\n0,$5,a\n1,$6,b\n2,$7,a\n3,$8,b\n4,free,a\n5,$9,b\n", "\"y\"", RAW,
            ":6:2: found 'free', expected a number (column \"c\")", "data.missing");
}

static void quirk_9_quotes(void **state)
{
    (void)state;
    struct dataset dataset = load_text(
        "n,c,y\n0,\"a, \"\"b\"\"\",\"p\nq\"\n1,x,z\n2,\"a, \"\"b\"\"\",\"p\nq\"\n3,x,z\n", "\"y\"", RAW);
    assert_true(is_in(&dataset, 0, "c", "a, \"b\"") && is_in(&dataset, 2, "c", "a, \"b\""));
    assert_string_equal(class_of(&dataset, 0), "p\nq");
    dataset_release(&dataset);
}

static void quirk_10_single_quotes(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("n,c,y\n0,'a, b','-1'\n1,'x','1'\n2,'a, b','-1'\n3,'x','1'\n4,'a, b','-1'\n", "\"y\"", RAW);
    assert_true(is_in(&dataset, 2, "c", "a, b"));
    assert_string_equal(class_of(&dataset, 0), "-1");
    assert_string_equal(class_of(&dataset, 3), "1");
    assert_int_equal(dataset.classes, 2);
    dataset_release(&dataset);
    /* Beside double quotes, and apostrophes that are none. */
    dataset =
        load_text("n,c,y\n0,\"a, b\",'-1'\n1,rock 'n' roll,'1'\n2,'tis,'-1'\n3,\"a, b\",'1'\n4,'tis,'1'\n"
                  "5,rock 'n' roll,'-1'\n",
                  "\"y\"", RAW ", \"validation\": 0.2");
    assert_string_equal(class_of(&dataset, 2), "-1");
    assert_true(is_in(&dataset, 2, "c", "'tis") && is_in(&dataset, 0, "c", "a, b"));
    dataset_release(&dataset);
}

static void quirk_11_blanks_after_commas(void **state)
{
    (void)state;
    struct dataset dataset = load_text(
        "0, Private, <=50K\n1, ?, >50K\n2, Private, <=50K\n3, ?, >50K\n4, Private, <=50K\n", "-1", RAW);
    assert_int_equal(dataset.classes, 2);
    assert_string_equal(class_name(&dataset, 0), "<=50K");
    assert_string_equal(json_get_string(feature_at(&dataset, 1), "category", ""), "?");
    assert_string_equal(json_get_string(feature_at(&dataset, 2), "category", ""), "Private");
    dataset_release(&dataset);
}

static void quirk_12_missing(void **state)
{
    (void)state;
    static const char *const missing[] = {"",     "?",    "NA", "N/A",     "n/a",     "nan",
                                          "null", "None", "-",  "unknown", "Unknown", "\"\""};
    const int kinds = sizeof missing / sizeof *missing, rows = 3 * kinds;
    char text[2000];
    int size = snprintf(text, sizeof text, "n,c,k,y\n");
    for (int n = 0; n < rows; n++) {
        char number[20];
        snprintf(number, sizeof number, "%d", n % 2 ? 10 : 20);
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s,%s\n", n,
                         n % 3 ? number : missing[n / 3], n % 4 ? "s" : "NA", n % 2 ? "a" : "b");
    }
    struct dataset dataset = load_text(text, "\"y\"", RAW);
    double sum = 0, present = 0;
    for (int n = 0; n < rows; n++) {
        bool gap = n % 3 == 0;
        assert_true(value(&dataset, n, "c missing") == (gap ? 1 : 0));
        if (!gap)
            assert_true(value(&dataset, n, "c") == (n % 2 ? 10 : 20));
        if (!gap && row_of(&dataset, n).split == SPLIT_TRAIN) {
            sum += n % 2 ? 10 : 20;
            present++;
        }
        assert_true(is_in(&dataset, n, "k", "NA") == (n % 4 == 0));
    }
    assert_true(fabs(value(&dataset, 0, "c") - sum / present) < 1e-5); /* the mean of training */
    check_note(&dataset, "filled in 1 column with numbers missing in training");
    dataset_release(&dataset);
    /* A label is never made up. */
    refused("n,y\n0,a\n1,NA\n2,b\n3,a\n", "\"y\"", RAW, ":3:2: found 'NA', expected a label",
            "leave them out");
}

static void quirk_13_numbers_that_mean_missing(void **state)
{
    (void)state;
    char text[2000];
    int size = snprintf(text, sizeof text, "n,c,y\n");
    for (int n = 0; n < 40; n++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s\n", n,
                         n % 4 == 0   ? "-999.0"
                         : n % 4 == 1 ? "999"
                                      : "5",
                         n % 2 ? "a" : "b");
    struct dataset dataset = load_text(text, "\"y\"", RAW);
    assert_true(value(&dataset, 0, "c") == -999 && value(&dataset, 1, "c") == 999); /* unless told */
    dataset_release(&dataset);
    dataset = load_text(text, "\"y\"", RAW ", \"missing\": -999");
    assert_true(value(&dataset, 0, "c missing") == 1 && value(&dataset, 1, "c missing") == 0);
    dataset_release(&dataset);
    dataset = load_text(text, "\"y\"", RAW ", \"missing\": [-999, \"999\"]");
    assert_true(value(&dataset, 0, "c missing") == 1 && value(&dataset, 1, "c missing") == 1);
    assert_true(value(&dataset, 2, "c missing") == 0);
    dataset_release(&dataset);
}

static void quirk_14_texts_far_down_a_column_of_numbers(void **state)
{
    (void)state;
    static char text[40000];
    int size = snprintf(text, sizeof text, "n,c,y\n");
    for (int n = 0; n < 2000; n++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s\n", n,
                         n == 1500   ? "broken"
                         : n == 1700 ? "1.2.3"
                                     : "4.5",
                         n % 2 ? "a" : "b");
    refused(text, "\"y\"", RAW, "2 cells cannot be used",
            ":1502:2: found 'broken', expected a number (column \"c\")", ":1702:2: found '1.2.3'",
            "data.missing");
    write_bytes(text, (size_t)size);
    struct dataset dataset = load_options("\"y\"", RAW ", \"missing\": [\"broken\", \"1.2.3\"]");
    assert_true(value(&dataset, 0, "n") == 0);
    dataset_release(&dataset);
}

static void quirk_15_infinity(void **state)
{
    (void)state;
    const char *text = "n,c,y\n0,5,a\n1,inf,b\n2,7,a\n3,8,b\n4,-inf,a\n5,9,b\n6,1,a\n7,2,b\n8,5,a\n9,6,b\n";
    refused(text, "\"y\"", RAW, ":3:2: found 'inf', expected a number", ":6:2: found '-inf'", "data.missing");
    struct dataset dataset = load_text(text, "\"y\"", RAW ", \"missing\": [\"inf\", \"-inf\"]");
    assert_true(value(&dataset, 0, "c") == 5 && value(&dataset, 9, "c") == 6);
    dataset_release(&dataset);
}

static void quirk_16_spellings_of_numbers(void **state)
{
    (void)state;
    check_column("n,c,y\n0,1e5,a\n1,.5,b\n2,1.,a\n3,+1,b\n4,-2.5E-3,a\n", NULL,
                 NUMBERS(1e5, .5, 1, 1, -2.5e-3));
}

static void quirk_17_codes_are_texts(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("n,c,y\n0,00000,a\n1,00501,b\n2,00000,a\n3,10001,b\n4,00501,a\n5,10001,b\n", "\"y\"", RAW);
    assert_true(is_in(&dataset, 0, "c", "00000") && is_in(&dataset, 1, "c", "00501"));
    assert_true(is_in(&dataset, 3, "c", "10001") && !is_in(&dataset, 3, "c", "00501"));
    dataset_release(&dataset);
}

static void quirk_18_empty_and_constant_columns(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("n,e,k,t,y\n0,,7,s,a\n1,NA,7,s,b\n2,,7.0,s,a\n3,?,7,s,b\n", "\"y\"", RAW);
    assert_int_equal(dataset.features, 1);
    check_note(&dataset, "dropped 1 column without values: e");
    check_note(&dataset, "dropped 2 columns constant in training: k, t");
    dataset_release(&dataset);
    /* Constant where it is known at all: only whether it is known is left to learn from. */
    char text[1000];
    int size = snprintf(text, sizeof text, "n,c,y\n");
    for (int n = 0; n < 20; n++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s\n", n, n % 2 ? "7" : "",
                         n % 3 ? "a" : "b");
    dataset = load_text(text, "\"y\"", RAW);
    assert_int_equal(dataset.features, 2);
    assert_true(value(&dataset, 0, "c missing") == 1 && value(&dataset, 1, "c missing") == 0);
    dataset_release(&dataset);
}

static void quirk_19_names_of_columns(void **state)
{
    (void)state;
    struct dataset dataset =
        load_text("n, c ,\"c\",'c',c\n0,1,2,3,a\n1,2,3,5,b\n2,3,5,8,a\n3,4,4,4,b\n", "\"c.4\"", RAW);
    assert_true(value(&dataset, 2, "c") == 3 && value(&dataset, 2, "c.2") == 5 &&
                value(&dataset, 2, "c.3") == 8);
    assert_string_equal(class_of(&dataset, 2), "a");
    check_note(&dataset, "another column is called \"c\"; column 3 is \"c.2\" here");
    dataset_release(&dataset);
}

static void quirk_22_classes_however_written(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"0", "1"},        {"1", "2"},    {"-1", "1"},
                                           {"False", "True"}, {"no", "yes"}, {"bad", "good"},
                                           {"<=50K", ">50K"}, {"0.0", "1.0"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char text[400];
        int size = snprintf(text, sizeof text, "n,y\n");
        for (int n = 0; n < 12; n++)
            size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s\n", n, pairs[i][n % 3 == 0]);
        struct dataset dataset = load_text(text, "\"y\"", RAW);
        assert_int_equal(dataset.task, TASK_CLASSIFICATION);
        assert_int_equal(dataset.classes, 2);
        for (int n = 0; n < 12; n++) {
            struct row row = row_of(&dataset, n);
            assert_int_equal(dataset.label[row.split][row.at], n % 3 == 0);
        }
        dataset_release(&dataset);
    }
    struct dataset dataset = load_text(
        "n,y\n0,<=50K\n1,>50K\n2,<=50K.\n3,>50K.\n4,<=50K\n5,>50K\n6,<=50K.\n7,>50K.\n", "\"y\"", RAW);
    check_note(&dataset, "classes '<=50K' and '<=50K.' differ in spelling only");
    dataset_release(&dataset);
    refused("n,y\n0,9007199254740992\n1,9007199254740993\n2,9007199254740992\n3,9007199254740993\n", "\"y\"",
            RAW ", \"task\": \"classification\"", "integers beyond 2^53, which are not told apart");
}

static void quirk_23_rare_and_unbalanced(void **state)
{
    (void)state;
    static char text[20000];
    int size = snprintf(text, sizeof text, "n,k,y\n");
    for (int n = 0; n < 200; n++)
        size += snprintf(text + size, sizeof text - (size_t)size, "%d,%s,%s\n", n,
                         n == 17 ? "once"
                         : n % 2 ? "p"
                                 : "q",
                         n % 50 == 0 ? "yes" : "no");
    struct dataset dataset = load_text(text, "\"y\"", RAW);
    check_note(&dataset,
               "class 'no' has 196 rows, 'yes' 4: far from balanced; consider class_weight: balanced");
    bool trained = row_of(&dataset, 17).split == SPLIT_TRAIN;
    check_note(&dataset, trained ? "with texts that fewer than 3 training rows have: k (1)"
                                 : "with texts that no training row has, taken for none of the known: k (1)");
    if (!trained)
        assert_true(!is_in(&dataset, 17, "k", "p") && !is_in(&dataset, 17, "k", "q"));
    dataset_release(&dataset);
    dataset = load_text("n,y\n0,a\n1,a\n2,b\n3,a\n4,a\n5,b\n6,a\n7,c\n", "\"y\"", RAW);
    check_note(&dataset, "2 classes have less than 3 rows, so not every part of the split has one: 'b', 'c'");
    dataset_release(&dataset);
}

static void quirk_20_lines_that_are_no_rows(void **state)
{
    (void)state;
    check_column("# made by hand\nReport of May\n\nn,c,y\n0,5,a\n1,6,b\n# half way\n2,7,a\n3,8,b\nTotal\n",
                 "left out 2 lines before the first row", NUMBERS(5, 6, 7, 8));
    check_column("n,c,y\n0,5,a\n1,6,b\n2,7,a\n3,8,b\nTotal of four\n",
                 "left out 1 line behind the last row, from line 6 (\"Total of four\")", NUMBERS(5, 6, 7, 8));
    check_column("# n c y\n0 5 a\n1 6 b\n2 7 a\n3 8 b\n", NULL, NUMBERS(5, 6, 7, 8));
    check_column("n,c,y\n0,5,a,\n1,6,b,,\n2,7,a,\n3,8,b,\n",
                 "left out empty fields behind the last column (4 rows", NUMBERS(5, 6, 7, 8));
    /* R's names: none for the first column. Its row names count the rows. */
    check_column("\"n\" \"c\" \"y\"\n\"1\" 0 5 \"a\"\n\"2\" 1 6 \"b\"\n\"3\" 2 7 \"a\"\n\"4\" 3 8 \"b\"\n",
                 "the first row has one name too few, so the first column has none", NUMBERS(5, 6, 7, 8));
    /* Where a line of one field is not the last, something else is wrong. */
    refused("n,c,y\n0,5,a\n1,6,b\nx\n2,7,a\n3,8,b\n", "\"y\"", RAW, "1 row with another number of fields",
            ":4: found 1 field, expected 3");
    refused("n,c,y\n0,5,a\n1,6\n2,7,a\n3,8,b\n", "\"y\"", RAW, ":3: found 2 fields, expected 3");
    refused("n,c,y\n0,5,a\n1,6,b\n2,7,a\n3,8", "\"y\"", RAW, ":5: found 2 fields, expected 3");
}

static void quirk_25_integers_beyond_doubles(void **state)
{
    (void)state;
    struct dataset dataset = load_text(
        "n,c,y\n0,9007199254740993,a\n1,9007199254740995,b\n2,12,a\n3,9007199254740993,b\n", "\"y\"", RAW);
    check_note(&dataset, "rounded 1 column of integers beyond 2^53 to double precision: c");
    assert_true(value(&dataset, 0, "c") == (float)9007199254740992.0);
    dataset_release(&dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quirk_1_header_or_none),
        cmocka_unit_test(quirk_2_unnamed_index),
        cmocka_unit_test(quirk_5_byte_order_mark_and_character_sets),
        cmocka_unit_test(quirk_6_delimiters),
        cmocka_unit_test(quirk_7_decimal_comma),
        cmocka_unit_test(quirk_8_thousands_currency_percent),
        cmocka_unit_test(quirk_9_quotes),
        cmocka_unit_test(quirk_10_single_quotes),
        cmocka_unit_test(quirk_11_blanks_after_commas),
        cmocka_unit_test(quirk_12_missing),
        cmocka_unit_test(quirk_13_numbers_that_mean_missing),
        cmocka_unit_test(quirk_14_texts_far_down_a_column_of_numbers),
        cmocka_unit_test(quirk_15_infinity),
        cmocka_unit_test(quirk_16_spellings_of_numbers),
        cmocka_unit_test(quirk_17_codes_are_texts),
        cmocka_unit_test(quirk_18_empty_and_constant_columns),
        cmocka_unit_test(quirk_19_names_of_columns),
        cmocka_unit_test(quirk_20_lines_that_are_no_rows),
        cmocka_unit_test(quirk_22_classes_however_written),
        cmocka_unit_test(quirk_23_rare_and_unbalanced),
        cmocka_unit_test(quirk_25_integers_beyond_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
