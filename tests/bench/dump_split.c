/* Writes the split of a table as rung makes it, so that others can train on the very same rows:
 *   dump_split DATA TARGET SEED FOLDER
 * FOLDER gets x_train, y_train, x_validation, y_validation, x_test, y_test as .npy (float32 and int32). */
#include "base/error.h"
#include "worker/training/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NPY 1.0: magic, version, header length, a Python dictionary padded to a multiple of 64 bytes, the numbers.
 */
static int write_array(const char *folder, const char *name, const char *type, const char *shape,
                       const void *values, size_t bytes)
{
    char path[1000], header[128];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    int size = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                        type, shape);
    memset(header + size, ' ', sizeof header - (size_t)size);
    size_t length = 118; /* 10 bytes before it make 128 */
    header[length - 1] = '\n';
    FILE *file = fopen(path, "wb");
    if (!file)
        return -1;
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc((int)length, file);
    fputc(0, file);
    fwrite(header, 1, length, file);
    fwrite(values, 1, bytes, file);
    return fclose(file);
}

static int write_split(const struct dataset *dataset, enum split split, const char *name, const char *folder)
{
    char file[40], shape[60];
    long long rows = (long long)dataset->rows[split];
    snprintf(file, sizeof file, "x_%s", name);
    snprintf(shape, sizeof shape, "%lld, %lld", rows, (long long)dataset->features);
    size_t values = (size_t)(dataset->rows[split] * dataset->features);
    if (write_array(folder, file, "<f4", shape, dataset->x[split], values * sizeof(float)) != 0)
        return -1;
    snprintf(file, sizeof file, "y_%s", name);
    snprintf(shape, sizeof shape, "%lld,", rows);
    return write_array(folder, file, "<i4", shape, dataset->label[split], (size_t)rows * sizeof(int32_t));
}

int main(int count, char **arguments)
{
    static const char *const names[] = {"train", "validation", "test"};
    if (count != 5) {
        fprintf(stderr, "usage: dump_split DATA TARGET SEED FOLDER\n");
        return 2;
    }
    json_t *data = json_pack("{s:s, s:s}", "path", arguments[1], "target", arguments[2]);
    struct dataset dataset;
    struct error err;
    if (dataset_load(&dataset, data, NULL, strtoull(arguments[3], NULL, 10), &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return error_exit_code(&err);
    }
    int failed = 0;
    for (int split = 0; split < SPLIT_COUNT; split++)
        failed |= write_split(&dataset, (enum split)split, names[split], arguments[4]);
    if (failed)
        fprintf(stderr, "%s: could not be written\n", arguments[4]);
    dataset_release(&dataset);
    json_decref(data);
    return failed ? 4 : 0;
}
