/* Blobs: files named by their SHA-256 under FOLDER (DB.files/blobs), written under a temporary name,
 * verified, fsynced, renamed. Thread-safe: every function touches only the file system. */
#ifndef RUNG_COORDINATOR_BLOBS_H
#define RUNG_COORDINATOR_BLOBS_H

#include "base/error.h"
#include "base/files.h"

#include <stdbool.h>
#include <stdint.h>

#define BLOB_CHUNK (1 << 20) /* bytes in one chunk message */

struct blobs {
    char *folder;
};
int blobs_open(struct blobs *blobs, const char *folder,
               struct error *err); /* makes the folder, removes stale partial files */
void blobs_close(struct blobs *blobs);
bool blobs_has(const struct blobs *blobs, const char *sha256);
/* And its bytes still have that hash: reads all of them. */
bool blobs_has_whole(const struct blobs *blobs, const char *sha256);
char *blobs_path(const struct blobs *blobs, const char *sha256); /* free() it */
/* Copies a file in; returns its name and size. */
int blobs_import(const struct blobs *blobs, const char *path, char sha256[SHA256_TEXT], int64_t *size,
                 struct error *err);
/* Reads at most BLOB_CHUNK bytes at offset into `buffer`; returns the count, -1 err. *total = size of the
 * blob. */
int64_t blobs_read(const struct blobs *blobs, const char *sha256, int64_t offset, void *buffer,
                   int64_t *total, struct error *err);
/* Appends at `offset` of an upload by `owner` (a peer number); chunks must come in order (offset = bytes so
 * far; offset 0 starts again). When offset+count == size the hash is checked and the blob published:
 * returns 1. 0: more to come. */
int blobs_write(const struct blobs *blobs, uint64_t owner, const char *sha256, int64_t offset,
                const void *bytes, int64_t count, int64_t size, struct error *err);
/* Calls each_f for every blob (not for uploads under way), in no order; anything but 0 from it is taken for
 * a want of memory and ends the walk (-1). */
int blobs_each(const struct blobs *blobs, int (*each_f)(void *user, const char *sha256), void *user,
               struct error *err);
/* Removes uploads that nobody goes on with. */
int blobs_remove_partial(const struct blobs *blobs, struct error *err);
int blobs_delete(const struct blobs *blobs, const char *sha256, struct error *err);

#endif
