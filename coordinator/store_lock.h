/* One coordinator per database: an flock on PATH.lock, which names its holder. And where a database may live:
 * WAL needs shared memory between processes, which network file systems do not give. */
#ifndef RUNG_COORDINATOR_STORE_LOCK_H
#define RUNG_COORDINATOR_STORE_LOCK_H

#include "base/error.h"

#include <stdbool.h>

struct store_lock {
    int fd;     /* -1: not held */
    char *path; /* of the lock file; owned */
};

/* Takes the lock of database `path` without waiting. -1: held (ERROR_RESOURCE names pid and host) or not
 * creatable. */
int store_lock_take(struct store_lock *lock, const char *path, struct error *err);
/* Does a coordinator hold it? Takes a shared lock for a moment where the file was left behind. */
bool store_lock_is_held(const char *path);
/* Gives it back and removes the file; does nothing when not held. */
void store_lock_give(struct store_lock *lock);

/* Name of the network file system that the folder of `path` is on ("NFS", ...), or NULL: a local one. */
const char *store_network_file_system(const char *path);
/* The same for a statfs magic number, and for a line of /proc/self/mountinfo (FUSE types). */
const char *store_network_magic(unsigned long magic);
const char *store_network_mount(const char *mountinfo_line);

#endif
