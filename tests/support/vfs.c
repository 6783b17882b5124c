/* The shim: every file wraps one of the default VFS; a call may be failed before it gets there. */
#include "tests/support/vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct test_vfs {
    sqlite3_vfs vfs; /* first: SQLite gives us a pointer to it */
    sqlite3_vfs *base;
    char *name;
    atomic_uint calls;
    _Atomic enum test_vfs_fault fault;
    atomic_bool stays;
    atomic_int delay_ms;
    atomic_long nth, seen, failures, syncs, open_files;
};

struct shim_file {
    sqlite3_file file; /* first */
    struct test_vfs *vfs;
    sqlite3_file *real; /* in the same allocation, behind this struct */
};

/* Is this the call to fail? */
static bool strikes(struct test_vfs *vfs, enum test_vfs_call call)
{
    long nth = atomic_load(&vfs->nth);
    if (nth == 0 || (vfs->calls & call) == 0) {
        return false;
    }
    long seen = atomic_fetch_add(&vfs->seen, 1) + 1;
    bool strike = seen == nth || (vfs->stays && seen > nth);
    atomic_fetch_add(&vfs->failures, strike);
    if (strike && vfs->fault == TEST_VFS_FAULT_KILL && call != TEST_VFS_WRITE) {
        kill(getpid(), SIGKILL);
    }
    return strike;
}

static int fault_code(const struct test_vfs *vfs, int io_code)
{
    return vfs->fault == TEST_VFS_FAULT_FULL ? SQLITE_FULL : io_code;
}

static struct shim_file *shim(sqlite3_file *file)
{
    return (struct shim_file *)file;
}

static sqlite3_file *real(sqlite3_file *file)
{
    return shim(file)->real;
}

static int shim_close(sqlite3_file *file)
{
    atomic_fetch_sub(&shim(file)->vfs->open_files, 1);
    return real(file)->pMethods->xClose(real(file));
}

static int shim_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset)
{
    return strikes(shim(file)->vfs, TEST_VFS_READ)
               ? SQLITE_IOERR_READ
               : real(file)->pMethods->xRead(real(file), bytes, count, offset);
}

static int shim_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
    if (strikes(shim(file)->vfs, TEST_VFS_WRITE)) {
        real(file)->pMethods->xWrite(real(file), bytes, count / 2, offset);
        if (shim(file)->vfs->fault == TEST_VFS_FAULT_KILL) {
            kill(getpid(), SIGKILL);
        }
        return fault_code(shim(file)->vfs, SQLITE_IOERR_WRITE);
    }
    return real(file)->pMethods->xWrite(real(file), bytes, count, offset);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return strikes(shim(file)->vfs, TEST_VFS_TRUNCATE) ? SQLITE_IOERR_TRUNCATE
                                                       : real(file)->pMethods->xTruncate(real(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
    struct test_vfs *vfs = shim(file)->vfs;
    atomic_fetch_add(&vfs->syncs, 1);
    if (vfs->delay_ms > 0) {
        struct timespec pause = {.tv_sec = vfs->delay_ms / 1000, .tv_nsec = vfs->delay_ms % 1000 * 1000000L};
        nanosleep(&pause, NULL);
    }
    return strikes(vfs, TEST_VFS_SYNC) ? fault_code(vfs, SQLITE_IOERR_FSYNC)
                                       : real(file)->pMethods->xSync(real(file), flags);
}

static int shim_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real(file)->pMethods->xFileSize(real(file), size);
}

static int shim_lock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xLock(real(file), level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int shim_check_reserved_lock(sqlite3_file *file, int *reserved)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), reserved);
}

static int shim_file_control(sqlite3_file *file, int operation, void *argument)
{
    return real(file)->pMethods->xFileControl(real(file), operation, argument);
}

static int shim_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int shim_characteristics(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
    return strikes(shim(file)->vfs, TEST_VFS_SHARED_MEMORY)
               ? SQLITE_IOERR_SHMMAP
               : real(file)->pMethods->xShmMap(real(file), page, size, extend, memory);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int shim_shm_unmap(sqlite3_file *file, int remove)
{
    return real(file)->pMethods->xShmUnmap(real(file), remove);
}

/* Version 2: shared memory, no memory-mapped reads, which could not be failed. */
static const sqlite3_io_methods shim_methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_file_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_check_reserved_lock,
    .xFileControl = shim_file_control,
    .xSectorSize = shim_sector_size,
    .xDeviceCharacteristics = shim_characteristics,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

static int shim_open(sqlite3_vfs *base, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    struct shim_file *opened = shim(file);
    *opened = (struct shim_file){.vfs = vfs, .real = (sqlite3_file *)(opened + 1)};
    if (strikes(vfs, TEST_VFS_OPEN)) {
        return SQLITE_CANTOPEN;
    }
    int code = vfs->base->xOpen(vfs->base, name, opened->real, flags, out_flags);
    /* SQLite closes a file whose open failed if it has methods, and only then. */
    if (opened->real->pMethods != NULL) {
        opened->file.pMethods = &shim_methods;
        atomic_fetch_add(&vfs->open_files, 1);
    }
    return code;
}

static int shim_delete(sqlite3_vfs *base, const char *name, int sync_folder)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return strikes(vfs, TEST_VFS_DELETE) ? SQLITE_IOERR_DELETE
                                         : vfs->base->xDelete(vfs->base, name, sync_folder);
}

static int shim_access(sqlite3_vfs *base, const char *name, int flags, int *result)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return vfs->base->xAccess(vfs->base, name, flags, result);
}

static int shim_full_pathname(sqlite3_vfs *base, const char *name, int size, char *out)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return vfs->base->xFullPathname(vfs->base, name, size, out);
}

static int shim_randomness(sqlite3_vfs *base, int size, char *out)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return vfs->base->xRandomness(vfs->base, size, out);
}

static int shim_sleep(sqlite3_vfs *base, int microseconds)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return vfs->base->xSleep(vfs->base, microseconds);
}

static int shim_current_time(sqlite3_vfs *base, double *time)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return vfs->base->xCurrentTime(vfs->base, time);
}

static int shim_last_error(sqlite3_vfs *base, int size, char *message)
{
    struct test_vfs *vfs = (struct test_vfs *)base;
    return vfs->base->xGetLastError(vfs->base, size, message);
}

struct test_vfs *test_vfs_create(const char *name)
{
    struct test_vfs *vfs = calloc(1, sizeof *vfs);
    sqlite3_vfs *base = sqlite3_vfs_find(NULL);
    if (vfs == NULL || base == NULL || (vfs->name = strdup(name)) == NULL) {
        free(vfs);
        return NULL;
    }
    vfs->base = base;
    vfs->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct shim_file) + base->szOsFile,
        .mxPathname = base->mxPathname,
        .zName = vfs->name,
        .xOpen = shim_open,
        .xDelete = shim_delete,
        .xAccess = shim_access,
        .xFullPathname = shim_full_pathname,
        .xRandomness = shim_randomness,
        .xSleep = shim_sleep,
        .xCurrentTime = shim_current_time,
        .xGetLastError = shim_last_error,
    };
    if (sqlite3_vfs_register(&vfs->vfs, 0) != SQLITE_OK) {
        free(vfs->name);
        free(vfs);
        return NULL;
    }
    return vfs;
}

void test_vfs_destroy(struct test_vfs *vfs)
{
    if (vfs != NULL) {
        sqlite3_vfs_unregister(&vfs->vfs);
        free(vfs->name);
        free(vfs);
    }
}

static void arm(struct test_vfs *vfs, unsigned calls, long nth, enum test_vfs_fault fault, bool stays)
{
    vfs->calls = calls;
    vfs->fault = fault;
    vfs->stays = stays;
    atomic_store(&vfs->seen, 0);
    atomic_store(&vfs->failures, 0);
    atomic_store(&vfs->nth, nth);
}

void test_vfs_fail(struct test_vfs *vfs, unsigned calls, long nth, enum test_vfs_fault fault)
{
    arm(vfs, calls, nth, fault, false);
}

void test_vfs_fail_from(struct test_vfs *vfs, unsigned calls, long nth, enum test_vfs_fault fault)
{
    arm(vfs, calls, nth, fault, true);
}

bool test_vfs_failed(const struct test_vfs *vfs)
{
    return atomic_load(&vfs->failures) > 0;
}

void test_vfs_delay_sync(struct test_vfs *vfs, int milliseconds)
{
    vfs->delay_ms = milliseconds;
}

long test_vfs_syncs(const struct test_vfs *vfs)
{
    return atomic_load(&vfs->syncs);
}

long test_vfs_open_files(const struct test_vfs *vfs)
{
    return atomic_load(&vfs->open_files);
}
