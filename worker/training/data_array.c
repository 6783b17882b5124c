/* Elements to doubles, rows to columns; see data_array.h. */
#include "worker/training/data_array.h"

#include "base/text.h"
#include "worker/training/data_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t element_size(enum element element)
{
    static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 1};
    return sizes[element];
}

static int64_t columns_of(const struct array *array)
{
    int64_t columns = 1;
    for (int d = 1; d < array->dimensions; d++)
        columns *= array->size[d];
    return columns;
}

static void print_shape(const struct array *array, struct text *text)
{
    text_init(text);
    for (int d = 0; d < array->dimensions; d++)
        text_printf(text, "%s%lld", d ? " x " : "", (long long)array->size[d]);
}

int array_check(const struct array *array, size_t bytes, const char *label, struct error *err)
{
    struct text shape;
    uint64_t wanted = element_size(array->element);
    bool overflow = false, empty = array->dimensions == 0;
    for (int d = 0; d < array->dimensions; d++) {
        empty = empty || array->size[d] == 0;
        overflow = __builtin_mul_overflow(wanted, (uint64_t)array->size[d], &wanted) || overflow;
    }
    int failed = 0;
    print_shape(array, &shape);
    const char *sizes = shape.data ? shape.data : "no dimension";
    if (empty)
        failed =
            error_set(err, ERROR_USAGE, "%s: its shape is %s, so it has no rows to learn from", label, sizes);
    else if (array->size[0] > INT32_MAX)
        failed = error_set(err, ERROR_USAGE, "%s: found %lld rows, accepted at most %d", label,
                           (long long)array->size[0], INT32_MAX);
    else if (overflow || wanted != bytes)
        failed = error_set(err, ERROR_USAGE,
                           "%s: damaged or cut off: its header promises %s elements of %zu bytes, found %zu "
                           "bytes",
                           label, sizes, element_size(array->element), bytes);
    text_release(&shape);
    return failed;
}

static uint64_t load_bits(const unsigned char *from, size_t size, bool big_endian)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)from[big_endian ? size - 1 - i : i] << (8 * i);
    return bits;
}

/* IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. */
static double half_to_double(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double size = exponent == 31  ? (fraction > 0 ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
}

static double to_double(uint64_t bits, enum element element)
{
    uint32_t low = (uint32_t)bits;
    float single;
    double number;
    switch (element) {
    case ELEMENT_UINT8:
    case ELEMENT_UINT16:
    case ELEMENT_UINT32:
    case ELEMENT_UINT64:
        return (double)bits;
    case ELEMENT_INT8:
        return (int8_t)bits;
    case ELEMENT_INT16:
        return (int16_t)bits;
    case ELEMENT_INT32:
        return (int32_t)bits;
    case ELEMENT_INT64:
        return (double)(int64_t)bits;
    case ELEMENT_FLOAT16:
        return half_to_double(bits);
    case ELEMENT_FLOAT32:
        memcpy(&single, &low, sizeof single);
        return single;
    case ELEMENT_FLOAT64:
        memcpy(&number, &bits, sizeof number);
        return number;
    case ELEMENT_BOOLEAN:
        return bits != 0;
    }
    return NAN;
}

/* `count` elements, `stride` bytes apart. Bytes, of which images are made, have a loop of their own. */
static void convert(const struct array *array, const unsigned char *from, size_t stride, int64_t count,
                    double *to)
{
    if (array->element == ELEMENT_UINT8) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[(size_t)i * stride];
        return;
    }
    size_t size = element_size(array->element);
    for (int64_t i = 0; i < count; i++)
        to[i] = to_double(load_bits(from + (size_t)i * stride, size, array->big_endian), array->element);
}

/* Where column c begins in an array in Fortran order, in elements. */
static size_t fortran_offset(const struct array *array, int64_t c)
{
    size_t offset = 0, step = (size_t)array->size[0];
    int64_t below = columns_of(array); /* columns of one index of the dimensions so far */
    for (int d = 1; d < array->dimensions; d++) {
        below /= array->size[d];
        offset += (size_t)(c / below) * step;
        c %= below;
        step *= (size_t)array->size[d];
    }
    return offset;
}

static void fill(const struct array *array, struct table *table)
{
    enum { BLOCK = 64 }; /* rows: their elements stay in the cache while they are dealt to columns */
    size_t size = element_size(array->element);
    int64_t rows = array->size[0], columns = table->column_count;
    for (int64_t c = 0; c < columns && array->first_fastest; c++)
        convert(array, array->bytes + fortran_offset(array, c) * size, size, rows, table->columns[c].number);
    for (int64_t from = 0; from < rows && !array->first_fastest; from += BLOCK) {
        int64_t count = rows - from < BLOCK ? rows - from : BLOCK;
        for (int64_t c = 0; c < columns; c++)
            convert(array, array->bytes + (size_t)(from * columns + c) * size, (size_t)columns * size, count,
                    table->columns[c].number + from);
    }
}

int array_to_table(const struct array *array, const char *label, struct table *table, struct error *err)
{
    int64_t columns = columns_of(array);
    if (table_init_numbers(table, label, array->size[0], columns, err) < 0)
        return -1;
    for (int64_t c = 0; c < columns; c++)
        if (table_name_column(table, c, "column_%lld", (long long)c) < 0) {
            data_table_release(table);
            return error_set(err, ERROR_MEMORY, "%s: no memory to name the columns", label);
        }
    fill(array, table);
    return 0;
}
