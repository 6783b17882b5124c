/* An agent's folders below --dir: `blobs` (data by hash, shared by all agents of the machine, kept) and a
 * private one with checkpoints, gone with the agent; one left behind by a killed agent is removed by the next
 * to start. */
#ifndef RUNG_WORKER_SCRATCH_H
#define RUNG_WORKER_SCRATCH_H

#include "base/error.h"
#include "base/files.h"

#include <stddef.h>
#include <stdint.h>

/* Checkpoints are kept after their upload, so that a trial promoted on the same worker needs no download; the
 * oldest go beyond this many bytes. */
#define SCRATCH_KEPT_BYTES (256LL << 20)

struct kept_checkpoint {
    char sha256[SHA256_TEXT];
    int64_t bytes;
};

struct scratch {
    char *blobs;
    char *folder;                 /* private */
    int lock_fd;                  /* of the private folder: held while the agent lives */
    struct kept_checkpoint *kept; /* oldest first */
    size_t kept_count, kept_capacity;
    int64_t kept_bytes;
};

/* `folder` NULL: the cache folder. */
int scratch_open(struct scratch *scratch, const char *folder, struct error *err);
void scratch_close(struct scratch *scratch);

/* Paths; free() them; NULL without memory. */
char *scratch_blob_path(const struct scratch *scratch, const char *sha256);
char *scratch_checkpoint_path(const struct scratch *scratch, const char *sha256);
char *scratch_save_path(const struct scratch *scratch, int64_t trial, int64_t attempt);

/* The file at scratch_checkpoint_path(sha256) may be needed again; others may have to go for it. */
void scratch_keep(struct scratch *scratch, const char *sha256, int64_t bytes);
/* What is at scratch_checkpoint_path(sha256) is damaged. */
void scratch_drop(struct scratch *scratch, const char *sha256);
/* Moves a checkpoint that was uploaded from `path` there, and keeps it. */
void scratch_keep_file(struct scratch *scratch, const char *path, const char *sha256, int64_t bytes);

#endif
