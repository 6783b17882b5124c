/* Reading, unpacking and recognising a data file; see data_file.h. */
#include "worker/training/data_file.h"

#include "base/files.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const struct {
    const char *magic;
    size_t size;
    const char *what;
} impostors[] = {
    {"version https://git-lfs.github.com/spec/", 40,
     "is a Git LFS pointer, not the data: run `git lfs pull`"},
    {"PK\3\4", 4, "is a zip archive or a spreadsheet: unpack it, or export it as CSV"},
    {"\xfd"
     "7zXZ",
     5, "is xz-compressed: unpack it, or use gzip"},
    {"\x28\xb5\x2f\xfd", 4, "is zstd-compressed: unpack it, or use gzip"},
    {"BZh", 3, "is bzip2-compressed: unpack it, or use gzip"},
    {"PAR1", 4, "is a Parquet file: export it as CSV"},
    {"\x89HDF", 4, "is an HDF5 file: export it as CSV"},
    {"\x93NUMPY", 6, "is a NumPy array: export it as CSV"},
    {"SQLite format 3", 15, "is an SQLite database: export the table as CSV"},
    {"\xff\xfe", 2, "is UTF-16 text: save it as UTF-8"},
    {"\xfe\xff", 2, "is UTF-16 text: save it as UTF-8"},
};

static bool is_web_page(const char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    const char *text = bytes + at;
    return !strncasecmp(text, "<!doctype", 9) || !strncasecmp(text, "<html", 5) ||
           !strncasecmp(text, "<?xml", 5);
}

/* "LABEL INDEX:VALUE ...": blanks would cut it into a table of texts that looks fine and means nothing. */
static bool is_libsvm(const char *bytes)
{
    const char *text = bytes + strcspn(bytes, " \t\r\n");
    if (text == bytes || (*text != ' ' && *text != '\t'))
        return false;
    text += strspn(text, " \t");
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == ':' && text[digits + 1] && strchr("+-.0123456789", text[digits + 1]);
}

static int check_kind(const char *bytes, size_t size, const char *label, struct error *err)
{
    for (size_t i = 0; i < sizeof impostors / sizeof *impostors; i++)
        if (size >= impostors[i].size && !memcmp(bytes, impostors[i].magic, impostors[i].size))
            return error_set(err, ERROR_USAGE, "%s: %s", label, impostors[i].what);
    if (is_web_page(bytes, size))
        return error_set(err, ERROR_USAGE, "%s: is a web page, not the data: download the file itself",
                         label);
    if (is_libsvm(bytes))
        return error_set(err, ERROR_USAGE,
                         "%s: looks like LIBSVM (index:value), not a table: convert it to CSV", label);
    if (!strncasecmp(bytes, "@relation", 9))
        return error_set(err, ERROR_USAGE, "%s: is an ARFF file, not a table: convert it to CSV", label);
    if (memchr(bytes, 0, size))
        return error_set(err, ERROR_USAGE, "%s: holds zero bytes, so it is not delimited text", label);
    return 0;
}

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
    if (check_kind(raw, *size, label, err) < 0) {
        free(raw);
        return -1;
    }
    *bytes = raw;
    return 0;
}
