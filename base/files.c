/* Whole files: read, write so that either the old or the new content survives a crash. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP (64 * 1024)

/* Reads to the end; the size of a pipe or a /proc file is not known before. */
static char *read_all(int fd, const char *path, size_t limit, size_t *size, struct error *err)
{
    struct stat status;
    size_t capacity = READ_STEP, used = 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size < SIZE_MAX / 4)
        capacity = (size_t)status.st_size + 2; /* the NUL, and one to see the end without growing */
    char *bytes = malloc(capacity);
    while (bytes) {
        if (used + 1 == capacity) {
            char *grown = capacity < SIZE_MAX / 2 ? realloc(bytes, capacity * 2) : NULL;
            if (!grown)
                break;
            bytes = grown;
            capacity *= 2;
        }
        ssize_t got = read(fd, bytes + used, capacity - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_set_errno(err, "read", path);
            free(bytes);
            return NULL;
        }
        used += (size_t)got;
        if (limit && used > limit) {
            error_set(err, ERROR_RESOURCE, "read %s: larger than %zu bytes", path, limit);
            free(bytes);
            return NULL;
        }
        if (got == 0) {
            bytes[used] = '\0';
            if (size)
                *size = used;
            return bytes;
        }
    }
    free(bytes);
    error_set(err, ERROR_MEMORY, "read %s: out of memory", path);
    return NULL;
}

char *file_read(const char *path, size_t limit, size_t *size, struct error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", limit, size, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        error_set_errno(err, "open", path);
        return NULL;
    }
    char *bytes = read_all(fd, path, limit, size, err);
    close(fd);
    return bytes;
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Makes the rename itself durable. Some file systems cannot sync a folder (EINVAL); there it is not needed.
 */
static int folder_sync(const char *path)
{
    char *folder = path_folder(path);
    if (!folder) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return -1;
    int result = fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
    int reason = errno;
    close(fd);
    errno = reason;
    return result;
}

/* Everything but the folder's sync. */
static int write_and_rename(const char *path, const void *bytes, size_t size, mode_t mode, bool sync,
                            struct error *err)
{
    char suffix[17];
    random_hex(suffix, sizeof suffix / 2);
    size_t length = strlen(path) + sizeof suffix + sizeof ".tmp-";
    char *temporary = malloc(length);
    if (!temporary)
        return error_set(err, ERROR_MEMORY, "write %s: out of memory", path);
    snprintf(temporary, length, "%s.tmp-%s", path, suffix);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        error_set_errno(err, "write", path);
        free(temporary);
        return -1;
    }
    bool written = write_all(fd, bytes, size) == 0 && (!sync || fsync(fd) == 0);
    int reason = errno;
    if (close(fd) != 0 && written) {
        reason = errno;
        written = false;
    }
    if (written && rename(temporary, path) != 0) {
        reason = errno;
        written = false;
    }
    if (!written) {
        unlink(temporary);
        errno = reason;
        error_set_errno(err, "write", path);
    }
    free(temporary);
    return written ? 0 : -1;
}

int file_write(const char *path, const void *bytes, size_t size, mode_t mode, struct error *err)
{
    if (write_and_rename(path, bytes, size, mode, true, err) != 0)
        return -1;
    return folder_sync(path) == 0 ? 0 : error_set_errno(err, "sync the folder of", path);
}

int file_write_unsynced(const char *path, const void *bytes, size_t size, mode_t mode, struct error *err)
{
    return write_and_rename(path, bytes, size, mode, false, err);
}

bool file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}
