/* A shim over SQLite's default VFS that fails or delays calls: the i-th write, sync or open of a database.
 *
 * Tests loop `for (i = 1;; i++) { test_vfs_fail(vfs, calls, i, code); ...; if (!test_vfs_failed(vfs)) break;
 * }`: until a pass meets no fault any more. Benchmarks delay syncs to stand for a slower disk. Counters are
 * atomic; create and destroy from one thread. */
#ifndef RUNG_TESTS_SUPPORT_VFS_H
#define RUNG_TESTS_SUPPORT_VFS_H

#include <stdbool.h>

enum test_vfs_call {
    TEST_VFS_OPEN = 1,
    TEST_VFS_READ = 2,
    TEST_VFS_WRITE = 4,
    TEST_VFS_SYNC = 8,
    TEST_VFS_TRUNCATE = 16,
    TEST_VFS_DELETE = 32,
    TEST_VFS_SHARED_MEMORY = 64, /* mapping the WAL's index */
    TEST_VFS_ALL = 127,
};

enum test_vfs_fault {
    TEST_VFS_FAULT_IO,   /* SQLITE_IOERR_* of the call */
    TEST_VFS_FAULT_FULL, /* SQLITE_FULL, after half of the bytes were written */
    TEST_VFS_FAULT_KILL, /* the process is killed there, as by kill -9; a write is half done */
};

struct test_vfs;
/* Registers a VFS of that name, to be given to store_open. NULL: no memory, or SQLite refused. */
struct test_vfs *test_vfs_create(const char *name);
/* No database may be open through it any more. */
void test_vfs_destroy(struct test_vfs *vfs);

/* The nth call from now (from 1) of the kinds in `calls` fails, once; 0 = none. Resets the counts. */
void test_vfs_fail(struct test_vfs *vfs, unsigned calls, long nth, enum test_vfs_fault fault);
/* As test_vfs_fail, but every later call fails too, until the next test_vfs_fail: a disk that stays full. */
void test_vfs_fail_from(struct test_vfs *vfs, unsigned calls, long nth, enum test_vfs_fault fault);
/* Has a fault been injected since the last test_vfs_fail? */
bool test_vfs_failed(const struct test_vfs *vfs);

/* Every sync takes this much longer. */
void test_vfs_delay_sync(struct test_vfs *vfs, int milliseconds);
/* Syncs since the VFS was made, and files open now. */
long test_vfs_syncs(const struct test_vfs *vfs);
long test_vfs_open_files(const struct test_vfs *vfs);

#endif
