/* Labels from another file; see data_labels.h. */
#include "worker/training/data_labels.h"

#include "worker/training/data_build.h"
#include "worker/training/data_file.h"
#include "worker/training/data_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands in no text: a line is one label then, whatever blanks it has. */
#define NO_DELIMITER '\x1f'

static int read_text(struct table *labels, const struct source *source, char *bytes, size_t size,
                     struct error *err)
{
    char delimiter = source->delimiter ? source->delimiter
                                       : format_find_delimiter(bytes, size, format_find_quote(bytes, size));
    if (delimiter == ' ')
        delimiter = NO_DELIMITER;
    return table_parse(labels, bytes, size, source->label, delimiter, source->rules, err);
}

/* Names the column. The number of rows decides whether the first one is a header, where it can; data.header
 * is about data.path. */
static int name_text(struct table *labels, int64_t rows, enum header header, json_t *notes, struct error *err)
{
    if (labels->rows == rows)
        header = HEADER_NO;
    else if (header == HEADER_NO)
        header = HEADER_AUTO;
    return table_name_columns(labels, header, NULL, notes, err);
}

static int check(const struct table *table, const struct table *labels, struct error *err)
{
    long long rows = table->rows - table->first, found = labels->rows - labels->first;
    if (labels->column_count != 1)
        return error_set(err, ERROR_USAGE,
                         "%s: found %lld columns, expected one label a row (for one-hot columns, put them "
                         "into data.path and name them in data.target)",
                         labels->label, (long long)labels->column_count);
    if (rows != found)
        return error_set(err, ERROR_USAGE, "%s has %lld labels, but %s has %lld rows; expected as many",
                         labels->label, found, table->label, rows);
    return 0;
}

/* A name that no other column has. */
static void name_free(const struct table *table, const struct table *labels, char *name, size_t size)
{
    bool named = labels->first && *labels->heading[0];
    snprintf(name, size, "%s", named ? labels->columns[0].name : "label");
    for (int k = 2; table_column_named(table, name) >= 0; k++)
        snprintf(name, size, "label.%d", k);
}

/* The labels' column becomes one of the table's, its cells moved behind the table's header. */
static int move(struct table *table, struct table *labels, struct error *err)
{
    char name[400];
    name_free(table, labels, name, sizeof name);
    struct column *column = table_attach_column(table, name, err), *source = &labels->columns[0];
    if (!column || (source->text && column_allow_texts(table, column) < 0))
        return error_set(err, ERROR_MEMORY, "%s: no memory for the labels", labels->label);
    size_t rows = (size_t)(labels->rows - labels->first);
    memcpy(column->number + table->first, source->number + labels->first, rows * sizeof(double));
    column->written = source->written;
    column->file[0] = labels->label;
    if (!source->text)
        return 0;
    memcpy(column->text + table->first, source->text + labels->first, rows * sizeof *source->text);
    column->dictionary = source->dictionary;
    memset(&source->dictionary, 0, sizeof source->dictionary);
    return 0;
}

static int read_labels(struct table *labels, const struct source *source, enum data_format *format,
                       struct error *err)
{
    char *bytes;
    size_t size;
    if (data_file_read(source->path, source->label, &bytes, &size, err) < 0)
        return -1;
    int failed = data_recognise(bytes, size, source->label, FORMAT_AUTO, format, err);
    if (!failed && *format == FORMAT_LIBSVM)
        failed = error_set(err, ERROR_USAGE, "%s: is LIBSVM, which has labels and features; expected labels",
                           source->label);
    else if (!failed && *format == FORMAT_CSV)
        failed = read_text(labels, source, bytes, size, err);
    else if (!failed)
        failed = source_parse(source, *format, bytes, size, labels, err);
    free(bytes);
    return failed;
}

int labels_attach(struct table *table, const struct source *source, const char *key, enum header header,
                  json_t *notes, struct error *err)
{
    struct table labels;
    enum data_format format;
    if (read_labels(&labels, source, &format, err) < 0)
        return error_prefix(err, "%s", key);
    int failed = 0;
    if (format == FORMAT_CSV)
        failed = name_text(&labels, table->rows - table->first, header, notes, err);
    if (!failed)
        failed = check(table, &labels, err);
    if (!failed)
        failed = move(table, &labels, err);
    data_table_release(&labels);
    return failed ? error_prefix(err, "%s", key) : 0;
}
