/* Reading and unpacking a data file; see data_file.h. */
#include "worker/training/data_file.h"

#include "base/files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* The table is held in memory. What can never fit is refused by its size: reading it would only push the
 * machine over (memory is promised freely, and a sparse file costs nothing). */
static double memory_size(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

static int refuse_size(const char *label, struct error *err)
{
    return error_set(err, ERROR_USAGE, "%s: is larger than this machine's memory (%.1f GiB)", label,
                     memory_size() / (1 << 30));
}

static int check_file(const char *path, const char *label, struct error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return error_set(err, ERROR_RESOURCE, "%s: %s", label, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_USAGE, "%s: is not a regular file", label);
    return (double)status.st_size > memory_size() ? refuse_size(label, err) : 0;
}

/* Makes room for at least one more chunk; the first guess is the usual ratio of packed tables. */
static int grow(char **bytes, size_t *capacity, size_t packed)
{
    size_t wanted = *capacity ? *capacity * 2 : packed * 5 + 4096;
    char *more = realloc(*bytes, wanted + 1);
    if (!more)
        return -1;
    *bytes = more;
    *capacity = wanted;
    return 0;
}

/* All members of a gzip file, one behind the other, as gzip itself reads them. */
static int unpack(const char *packed, size_t packed_size, const char *label, char **bytes, size_t *size,
                  struct error *err)
{
    z_stream stream = {0};
    char *out = NULL;
    size_t capacity = 0, used = 0, taken = 0;
    int status = inflateInit2(&stream, 15 + 16);
    while (status == Z_OK) {
        if ((double)used > memory_size()) {
            inflateEnd(&stream);
            free(out);
            return refuse_size(label, err);
        }
        if (used == capacity && grow(&out, &capacity, packed_size) < 0) {
            status = Z_MEM_ERROR;
            break;
        }
        size_t in = packed_size - taken, room = capacity - used;
        stream.next_in = (Bytef *)packed + taken;
        stream.avail_in = in < INT_MAX ? (uInt)in : INT_MAX;
        stream.next_out = (Bytef *)out + used;
        stream.avail_out = room < INT_MAX ? (uInt)room : INT_MAX;
        status = inflate(&stream, Z_NO_FLUSH);
        taken = (size_t)((const char *)stream.next_in - packed);
        used = (size_t)((char *)stream.next_out - out);
        /* Another member? Anything else behind the end is padding, which gzip ignores too. */
        bool another = packed_size - taken >= 2 && !memcmp(packed + taken, "\x1f\x8b", 2);
        if (status == Z_STREAM_END && another)
            status = inflateReset(&stream);
    }
    inflateEnd(&stream);
    if (status == Z_STREAM_END && out) {
        out[used] = 0;
        *bytes = out;
        *size = used;
        return 0;
    }
    free(out);
    if (status == Z_MEM_ERROR)
        return error_set(err, ERROR_MEMORY, "%s: no memory to unpack it", label);
    return error_set(err, ERROR_USAGE, "%s: the gzip data is damaged or cut off after %zu unpacked bytes",
                     label, used);
}

int data_file_read(const char *path, const char *label, char **bytes, size_t *size, struct error *err)
{
    char *raw = check_file(path, label, err) == 0 ? file_read(path, 0, size, err) : NULL;
    if (!raw)
        return -1;
    if (*size >= 2 && !memcmp(raw, "\x1f\x8b", 2)) {
        size_t packed_size = *size;
        char *packed = raw;
        raw = NULL;
        int failed = unpack(packed, packed_size, label, &raw, size, err);
        free(packed);
        if (failed)
            return -1;
    }
    *bytes = raw;
    return 0;
}
