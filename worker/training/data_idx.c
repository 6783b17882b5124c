/* The header of an IDX file; see data_array.h. */
#include "worker/training/data_array.h"

#include <string.h>

static int64_t size_at(const char *bytes, int dimension)
{
    const unsigned char *at = (const unsigned char *)bytes + 4 + 4 * dimension;
    return (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* The element of a type byte; false: IDX has no such type. */
static bool find_element(unsigned char type, enum element *element)
{
    static const struct {
        unsigned char type;
        enum element element;
    } types[] = {{0x08, ELEMENT_UINT8}, {0x09, ELEMENT_INT8},    {0x0b, ELEMENT_INT16},
                 {0x0c, ELEMENT_INT32}, {0x0d, ELEMENT_FLOAT32}, {0x0e, ELEMENT_FLOAT64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) {
            *element = types[i].element;
            return true;
        }
    return false;
}

bool idx_is(const char *bytes, size_t size)
{
    enum element element;
    return size >= 8 && bytes[0] == 0 && bytes[1] == 0 && find_element((unsigned char)bytes[2], &element) &&
           bytes[3] > 0;
}

int idx_read(struct array *array, const char *bytes, size_t size, const char *label, struct error *err)
{
    memset(array, 0, sizeof *array);
    if (size < 8 || bytes[0] || bytes[1] || !find_element((unsigned char)bytes[2], &array->element))
        return error_set(err, ERROR_USAGE,
                         "%s: is no IDX file: it begins with none of 0 0 8|9|11|12|13|14 (data.format says "
                         "that it is one)",
                         label);
    array->dimensions = (unsigned char)bytes[3];
    if (array->dimensions < 1 || array->dimensions > ARRAY_DIMENSIONS)
        return error_set(err, ERROR_USAGE, "%s: found %d dimensions, accepted 1 to %d", label,
                         array->dimensions, ARRAY_DIMENSIONS);
    size_t header = 4 + 4 * (size_t)array->dimensions;
    if (size < header)
        return error_set(err, ERROR_USAGE, "%s: damaged or cut off: found %zu bytes, its header alone is %zu",
                         label, size, header);
    for (int d = 0; d < array->dimensions; d++)
        array->size[d] = size_at(bytes, d);
    array->bytes = (const unsigned char *)bytes + header;
    array->big_endian = true;
    return array_check(array, size - header, label, err);
}
