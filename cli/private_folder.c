/* Private folders below the folder for temporary files. */
#include "cli/private_folder.h"

#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "rung-"
#define UNIQUE "XXXXXX"
#define LOCK ".lock"
#define TRIES 10

/* The first that is there and short enough. */
static const char *find_base(void)
{
    const char *const candidates[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    const size_t count = sizeof(candidates) / sizeof(candidates[0]);
    for (size_t i = 0; i + 1 < count; i++) {
        const char *base = candidates[i];
        if (base && base[0] == '/' && strlen(base) + sizeof("/" PREFIX UNIQUE) <= PRIVATE_FOLDER_SIZE &&
            access(base, W_OK | X_OK) == 0)
            return base;
    }
    return candidates[count - 1];
}

static int lock_file(const char *folder, int flags, int how)
{
    char path[PRIVATE_FOLDER_SIZE + sizeof("/" LOCK)];
    snprintf(path, sizeof(path), "%s/" LOCK, folder);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd >= 0 && flock(fd, how) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* One of ours, complete, with nobody holding its lock. */
static void remove_if_stale(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return;
    int fd = lock_file(path, 0, LOCK_EX | LOCK_NB);
    if (fd < 0)
        return;
    folder_remove(path, NULL);
    close(fd);
}

static void remove_stale(const char *base)
{
    DIR *listing = opendir(base);
    const struct dirent *entry;
    while (listing && (entry = readdir(listing))) {
        char path[PRIVATE_FOLDER_SIZE];
        bool is_like_ours = strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
                            strlen(entry->d_name) == strlen(PREFIX UNIQUE);
        if (is_like_ours && (size_t)snprintf(path, sizeof(path), "%s/%s", base, entry->d_name) < sizeof(path))
            remove_if_stale(path);
    }
    if (listing)
        closedir(listing);
}

int private_folder_make(struct private_folder *folder, struct error *err)
{
    const char *base = find_base();
    remove_stale(base);
    for (int i = 0; i < TRIES; i++) {
        struct stat status;
        snprintf(folder->path, sizeof(folder->path), "%s/" PREFIX UNIQUE, base);
        if (!mkdtemp(folder->path))
            break;
        folder->lock_fd = lock_file(folder->path, O_CREAT, LOCK_EX);
        /* Between the file's making and its lock another process may have taken the folder for a stale one.
         */
        if (folder->lock_fd >= 0 && fstat(folder->lock_fd, &status) == 0 && status.st_nlink > 0)
            return 0;
        private_folder_remove(folder);
    }
    folder->path[0] = '\0';
    return error_set(err, ERROR_RESOURCE, "make a private folder below %s (TMPDIR names another): %s", base,
                     strerror(errno));
}

void private_folder_remove(struct private_folder *folder)
{
    if (folder->path[0] == '\0')
        return;
    folder_remove(folder->path, NULL);
    if (folder->lock_fd >= 0)
        close(folder->lock_fd);
    folder->path[0] = '\0';
}
