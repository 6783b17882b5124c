/* How table files are written in the wild, one test a quirk: header, names, lines, characters, delimiters,
 * quotes. */
#include "tests/unit/worker/quirks_fixture.h"

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
    /* Values seldom rise; a class that comes once is no name then. */
    dataset = load_text("6,3,c\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n5,7,a\n", "-1", RAW);
    assert_int_equal(all_rows(&dataset), 6);
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
    check_column("Report, of May\nn,c,z,y\n0,5,1,a\n1,6,2,b\n2,7,1,a\n3,8,2,b\n",
                 "left out 1 line before the first row", NUMBERS(5, 6, 7, 8));
    refused("n,c,z,y\n0,5,1,a\n1,6,2,b\n2,7,1,a\n3,8,2,b\nSum,26\n", "\"y\"", RAW,
            ":6: found 2 fields, expected 4");
    /* Where a line of one field is not the last, something else is wrong. */
    refused("n,c,y\n0,5,a\n1,6,b\nx\n2,7,a\n3,8,b\n", "\"y\"", RAW, "1 row with another number of fields",
            ":4: found 1 field, expected 3");
    refused("n,c,y\n0,5,a\n1,6\n2,7,a\n3,8,b\n", "\"y\"", RAW, ":3: found 2 fields, expected 3");
    refused("n,c,y\n0,5,a\n1,6,b\n2,7,a\n3,8", "\"y\"", RAW, ":5: found 2 fields, expected 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quirk_1_header_or_none),
        cmocka_unit_test(quirk_2_unnamed_index),
        cmocka_unit_test(quirk_5_byte_order_mark_and_character_sets),
        cmocka_unit_test(quirk_6_delimiters),
        cmocka_unit_test(quirk_7_decimal_comma),
        cmocka_unit_test(quirk_9_quotes),
        cmocka_unit_test(quirk_10_single_quotes),
        cmocka_unit_test(quirk_11_blanks_after_commas),
        cmocka_unit_test(quirk_19_names_of_columns),
        cmocka_unit_test(quirk_20_lines_that_are_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
