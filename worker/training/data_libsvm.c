/* Sparse rows to a dense table; see data_libsvm.h. */
#include "worker/training/data_libsvm.h"

#include "base/text.h"
#include "worker/training/data_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKED_AT 50 /* lines, to recognise the format */
#define BLANKS " \t\r\f\v"

/* What is written down, row by row. */
struct row {
    double target, query; /* query NaN: the row has no qid */
    int64_t line;
    int64_t end; /* behind its last element; the row before ends where it begins */
};
struct element_at {
    int32_t index;
    double value;
};
struct sparse {
    const char *label; /* the table's */
    struct row *row;   /* (rows) */
    int64_t rows, row_capacity;
    struct element_at *element; /* (elements) */
    int64_t elements, capacity;
    int32_t least, greatest; /* indices */
    bool queries;
};

/* "17:" and something behind it. */
static bool is_element(const char *token)
{
    size_t digits = strspn(token, "0123456789");
    return digits > 0 && token[digits] == ':' && token[digits + 1] &&
           strchr("+-.0123456789nN", token[digits + 1]);
}

/* One line's form: 1 with elements, 0 a label alone or nothing, -1 another format. */
static int line_form(const char *line, size_t size)
{
    char copy[256];
    size_t count = size < sizeof copy - 1 ? size : sizeof copy - 1;
    memcpy(copy, line, count);
    copy[count] = 0;
    copy[strcspn(copy, "#")] = 0;
    char *rest = NULL, *label = strtok_r(copy, BLANKS, &rest);
    char *second = label ? strtok_r(NULL, BLANKS, &rest) : NULL;
    double number;
    if (!label)
        return 0;
    if (!number_parse(label, &number))
        return -1;
    if (second && !strncmp(second, "qid:", 4))
        second = strtok_r(NULL, BLANKS, &rest);
    return !second ? 0 : is_element(second) ? 1 : -1;
}

bool libsvm_is(const char *bytes)
{
    int with_elements = 0;
    for (int i = 0; i < LOOKED_AT && *bytes; i++) {
        size_t size = strcspn(bytes, "\n\r");
        int form = line_form(bytes, size);
        if (form < 0)
            return false;
        with_elements += form;
        bytes += size + (bytes[size] != 0);
    }
    return with_elements > 0;
}

static int no_memory(const struct sparse *sparse, struct error *err)
{
    return error_set(err, ERROR_MEMORY, "%s: no memory to hold it", sparse->label);
}

static int grow_rows(struct sparse *sparse)
{
    int64_t wanted = sparse->row_capacity ? sparse->row_capacity * 2 : 1024;
    struct row *more = realloc(sparse->row, (size_t)wanted * sizeof *more);
    if (!more)
        return -1;
    sparse->row = more;
    sparse->row_capacity = wanted;
    return 0;
}

static int grow_elements(struct sparse *sparse)
{
    int64_t wanted = sparse->capacity ? sparse->capacity * 2 : 16384;
    struct element_at *more = realloc(sparse->element, (size_t)wanted * sizeof *more);
    if (!more)
        return -1;
    sparse->element = more;
    sparse->capacity = wanted;
    return 0;
}

static int refuse(const struct sparse *sparse, int64_t line, const char *token, const char *expected,
                  struct error *err)
{
    return error_set(err, ERROR_USAGE, "%s:%lld: found '%.40s', expected %s", sparse->label, (long long)line,
                     token, expected);
}

/* One "INDEX:VALUE" of the row that is being read. */
static int read_element(struct sparse *sparse, int64_t line, char *token, const struct cell_rules *rules,
                        struct error *err)
{
    char *end;
    if (!is_element(token))
        return refuse(sparse, line, token, "INDEX:VALUE", err);
    long long index = strtoll(token, &end, 10);
    if (index > TABLE_COLUMNS_MAXIMUM)
        return refuse(sparse, line, token, "an index of at most 1000000: keep fewer features", err);
    int64_t begin = sparse->rows ? sparse->row[sparse->rows - 1].end : 0;
    if (sparse->elements > begin && index <= sparse->element[sparse->elements - 1].index)
        return refuse(sparse, line, token, "indices in ascending order, each once", err);
    double value;
    enum cell_kind kind = cell_read(end + 1, strlen(end + 1), rules, &value);
    if (kind != CELL_NUMBER && kind != CELL_MISSING)
        return refuse(sparse, line, token, "INDEX:VALUE with a number", err);
    if (sparse->elements == sparse->capacity && grow_elements(sparse) < 0)
        return no_memory(sparse, err);
    sparse->element[sparse->elements++] =
        (struct element_at){(int32_t)index, kind == CELL_NUMBER ? value : NAN};
    sparse->least = index < sparse->least ? (int32_t)index : sparse->least;
    sparse->greatest = index > sparse->greatest ? (int32_t)index : sparse->greatest;
    return 0;
}

static int read_row(struct sparse *sparse, int64_t line, char *text, const struct cell_rules *rules,
                    struct error *err)
{
    char *rest = NULL, *token = strtok_r(text, BLANKS, &rest);
    if (!token)
        return 0;
    if (sparse->rows == sparse->row_capacity && grow_rows(sparse) < 0)
        return no_memory(sparse, err);
    struct row row = {.query = NAN, .line = line};
    if (!number_parse(token, &row.target))
        return refuse(sparse, line, token,
                      strchr(token, ',') ? "one number as the label (several labels a row are not learned)"
                                         : "a number as the label",
                      err);
    token = strtok_r(NULL, BLANKS, &rest);
    if (token && !strncmp(token, "qid:", 4)) {
        if (!number_parse(token + 4, &row.query))
            return refuse(sparse, line, token, "qid:NUMBER", err);
        sparse->queries = true;
        token = strtok_r(NULL, BLANKS, &rest);
    }
    for (; token; token = strtok_r(NULL, BLANKS, &rest))
        if (read_element(sparse, line, token, rules, err) < 0)
            return -1;
    row.end = sparse->elements;
    sparse->row[sparse->rows++] = row;
    return 0;
}

static int read_rows(struct sparse *sparse, char *bytes, size_t size, const struct cell_rules *rules,
                     struct error *err)
{
    char *stop = bytes + size;
    for (int64_t line = 1; bytes < stop; line++) {
        char *end = memchr(bytes, '\n', (size_t)(stop - bytes));
        char *next = end ? end + 1 : stop;
        if (end)
            *end = 0;
        bytes[strcspn(bytes, "#")] = 0;
        if (read_row(sparse, line, bytes, rules, err) < 0)
            return -1;
        bytes = next;
    }
    if (sparse->rows == 0 || sparse->elements == 0)
        return error_set(err, ERROR_USAGE, "%s: holds no INDEX:VALUE, so there is nothing to learn from",
                         sparse->label);
    return 0;
}

/* Doubles here, and floats in the dataset that is made of them. */
static int check_memory(const struct sparse *sparse, int64_t features, struct error *err)
{
    double wanted = (double)sparse->rows * (double)features * (sizeof(double) + sizeof(float));
    double limit = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 2;
    if (wanted <= limit)
        return 0;
    return error_set(
        err, ERROR_USAGE,
        "%s: %lld rows of %lld features (indices to %d) take %.1f GiB as a dense table, accepted "
        "%.1f GiB, half of this machine's memory: keep fewer rows, or fewer features, such as "
        "the ones met most often",
        sparse->label, (long long)sparse->rows, (long long)features, sparse->greatest, wanted / (1 << 30),
        limit / (1 << 30));
}

static void fill(const struct sparse *sparse, struct table *table, int64_t before)
{
    int64_t least = sparse->least == 0 ? 0 : 1, i = 0;
    for (int64_t c = before; c < table->column_count; c++)
        memset(table->columns[c].number, 0, (size_t)sparse->rows * sizeof(double));
    for (int64_t row = 0; row < sparse->rows; row++) {
        const struct row *source = &sparse->row[row];
        table->line[row] = source->line;
        table->columns[0].number[row] = source->target;
        if (sparse->queries)
            table->columns[1].number[row] = source->query;
        for (; i < source->end; i++)
            table->columns[before + sparse->element[i].index - least].number[row] = sparse->element[i].value;
    }
}

static int make_dense(const struct sparse *sparse, struct table *table, struct error *err)
{
    int64_t least = sparse->least == 0 ? 0 : 1, before = 1 + sparse->queries;
    int64_t features = sparse->greatest - least + 1;
    if (check_memory(sparse, features, err) < 0 ||
        table_init_numbers(table, sparse->label, sparse->rows, before + features, err) < 0)
        return -1;
    int failed = table_name_column(table, 0, LIBSVM_LABEL);
    if (sparse->queries)
        failed |= table_name_column(table, 1, LIBSVM_QUERY);
    for (int64_t k = 0; k < features; k++)
        failed |= table_name_column(table, before + k, "feature_%lld", (long long)(k + least));
    if (failed) {
        data_table_release(table);
        return no_memory(sparse, err);
    }
    fill(sparse, table, before);
    return 0;
}

int libsvm_parse(struct table *table, char *bytes, size_t size, const char *label,
                 const struct cell_rules *rules, struct error *err)
{
    struct sparse sparse = {.label = label, .least = INT32_MAX, .greatest = -1};
    int failed = read_rows(&sparse, bytes, size, rules, err);
    if (!failed)
        failed = make_dense(&sparse, table, err);
    free(sparse.row);
    free(sparse.element);
    return failed;
}
