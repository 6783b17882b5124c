/* Blobs: content-addressed files. An upload grows under ".partial-OWNER-SHA256", so that two peers may send
 * the same blob at once; the last chunk verifies the hash, makes the bytes durable and renames. */
#include "coordinator/blobs.h"

#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTIAL_PREFIX ".partial-"

static int blob_file_error(const char *verb, const char *path, int number, struct error *err)
{
    const char *remedy =
        number == ENOSPC || number == EDQUOT ? "; free some space, it can be tried again" : "";
    return error_set(err, ERROR_RESOURCE, "%s %s: %s%s", verb, path, strerror(number), remedy);
}

static int blob_name_error(const char *sha256, struct error *err)
{
    return error_set(err, ERROR_PROTOCOL, "'%.80s' is not the name of a blob (64 lower-case hex digits)",
                     sha256);
}

static char *name_in_folder(const struct blobs *blobs, const char *prefix, const char *name)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s/%s%s", blobs->folder, prefix, name);
    return text_steal(&path);
}

static char *partial_path(const struct blobs *blobs, uint64_t owner, const char *sha256)
{
    char name[SHA256_TEXT + 24];
    snprintf(name, sizeof name, "%llu-%s", (unsigned long long)owner, sha256);
    return name_in_folder(blobs, PARTIAL_PREFIX, name);
}

/* Uploads that a crash cut off: nobody can go on with them. */
int blobs_remove_partial(const struct blobs *blobs, struct error *err)
{
    DIR *folder = opendir(blobs->folder);
    if (folder == NULL) {
        return blob_file_error("open", blobs->folder, errno, err);
    }
    struct dirent *entry;
    int result = 0;
    while (result == 0 && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, PARTIAL_PREFIX, strlen(PARTIAL_PREFIX)) == 0 &&
            unlinkat(dirfd(folder), entry->d_name, 0) != 0 && errno != ENOENT) {
            result = blob_file_error("remove the partial upload", entry->d_name, errno, err);
        }
    }
    closedir(folder);
    return result;
}

int blobs_open(struct blobs *blobs, const char *folder, struct error *err)
{
    *blobs = (struct blobs){.folder = strdup(folder)};
    if (blobs->folder == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for the blob folder's name");
    }
    if (folder_create(folder, 0700, err) != 0 || blobs_remove_partial(blobs, err) != 0) {
        blobs_close(blobs);
        return -1;
    }
    return 0;
}

void blobs_close(struct blobs *blobs)
{
    free(blobs->folder);
    blobs->folder = NULL;
}

char *blobs_path(const struct blobs *blobs, const char *sha256)
{
    return name_in_folder(blobs, "", sha256);
}

bool blobs_has(const struct blobs *blobs, const char *sha256)
{
    if (!sha256_is_valid(sha256)) {
        return false;
    }
    char *path = blobs_path(blobs, sha256);
    bool has = path != NULL && file_exists(path);
    free(path);
    return has;
}

bool blobs_has_whole(const struct blobs *blobs, const char *sha256)
{
    char *path = blobs_has(blobs, sha256) ? blobs_path(blobs, sha256) : NULL;
    char actual[SHA256_TEXT] = "";
    int64_t size;
    bool whole = path != NULL && sha256_file(path, actual, &size, NULL) == 0 && strcmp(actual, sha256) == 0;
    free(path);
    return whole;
}

static int sync_folder(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return blob_file_error("open", path, errno, err);
    }
    /* EINVAL: a file system that has no need of it. */
    int number = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return number == 0 ? 0 : blob_file_error("sync", path, number, err);
}

static int write_whole(int fd, const char *bytes, int64_t count, int64_t offset)
{
    while (count > 0) {
        ssize_t written = pwrite(fd, bytes, (size_t)count, offset);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return -1;
        }
        bytes += written;
        offset += written;
        count -= written;
    }
    return 0;
}

static int sync_file(const char *path, struct error *err)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int number = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return number == 0 ? 0 : blob_file_error("sync", path, number, err);
}

/* Gives the verified partial file its name, durably. The caller removes it on failure. */
static int publish(const struct blobs *blobs, const char *partial, const char *sha256, struct error *err)
{
    char *path = blobs_path(blobs, sha256);
    if (path == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for a blob's name");
    }
    int result = sync_file(partial, err);
    if (result == 0 && rename(partial, path) != 0) {
        result = blob_file_error("rename to", path, errno, err);
    }
    if (result == 0) {
        result = sync_folder(blobs->folder, err);
    }
    free(path);
    return result;
}

static int copy_file(const char *from, const char *to, struct error *err)
{
    int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0) {
        return blob_file_error("open", from, errno, err);
    }
    int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char *buffer = malloc(BLOB_CHUNK);
    int result = 0;
    int64_t offset = 0;
    if (target < 0) {
        result = blob_file_error("create", to, errno, err);
    } else if (buffer == NULL) {
        result = error_set(err, ERROR_MEMORY, "no memory to copy %s", from);
    }
    while (result == 0) {
        ssize_t count = read(source, buffer, BLOB_CHUNK);
        if (count == 0) {
            break;
        }
        if (count < 0 && errno != EINTR) {
            result = blob_file_error("read", from, errno, err);
        } else if (count > 0 && write_whole(target, buffer, count, offset) != 0) {
            result = blob_file_error("write", to, errno, err);
        }
        offset += count > 0 ? count : 0;
    }
    free(buffer);
    close(source);
    if (target >= 0 && close(target) != 0 && result == 0) {
        result = blob_file_error("write", to, errno, err);
    }
    return result;
}

int blobs_import(const struct blobs *blobs, const char *path, char sha256[SHA256_TEXT], int64_t *size,
                 struct error *err)
{
    if (sha256_file(path, sha256, size, err) != 0) {
        return -1;
    }
    if (blobs_has_whole(blobs, sha256)) {
        return 0; /* one that was damaged since is replaced */
    }
    char name[33];
    random_hex(name, 16);
    char *partial = name_in_folder(blobs, PARTIAL_PREFIX "import-", name);
    if (partial == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for a blob's name");
    }
    /* The copy is what gets its name from its bytes: the file may change under us. */
    int result = copy_file(path, partial, err);
    if (result == 0) {
        result = sha256_file(partial, sha256, size, err);
    }
    if (result == 0) {
        result = publish(blobs, partial, sha256, err);
    }
    if (result != 0) {
        unlink(partial);
    }
    free(partial);
    return result;
}

int64_t blobs_read(const struct blobs *blobs, const char *sha256, int64_t offset, void *buffer,
                   int64_t *total, struct error *err)
{
    if (!sha256_is_valid(sha256)) {
        return blob_name_error(sha256, err);
    }
    char *path = blobs_path(blobs, sha256);
    if (path == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for a blob's name");
    }
    int64_t result = -1;
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        blob_file_error("open the blob", path, errno, err);
    } else if (offset < 0 || offset > status.st_size) {
        error_set(err, ERROR_PROTOCOL, "offset %lld is outside blob %s of %lld bytes", (long long)offset,
                  sha256, (long long)status.st_size);
    } else {
        *total = status.st_size;
        do {
            result = pread(fd, buffer, BLOB_CHUNK, offset);
        } while (result < 0 && errno == EINTR);
        if (result < 0) {
            blob_file_error("read the blob", path, errno, err);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return result;
}

static int check_chunk(const char *sha256, int64_t offset, int64_t count, int64_t size, struct error *err)
{
    if (!sha256_is_valid(sha256)) {
        return blob_name_error(sha256, err);
    }
    if (offset < 0 || count < 0 || count > BLOB_CHUNK || size < 0 || offset > size || count > size - offset ||
        (count == 0 && size != 0)) {
        return error_set(err, ERROR_PROTOCOL, "blob %s of %lld bytes: a chunk of %lld bytes at offset %lld",
                         sha256, (long long)size, (long long)count, (long long)offset);
    }
    return 0;
}

/* Puts the bytes at the end of the partial file. */
static int append_chunk(const char *partial, const char *sha256, int64_t offset, const void *bytes,
                        int64_t count, struct error *err)
{
    int fd = open(partial, O_WRONLY | O_CLOEXEC | (offset == 0 ? O_CREAT | O_TRUNC : 0), 0600);
    if (fd < 0 && errno == ENOENT && offset != 0) {
        return error_set(err, ERROR_PROTOCOL,
                         "blob %s: the upload at offset %lld was never begun; start again at 0", sha256,
                         (long long)offset);
    }
    if (fd < 0) {
        return blob_file_error("create", partial, errno, err);
    }
    struct stat status;
    int result = 0;
    if (fstat(fd, &status) != 0) {
        result = blob_file_error("write", partial, errno, err);
    } else if (status.st_size != offset) {
        result = error_set(err, ERROR_PROTOCOL, "blob %s: a chunk at offset %lld, but %lld bytes have come",
                           sha256, (long long)offset, (long long)status.st_size);
    } else if (write_whole(fd, bytes, count, offset) != 0) {
        result = blob_file_error("write", partial, errno, err);
    }
    if (close(fd) != 0 && result == 0) {
        result = blob_file_error("write", partial, errno, err);
    }
    return result;
}

static int verify(const char *partial, const char *sha256, struct error *err)
{
    char actual[SHA256_TEXT];
    int64_t size;
    if (sha256_file(partial, actual, &size, err) != 0) {
        return -1;
    }
    return strcmp(actual, sha256) == 0
               ? 0
               : error_set(err, ERROR_PROTOCOL, "blob %s: what was sent has the hash %s", sha256, actual);
}

int blobs_write(const struct blobs *blobs, uint64_t owner, const char *sha256, int64_t offset,
                const void *bytes, int64_t count, int64_t size, struct error *err)
{
    if (check_chunk(sha256, offset, count, size, err) != 0) {
        return -1;
    }
    char *partial = partial_path(blobs, owner, sha256);
    if (partial == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for a blob's name");
    }
    bool last = offset + count == size;
    int result = append_chunk(partial, sha256, offset, bytes, count, err);
    if (result == 0 && last) {
        result = verify(partial, sha256, err) == 0 && publish(blobs, partial, sha256, err) == 0 ? 1 : -1;
    }
    if (result < 0) {
        unlink(partial);
    }
    free(partial);
    return result;
}

int blobs_delete(const struct blobs *blobs, const char *sha256, struct error *err)
{
    if (!sha256_is_valid(sha256)) {
        return blob_name_error(sha256, err);
    }
    char *path = blobs_path(blobs, sha256);
    if (path == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for a blob's name");
    }
    int result = unlink(path) == 0 || errno == ENOENT ? 0 : blob_file_error("remove", path, errno, err);
    free(path);
    return result;
}

int blobs_each(const struct blobs *blobs, int (*each_f)(void *user, const char *sha256), void *user,
               struct error *err)
{
    DIR *folder = opendir(blobs->folder);
    if (folder == NULL) {
        return blob_file_error("open", blobs->folder, errno, err);
    }
    struct dirent *entry;
    int result = 0;
    while (result == 0 && (entry = readdir(folder)) != NULL) {
        if (sha256_is_valid(entry->d_name) && each_f(user, entry->d_name) != 0) {
            result = error_set(err, ERROR_MEMORY, "no memory for the names of blobs");
        }
    }
    closedir(folder);
    return result;
}
