/* The header of an NPY file; see data_array.h. */
#include "worker/training/data_array.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define HEADER_LIMIT 65536 /* of the dict: a plain array's has some 60 bytes */

bool npy_is(const char *bytes, size_t size)
{
    return size >= MAGIC_SIZE && !memcmp(bytes, MAGIC, MAGIC_SIZE);
}

static int damaged(const char *label, struct error *err)
{
    return error_set(err, ERROR_USAGE, "%s: its NPY header is damaged; save the array again with numpy.save",
                     label);
}

/* What stands behind 'KEY': in the dict; NULL: nothing. */
static const char *value_of(const char *dict, const char *key)
{
    const char *at = strstr(dict, key);
    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " ");
    if (*at != ':')
        return NULL;
    return at + 1 + strspn(at + 1, " ");
}

/* "<f4" and the like. */
static int read_type(struct array *array, const char *descr, const char *label, struct error *err)
{
    static const struct {
        char name[3];
        enum element element;
    } types[] = {{"u1", ELEMENT_UINT8},   {"i1", ELEMENT_INT8},    {"u2", ELEMENT_UINT16},
                 {"i2", ELEMENT_INT16},   {"u4", ELEMENT_UINT32},  {"i4", ELEMENT_INT32},
                 {"u8", ELEMENT_UINT64},  {"i8", ELEMENT_INT64},   {"f2", ELEMENT_FLOAT16},
                 {"f4", ELEMENT_FLOAT32}, {"f8", ELEMENT_FLOAT64}, {"b1", ELEMENT_BOOLEAN}};
    if (!descr)
        return damaged(label, err);
    bool quoted = *descr == '\'' || *descr == '"';
    const char *text = descr + quoted;
    for (size_t i = 0; quoted && *text && i < sizeof types / sizeof *types; i++)
        if (strchr("<>|=", *text) && !strncmp(text + 1, types[i].name, 2) && text[3] == *descr) {
            array->element = types[i].element;
            array->big_endian = *text == '>';
            return 0;
        }
    bool texts = quoted && *text && strchr("SUO", text[1]);
    int width = (int)strcspn(text, quoted ? "'\"" : "\n");
    return error_set(err, ERROR_USAGE,
                     "%s: its elements are of type %.*s, accepted are booleans, integers and floats of up to "
                     "64 bits%s",
                     label, width < 40 ? width : 40, text,
                     !quoted ? "; save each field as a column of one plain array"
                     : texts ? "; save texts as CSV, or number them: numpy.unique(a, return_inverse=True)[1]"
                             : "; convert it with array.astype(numpy.float32)");
}

/* "(3, 4)", "(3,)" */
static int read_shape(struct array *array, const char *shape, const char *label, struct error *err)
{
    if (!shape || *shape != '(')
        return damaged(label, err);
    for (shape++; *shape != ')';) {
        char *end;
        shape += strspn(shape, " ,");
        if (*shape == ')')
            break;
        if (*shape < '0' || *shape > '9' || array->dimensions == ARRAY_DIMENSIONS)
            return damaged(label, err);
        array->size[array->dimensions++] = strtoll(shape, &end, 10);
        shape = end + (*end == 'L'); /* as Python 2 wrote it */
    }
    return 0;
}

static int read_dict(struct array *array, const char *dict, const char *label, struct error *err)
{
    const char *order = value_of(dict, "'fortran_order'");
    if (read_type(array, value_of(dict, "'descr'"), label, err) < 0 ||
        read_shape(array, value_of(dict, "'shape'"), label, err) < 0)
        return -1;
    if (!order || (strncmp(order, "True", 4) && strncmp(order, "False", 5)))
        return damaged(label, err);
    array->first_fastest = *order == 'T';
    return 0;
}

int npy_read(struct array *array, const char *bytes, size_t size, const char *label, struct error *err)
{
    const unsigned char *at = (const unsigned char *)bytes;
    memset(array, 0, sizeof *array);
    if (!npy_is(bytes, size))
        return error_set(err, ERROR_USAGE, "%s: is no NPY file (data.format says that it is one)", label);
    if (size < 12 || at[6] < 1 || at[6] > 3)
        return damaged(label, err);
    size_t start = at[6] == 1 ? 10 : 12;
    size_t length = at[8] | (size_t)at[9] << 8;
    if (at[6] > 1)
        length |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (length > size - start || length > HEADER_LIMIT)
        return damaged(label, err);
    char *dict = strndup(bytes + start, length);
    if (!dict)
        return error_set(err, ERROR_MEMORY, "%s: no memory to read its header", label);
    int failed = read_dict(array, dict, label, err);
    free(dict);
    array->bytes = at + start + length;
    return failed ? -1 : array_check(array, size - start - length, label, err);
}
