/* Folders of an agent, and the checkpoints it keeps. */
#include "worker/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int lock_file(const char *folder, int how)
{
    char *path = path_join(folder, ".lock");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    free(path);
    if (fd >= 0 && flock(fd, how) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

/* Removes private folders whose agent is gone: nobody holds their lock. */
static void remove_stale(const char *agents)
{
    DIR *listing = opendir(agents);
    struct dirent *entry;
    while (listing && (entry = readdir(listing))) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *folder = path_join(agents, entry->d_name);
        int fd = folder ? lock_file(folder, LOCK_EX | LOCK_NB) : -1;
        if (fd >= 0) {
            folder_remove(folder, NULL);
            close(fd);
        }
        free(folder);
    }
    if (listing) {
        closedir(listing);
    }
}

static int make_private(struct scratch *scratch, const char *agents, struct error *err)
{
    char name[33];
    random_hex(name, 8);
    if (folder_create(agents, 0700, err) != 0) {
        return -1;
    }
    /* Between the making of a folder and its lock another agent must not take it for a stale one. */
    int all = lock_file(agents, LOCK_EX);
    if (all < 0) {
        return error_set(err, ERROR_RESOURCE, "lock %s: %s", agents, strerror(errno));
    }
    remove_stale(agents);
    int result = -1;
    scratch->folder = path_join(agents, name);
    if (!scratch->folder) {
        error_set(err, ERROR_MEMORY, "no memory");
    } else if (folder_create(scratch->folder, 0700, err) == 0) {
        scratch->lock_fd = lock_file(scratch->folder, LOCK_EX);
        result = scratch->lock_fd >= 0
                     ? 0
                     : error_set(err, ERROR_RESOURCE, "lock %s: %s", scratch->folder, strerror(errno));
    }
    close(all);
    return result;
}

int scratch_open(struct scratch *scratch, const char *folder, struct error *err)
{
    memset(scratch, 0, sizeof *scratch);
    scratch->lock_fd = -1;
    char *cache = folder ? strdup(folder) : path_cache_folder();
    if (!cache) {
        return error_set(err, ERROR_RESOURCE, "no home folder for cached data; give one with --dir PATH");
    }
    char *agents = path_join(cache, "agents");
    scratch->blobs = path_join(cache, "blobs");
    int result = agents && scratch->blobs ? 0 : error_set(err, ERROR_MEMORY, "no memory");
    if (result == 0) {
        result = folder_create(scratch->blobs, 0700, err);
    }
    if (result == 0) {
        result = make_private(scratch, agents, err);
    }
    free(agents);
    free(cache);
    if (result != 0) {
        scratch_close(scratch);
    }
    return result;
}

void scratch_close(struct scratch *scratch)
{
    if (scratch->folder && scratch->lock_fd >= 0) {
        folder_remove(scratch->folder, NULL);
    }
    if (scratch->lock_fd >= 0) {
        close(scratch->lock_fd);
    }
    free(scratch->folder);
    free(scratch->blobs);
    free(scratch->kept);
    memset(scratch, 0, sizeof *scratch);
    scratch->lock_fd = -1;
}

char *scratch_blob_path(const struct scratch *scratch, const char *sha256)
{
    return path_join(scratch->blobs, sha256);
}

char *scratch_checkpoint_path(const struct scratch *scratch, const char *sha256)
{
    return path_join(scratch->folder, sha256);
}

char *scratch_save_path(const struct scratch *scratch, int64_t trial, int64_t attempt)
{
    char name[64];
    snprintf(name, sizeof name, "trial-%06lld-attempt-%lld.safetensors", (long long)trial,
             (long long)attempt);
    return path_join(scratch->folder, name);
}

static void scratch_forget(struct scratch *scratch, size_t index)
{
    scratch->kept_bytes -= scratch->kept[index].bytes;
    memmove(&scratch->kept[index], &scratch->kept[index + 1],
            (scratch->kept_count - index - 1) * sizeof *scratch->kept);
    scratch->kept_count--;
}

static void scratch_remove(struct scratch *scratch, const char *sha256)
{
    char *path = scratch_checkpoint_path(scratch, sha256);
    if (path) {
        unlink(path);
    }
    free(path);
}

void scratch_drop(struct scratch *scratch, const char *sha256)
{
    scratch_remove(scratch, sha256);
    for (size_t i = 0; i < scratch->kept_count; i++) {
        if (strcmp(scratch->kept[i].sha256, sha256) == 0) {
            scratch_forget(scratch, i);
            return;
        }
    }
}

void scratch_keep(struct scratch *scratch, const char *sha256, int64_t bytes)
{
    for (size_t i = 0; i < scratch->kept_count; i++) {
        if (strcmp(scratch->kept[i].sha256, sha256) == 0) {
            scratch_forget(scratch, i); /* it becomes the newest */
            break;
        }
    }
    if (scratch->kept_count == scratch->kept_capacity) {
        size_t capacity = scratch->kept_capacity ? 2 * scratch->kept_capacity : 16;
        struct kept_checkpoint *kept = realloc(scratch->kept, capacity * sizeof *kept);
        if (!kept) {
            return; /* it stays until the folder goes */
        }
        scratch->kept = kept;
        scratch->kept_capacity = capacity;
    }
    struct kept_checkpoint *newest = &scratch->kept[scratch->kept_count++];
    snprintf(newest->sha256, sizeof newest->sha256, "%s", sha256);
    newest->bytes = bytes;
    scratch->kept_bytes += bytes;
    /* The newest always stays: a runner may be about to read it. */
    while (scratch->kept_bytes > SCRATCH_KEPT_BYTES && scratch->kept_count > 1) {
        scratch_remove(scratch, scratch->kept[0].sha256);
        scratch_forget(scratch, 0);
    }
}

void scratch_keep_file(struct scratch *scratch, const char *path, const char *sha256, int64_t bytes)
{
    char *kept = scratch_checkpoint_path(scratch, sha256);
    if (kept && rename(path, kept) == 0) {
        scratch_keep(scratch, sha256, bytes);
    } else {
        unlink(path);
    }
    free(kept);
}
