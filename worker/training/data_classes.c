/* Ordering, labelling and describing classes; see data_classes.h. */
#include "worker/training/data_classes.h"

#include "base/text.h"
#include "worker/training/data_messages.h"
#include "worker/training/data_sort.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From here on two integers may be the same number in double precision. */
#define INTEGERS_EXACT 9007199254740992.0 /* 2^53 */
/* Fewer rows than this cannot be in training, validation and test. */
#define CLASS_ROWS 3
/* The largest class over the smallest, from which accuracy says more of the largest than of the model. */
#define IMBALANCE 20
/* Classes compared each with each. */
#define COMPARED_CLASSES 100
#define NAMED_CLASSES 5

/* What becomes of the column's dictionary: entries that occur, in the order of their texts. */
struct named {
    const char *text;
    int32_t entry;
};

static int named_compare(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

static int number_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int name_class(struct target *target, const char *text)
{
    char *valid = utf8_repair(text, strlen(text));
    int failed = valid ? json_array_append_new(target->names, json_string(valid)) : -1;
    free(valid);
    return failed;
}

static int label_texts(struct target *target, const struct table *table, const struct column *column)
{
    int32_t entries = column->dictionary.count;
    struct named *named = malloc((size_t)entries * sizeof *named);
    int32_t *label_of = malloc((size_t)entries * sizeof *label_of);
    int failed = named && label_of ? 0 : -1;
    if (!failed) {
        memset(label_of, -1, (size_t)entries * sizeof *label_of);
        int32_t used = 0;
        for (int64_t row = table->first; row < table->rows; row++) {
            int32_t entry = column->text[row];
            if (label_of[entry] >= 0)
                continue;
            label_of[entry] = 0;
            named[used++] = (struct named){dictionary_text(&column->dictionary, entry), entry};
        }
        qsort(named, (size_t)used, sizeof *named, named_compare);
        for (int32_t i = 0; i < used; i++) {
            label_of[named[i].entry] = i;
            failed |= name_class(target, named[i].text);
        }
        for (int64_t row = table->first; row < table->rows; row++)
            target->label[row - table->first] = label_of[column->text[row]];
        target->classes = used;
    }
    free(named);
    free(label_of);
    return failed;
}

static int label_numbers(struct target *target, const struct table *table, const struct column *column)
{
    size_t rows = (size_t)(table->rows - table->first), used = 0;
    double *value = malloc(rows * sizeof *value);
    if (!value)
        return -1;
    memcpy(value, column->number + table->first, rows * sizeof *value);
    numbers_sort(value, (int64_t)rows);
    for (size_t i = 0; i < rows; i++)
        if (i == 0 || value[i] != value[used - 1])
            value[used++] = value[i];
    int failed = 0;
    for (size_t i = 0; i < used; i++) {
        char text[NUMBER_SIZE];
        if (value[i] == floor(value[i]) && fabs(value[i]) < 1e15)
            snprintf(text, sizeof text, "%.0f", value[i] + 0.0);
        else
            number_format(value[i], text);
        failed |= name_class(target, text);
    }
    for (size_t row = 0; row < rows; row++) {
        const double *at =
            bsearch(&column->number[table->first + (int64_t)row], value, used, sizeof *value, number_compare);
        target->label[row] = (int32_t)(at - value);
    }
    target->classes = (int64_t)used;
    free(value);
    return failed;
}

static bool are_exact(const struct table *table, const struct column *column)
{
    for (int64_t row = table->first; row < table->rows; row++)
        if (fabs(column->number[row]) >= INTEGERS_EXACT)
            return false;
    return true;
}

int classes_read(struct target *target, const struct table *table, bool texts, struct error *err)
{
    const struct column *column = &table->columns[target->column];
    if (!texts && !are_exact(table, column))
        return error_set(err, ERROR_USAGE,
                         "%s: target \"%.80s\" has classes that are integers beyond 2^53, which are not told "
                         "apart; a letter before them makes them texts (or data.task: regression?)",
                         table->label, column->name);
    target->label = malloc((size_t)(table->rows - table->first) * sizeof *target->label);
    target->names = json_array();
    if (target->label && target->names &&
        (texts ? label_texts(target, table, column) : label_numbers(target, table, column)) == 0)
        return 0;
    return error_set(err, ERROR_MEMORY, "%s: no memory for the labels", table->label);
}

static const char *class_name(const struct target *target, int64_t label)
{
    return json_string_value(json_array_get(target->names, (size_t)label));
}

static void note_rows(const struct target *target, const struct table *table, const int64_t *rows,
                      json_t *notes)
{
    struct text rare;
    text_init(&rare);
    int64_t count = 0, least = 0, most = 0;
    for (int64_t label = 0; label < target->classes; label++) {
        least = rows[label] < rows[least] ? label : least;
        most = rows[label] > rows[most] ? label : most;
        if (rows[label] < CLASS_ROWS && count++ < NAMED_CLASSES)
            text_printf(&rare, "%s'%.40s'", count > 1 ? ", " : "", class_name(target, label));
    }
    if (count)
        note_add(notes,
                 "%s: %lld class%s less than %d rows, so not every part of the split has one: %s%s; merge or "
                 "leave out rare classes",
                 table->label, (long long)count, count == 1 ? " has" : "es have", CLASS_ROWS,
                 rare.data ? rare.data : "", count > NAMED_CLASSES ? ", ..." : "");
    text_release(&rare);
    if (rows[most] >= IMBALANCE * rows[least])
        note_add(notes,
                 "%s: class '%.40s' has %lld rows, '%.40s' %lld: far from balanced; consider class_weight: "
                 "balanced, and a metric such as validation_balanced_accuracy",
                 table->label, class_name(target, most), (long long)rows[most], class_name(target, least),
                 (long long)rows[least]);
}

/* Equal but for case, blanks, and a point at the end. */
static bool differ_in_spelling(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (isblank((unsigned char)*a) || (*a == '.' && !a[1]))
            a++;
        while (isblank((unsigned char)*b) || (*b == '.' && !b[1]))
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

static void note_spelling(const struct target *target, const struct table *table, json_t *notes)
{
    for (int64_t a = 0; a < target->classes && target->classes <= COMPARED_CLASSES; a++)
        for (int64_t b = a + 1; b < target->classes; b++)
            if (differ_in_spelling(class_name(target, a), class_name(target, b)))
                note_add(notes,
                         "%s: classes '%.40s' and '%.40s' differ in spelling only; they are kept apart",
                         table->label, class_name(target, a), class_name(target, b));
}

int classes_note(const struct target *target, const struct table *table, json_t *notes, struct error *err)
{
    int64_t *rows = calloc((size_t)target->classes, sizeof *rows);
    if (!rows)
        return error_set(err, ERROR_MEMORY, "%s: no memory to count its classes", table->label);
    for (int64_t row = 0; row < table->rows - table->first; row++)
        rows[target->label[row]]++;
    note_rows(target, table, rows, notes);
    note_spelling(target, table, notes);
    free(rows);
    return 0;
}
