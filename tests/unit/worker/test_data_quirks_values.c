/* What cells and classes mean in table files in the wild, one test a quirk. */
#include "tests/unit/worker/quirks_fixture.h"

#include <math.h>

/* Digits in groups are numbers only where nothing says that they name something. */
static void quirk_8_telephone_numbers_are_texts(void **state)
{
    (void)state;
    static const char *const codes[][2] = {
        {"555 123 456", "555 123 999"}, {"+49 171 234", "+1 555 123"}, {"555 123", "555 124"}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char text[200];
        snprintf(text, sizeof text, "n,c,y\n0,%s,a\n1,%s,b\n2,%s,a\n3,%s,b\n4,%s,a\n5,%s,b\n", codes[i][0],
                 codes[i][1], codes[i][0], codes[i][1], codes[i][1], codes[i][0]);
        struct dataset dataset = load_text(text, "\"y\"", RAW);
        assert_true(is_in(&dataset, 0, "c", codes[i][0]) && is_in(&dataset, 1, "c", codes[i][1]));
        assert_true(has_note(&dataset, "took for texts 1 column of digits in groups of three"));
        dataset_release(&dataset);
    }
    /* Lengths that differ, a short first group, plain numbers among them, decimals, no-break blanks. */
    check_column("n,c,y\n0,555 123,a\n1,1 234 567,b\n2,100 200 300,a\n", "between thousands: c",
                 NUMBERS(555123, 1234567, 100200300));
    check_column("n,c,y\n0,1 234,a\n1,9 999,b\n2,5 000,a\n", "between thousands: c",
                 NUMBERS(1234, 9999, 5000));
    check_column("n,c,y\n0,555 123,a\n1,999 000,b\n2,7,a\n", "between thousands: c",
                 NUMBERS(555123, 999000, 7));
    check_column("n,c,y\n0,555 123.5,a\n1,999 000.5,b\n2,100 000.5,a\n", "between thousands: c",
                 NUMBERS(555123.5, 999000.5, 100000.5));
    check_column("n,c,y\n0,555\xc2\xa0"
                 "123,a\n1,999\xc2\xa0"
                 "000,b\n2,100\xc2\xa0"
                 "000,a\n",
                 "between thousands: c", NUMBERS(555123, 999000, 100000));
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
                         : n % 4 == 1 ? "999.00"
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
    const json_t *saved = json_object_get(dataset.preprocessing, "missing"); /* a later prediction needs it */
    assert_int_equal(json_integer_value(json_array_get(saved, 0)), -999);
    assert_string_equal(json_string_value(json_array_get(saved, 1)), "999");
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
        cmocka_unit_test(quirk_8_telephone_numbers_are_texts),
        cmocka_unit_test(quirk_8_thousands_currency_percent),
        cmocka_unit_test(quirk_12_missing),
        cmocka_unit_test(quirk_13_numbers_that_mean_missing),
        cmocka_unit_test(quirk_14_texts_far_down_a_column_of_numbers),
        cmocka_unit_test(quirk_15_infinity),
        cmocka_unit_test(quirk_16_spellings_of_numbers),
        cmocka_unit_test(quirk_17_codes_are_texts),
        cmocka_unit_test(quirk_18_empty_and_constant_columns),
        cmocka_unit_test(quirk_22_classes_however_written),
        cmocka_unit_test(quirk_23_rare_and_unbalanced),
        cmocka_unit_test(quirk_25_integers_beyond_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
