/* Recognising a data file; see data_kind.h. */
#include "worker/training/data_kind.h"

#include "worker/training/data_array.h"
#include "worker/training/data_libsvm.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define AS_CSV "export it as CSV"
#define AS_ARRAY "save the array with numpy.save"

static const struct {
    const char *magic;
    size_t size;
    const char *what;
} impostors[] = {
    {"version https://git-lfs.github.com/spec/", 40,
     "is a Git LFS pointer, not the data: run `git lfs pull`"},
    {"\xfd"
     "7zXZ",
     5, "is xz-compressed: unpack it, or use gzip"},
    {"\x28\xb5\x2f\xfd", 4, "is zstd-compressed: unpack it, or use gzip"},
    {"\x04\x22\x4d\x18", 4, "is LZ4-compressed: unpack it, or use gzip"},
    {"BZh", 3, "is bzip2-compressed: unpack it, or use gzip"},
    {"7z\xbc\xaf\x27\x1c", 6, "is a 7z archive: unpack it"},
    {"Rar!", 4, "is a RAR archive: unpack it"},
    {"\x1f\x8b", 2, "is packed with gzip twice: unpack it once"},
    {"PAR1", 4, "is a Parquet file: " AS_CSV},
    {"ARROW1", 6, "is an Arrow (Feather) file: " AS_CSV},
    {"FEA1", 4, "is a Feather file: " AS_CSV},
    {"ORC", 3, "is an ORC file: " AS_CSV},
    {"Obj\x01", 4, "is an Avro file: " AS_CSV},
    {"\x89HDF", 4, "is an HDF5 file: " AS_CSV " or " AS_ARRAY},
    {"MATLAB 5.0 MAT-file", 19, "is a MATLAB file: " AS_CSV " or " AS_ARRAY},
    {"SQLite format 3", 15, "is an SQLite database: export the table as CSV"},
    {"\xd0\xcf\x11\xe0", 4, "is an old spreadsheet (.xls): " AS_CSV},
    {"RDX", 3, "is an R workspace: save the table with write.csv"},
    {"\x80\x03", 2, "is a Python pickle, which may run code when it is opened: " AS_ARRAY " or " AS_CSV},
    {"\x80\x04", 2, "is a Python pickle, which may run code when it is opened: " AS_ARRAY " or " AS_CSV},
    {"\x80\x05", 2, "is a Python pickle, which may run code when it is opened: " AS_ARRAY " or " AS_CSV},
    {"%PDF-", 5, "is a PDF document, not the data"},
    {"\x89PNG", 4, "is one image: pack images and labels as IDX or NPY arrays"},
    {"\xff\xd8\xff", 3, "is one image: pack images and labels as IDX or NPY arrays"},
    {"\xff\xfe", 2, "is UTF-16 text: save it as UTF-8"},
    {"\xfe\xff", 2, "is UTF-16 text: save it as UTF-8"},
};

/* A zip archive, and what of: its first entry's name stands at byte 30. */
static int refuse_zip(const char *bytes, size_t size, const char *label, struct error *err)
{
    size_t name = size > 30 ? (unsigned char)bytes[26] | (size_t)(unsigned char)bytes[27] << 8 : 0;
    bool whole = name > 4 && 30 + name <= size;
    if (whole && !memcmp(bytes + 30 + name - 4, ".npy", 4))
        return error_set(err, ERROR_USAGE,
                         "%s: is a NumPy archive of several arrays (.npz): " AS_ARRAY
                         ", one array a file (labels in data.labels)",
                         label);
    bool sheet = (whole && !strncmp(bytes + 30, "[Content_Types].xml", name < 19 ? name : 19)) ||
                 (whole && !strncmp(bytes + 30, "xl/", 3));
    return error_set(err, ERROR_USAGE, "%s: is a zip archive or a spreadsheet: %s", label,
                     sheet ? "save the sheet as CSV" : "unpack it, or export it as CSV");
}

static bool is_web_page(const char *bytes)
{
    const char *text = bytes + strspn(bytes, " \t\r\n");
    return !strncasecmp(text, "<!doctype", 9) || !strncasecmp(text, "<html", 5) ||
           !strncasecmp(text, "<?xml", 5);
}

/* An object, or an array of them: '{"' or '[{', blanks aside. */
static bool is_json(const char *bytes)
{
    const char *text = bytes + strspn(bytes, " \t\r\n");
    char first = *text;
    if (first != '{' && first != '[')
        return false;
    text += 1 + strspn(text + 1, " \t\r\n");
    return *text == '"' ? first == '{' : first == '[' && (*text == '{' || *text == '[');
}

static int refuse_impostors(const char *bytes, size_t size, const char *label, struct error *err)
{
    for (size_t i = 0; i < sizeof impostors / sizeof *impostors; i++)
        if (size >= impostors[i].size && !memcmp(bytes, impostors[i].magic, impostors[i].size))
            return error_set(err, ERROR_USAGE, "%s: %s", label, impostors[i].what);
    if (size >= 4 && !memcmp(bytes, "PK\3\4", 4))
        return refuse_zip(bytes, size, label, err);
    if (size > 262 && !memcmp(bytes + 257, "ustar", 5))
        return error_set(err, ERROR_USAGE, "%s: is a tar archive: unpack it", label);
    if (is_web_page(bytes))
        return error_set(err, ERROR_USAGE, "%s: is a web page, not the data: download the file itself",
                         label);
    if (is_json(bytes))
        return error_set(err, ERROR_USAGE, "%s: is JSON, not a table: convert it to CSV", label);
    if (!strncasecmp(bytes, "@relation", 9))
        return error_set(err, ERROR_USAGE, "%s: is an ARFF file, not a table: convert it to CSV", label);
    return 0;
}

int data_recognise(const char *bytes, size_t size, const char *label, enum data_format wanted,
                   enum data_format *format, struct error *err)
{
    *format = wanted;
    if (wanted == FORMAT_IDX || wanted == FORMAT_NPY)
        return 0; /* their readers look at every byte that matters */
    if (wanted == FORMAT_AUTO && (idx_is(bytes, size) || npy_is(bytes, size))) {
        *format = npy_is(bytes, size) ? FORMAT_NPY : FORMAT_IDX;
        return 0;
    }
    if (npy_is(bytes, size))
        return error_set(err, ERROR_USAGE, "%s: is a NumPy array, and data.format says otherwise", label);
    if (refuse_impostors(bytes, size, label, err) < 0)
        return -1;
    if (memchr(bytes, 0, size))
        return error_set(err, ERROR_USAGE, "%s: holds zero bytes, so it is not delimited text%s", label,
                         wanted == FORMAT_AUTO ? ", and it is no IDX or NPY array" : "");
    if (wanted == FORMAT_AUTO)
        *format = libsvm_is(bytes) ? FORMAT_LIBSVM : FORMAT_CSV;
    return 0;
}
