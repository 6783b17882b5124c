/* Reading one file; see data_source.h. */
#include "worker/training/data_source.h"

#include "worker/training/data_array.h"
#include "worker/training/data_file.h"
#include "worker/training/data_libsvm.h"

#include <stdlib.h>

/* IDX or NPY. */
static int parse_array(const struct source *source, enum data_format format, const char *bytes, size_t size,
                       struct table *table, struct error *err)
{
    struct array array;
    int failed = format == FORMAT_IDX ? idx_read(&array, bytes, size, source->label, err)
                                      : npy_read(&array, bytes, size, source->label, err);
    if (failed || array_to_table(&array, source->label, table, err) < 0)
        return -1;
    for (int64_t c = 0; c < table->column_count; c++)
        numbers_mark_missing(table->columns[c].number, table->rows, source->rules);
    return 0;
}

int source_parse(const struct source *source, enum data_format format, char *bytes, size_t size,
                 struct table *table, struct error *err)
{
    if (format == FORMAT_IDX || format == FORMAT_NPY)
        return parse_array(source, format, bytes, size, table, err);
    if (format == FORMAT_LIBSVM)
        return libsvm_parse(table, bytes, size, source->label, source->rules, err);
    return table_parse(table, bytes, size, source->label, source->delimiter, source->rules, err);
}

int source_read(const struct source *source, struct table *table, enum data_format *format, struct error *err)
{
    char *bytes;
    size_t size;
    if (data_file_read(source->path, source->label, &bytes, &size, err) < 0)
        return -1;
    int failed = data_recognise(bytes, size, source->label, source->format, format, err);
    if (!failed)
        failed = source_parse(source, *format, bytes, size, table, err);
    free(bytes);
    if (failed || table->rows <= INT32_MAX)
        return failed;
    error_set(err, ERROR_USAGE, "%s: found %lld rows, accepted at most %d", source->label,
              (long long)table->rows, INT32_MAX);
    data_table_release(table);
    return -1;
}
