/* The lock beside a database, and the check of its file system. */
#include "coordinator/store_lock.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define HOLDER_SIZE 300 /* "pid host\n" */

static const struct {
    unsigned long magic;
    const char *name;
} network_magics[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},      {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB2"},
    {0x5346414F, "AFS"},    {0x6B414653, "AFS"},  {0x73757245, "Coda"},   {0x00C36400, "Ceph"},
    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"},
    {0xAAD7AAEA, "PanFS"},
};

/* FUSE has one magic number for local overlays (fine) and for these. */
#define FUSE_MAGIC 0x65735546UL
static const char *const network_fuse_types[] = {
    "fuse.sshfs",   "fuse.s3fs",      "fuse.rclone",    "fuse.gcsfuse", "fuse.goofys",
    "fuse.juicefs", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.davfs",   "fuse.mount-s3",
};

const char *store_network_magic(unsigned long magic)
{
    for (size_t i = 0; i < sizeof network_magics / sizeof *network_magics; i++) {
        if (network_magics[i].magic == (magic & 0xFFFFFFFFUL)) {
            return network_magics[i].name;
        }
    }
    return NULL;
}

const char *store_network_mount(const char *mountinfo_line)
{
    const char *separator = strstr(mountinfo_line, " - ");
    for (size_t i = 0; separator != NULL && i < sizeof network_fuse_types / sizeof *network_fuse_types; i++) {
        size_t size = strlen(network_fuse_types[i]);
        if (strncmp(separator + 3, network_fuse_types[i], size) == 0 && separator[3 + size] == ' ') {
            return network_fuse_types[i];
        }
    }
    return NULL;
}

/* Finds the mount of a device number: lines are "36 35 0:32 / /mnt rw,noatime - fuse.sshfs host:/dir rw". */
static const char *fuse_network_mount(dev_t device)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    const char *name = NULL;
    char *line = NULL;
    size_t capacity = 0;
    while (mounts != NULL && name == NULL && getline(&line, &capacity, mounts) > 0) {
        unsigned int major_number, minor_number;
        if (sscanf(line, "%*d %*d %u:%u", &major_number, &minor_number) == 2 &&
            major_number == major(device) && minor_number == minor(device)) {
            name = store_network_mount(line);
        }
    }
    free(line);
    if (mounts != NULL) {
        fclose(mounts);
    }
    return name;
}

const char *store_network_file_system(const char *path)
{
    char *folder = path_folder(path);
    struct statfs facts;
    struct stat status;
    const char *name = NULL;
    if (folder != NULL && statfs(folder, &facts) == 0) {
        name = store_network_magic((unsigned long)facts.f_type);
        if (((unsigned long)facts.f_type & 0xFFFFFFFFUL) == FUSE_MAGIC && stat(folder, &status) == 0) {
            name = fuse_network_mount(status.st_dev);
        }
    }
    free(folder);
    return name;
}

/* "by process 4711 on host node3", from what the holder wrote; it may be writing just now. */
static int lock_refuse(int fd, const char *path, struct error *err)
{
    char holder[HOLDER_SIZE] = "";
    ssize_t size = pread(fd, holder, sizeof holder - 1, 0);
    holder[size > 0 ? size : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    char *host = strchr(holder, ' ');
    if (host == NULL) {
        return error_set(
            err, ERROR_RESOURCE,
            "database %s is in use by another coordinator; wait until it has ended, or choose another --db",
            path);
    }
    *host++ = '\0';
    return error_set(
        err, ERROR_RESOURCE,
        "database %s is in use by the coordinator with pid %s on host %s; wait until it has ended, or choose "
        "another --db",
        path, holder, host);
}

static int lock_sign(int fd)
{
    char host[256] = "unknown";
    char holder[HOLDER_SIZE];
    gethostname(host, sizeof host - 1);
    host[sizeof host - 1] = '\0';
    int size = snprintf(holder, sizeof holder, "%ld %s\n", (long)getpid(), host);
    return ftruncate(fd, 0) == 0 && pwrite(fd, holder, (size_t)size, 0) == size ? 0 : -1;
}

/* Is `fd` still the file called `path`? A holder that ended removed it after we had opened it. */
static bool lock_is_current(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

static int lock_file_error(const char *path, int number, struct error *err)
{
    if (number == ENOENT) {
        return error_set(err, ERROR_RESOURCE,
                         "database %s: its folder does not exist; create it or choose another --db", path);
    }
    if (number == EACCES || number == EPERM || number == EROFS) {
        return error_set(err, ERROR_RESOURCE,
                         "database %s: its folder cannot be written (%s); choose another --db", path,
                         strerror(number));
    }
    if (number == ENOSPC || number == EDQUOT) {
        return error_set(err, ERROR_RESOURCE, "database %s: the disk is full; free some space", path);
    }
    return error_set(err, ERROR_RESOURCE, "database %s: cannot lock it: %s%s", path, strerror(number),
                     number == EMFILE ? "; allow more with: ulimit -n 1024" : "");
}

/* A reader that looks (store_lock_is_held) is gone within microseconds; a coordinator stays. */
#define TRIES 5
#define TRY_NS (5 * NS_PER_MS)

static int lock_exclusively(int fd)
{
    const struct timespec pause = {.tv_nsec = TRY_NS};
    int result = flock(fd, LOCK_EX | LOCK_NB);
    for (int i = 1; i < TRIES && result != 0 && errno == EWOULDBLOCK; i++) {
        nanosleep(&pause, NULL);
        result = flock(fd, LOCK_EX | LOCK_NB);
    }
    return result;
}

int store_lock_take(struct store_lock *lock, const char *path, struct error *err)
{
    struct text name;
    text_init(&name);
    text_printf(&name, "%s.lock", path);
    *lock = (struct store_lock){.fd = -1, .path = text_steal(&name)};
    if (lock->path == NULL) {
        return error_set(err, ERROR_MEMORY, "no memory for the lock's name");
    }
    for (;;) {
        int fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            lock_file_error(path, errno, err);
            goto fail;
        }
        if (lock_exclusively(fd) != 0) {
            if (errno == EWOULDBLOCK) {
                lock_refuse(fd, path, err);
            } else {
                lock_file_error(path, errno, err);
            }
            close(fd);
            goto fail;
        }
        if (!lock_is_current(fd, lock->path)) {
            close(fd);
            continue;
        }
        lock->fd = fd;
        if (lock_sign(fd) != 0) {
            lock_file_error(path, errno, err);
            goto fail;
        }
        return 0;
    }
fail:
    store_lock_give(lock);
    return -1;
}

bool store_lock_is_held(const char *path)
{
    struct text name;
    text_init(&name);
    text_printf(&name, "%s.lock", path);
    int fd = name.failed ? -1 : open(name.data, O_RDONLY | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) {
        close(fd);
    }
    text_release(&name);
    return held;
}

void store_lock_give(struct store_lock *lock)
{
    if (lock->fd >= 0) {
        unlink(lock->path);
        close(lock->fd);
    }
    free(lock->path);
    *lock = (struct store_lock){.fd = -1};
}
