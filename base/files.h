/* Files: whole reads, durable atomic writes, folders, hashes. Errors are ERROR_RESOURCE and name the path and
 * the system's reason. Paths are plain byte strings. */
#ifndef RUNG_BASE_FILES_H
#define RUNG_BASE_FILES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whole file plus a NUL behind it; free() it. "-" is standard input. `limit` 0 = no limit. */
char *file_read(const char *path, size_t limit, size_t *size, struct error *err);
/* Write under a temporary name beside `path`, fsync, rename, fsync the folder. */
int file_write(const char *path, const void *bytes, size_t size, mode_t mode, struct error *err);
/* The same without waiting for the disk: whole or not at all, unless the power fails. */
int file_write_unsynced(const char *path, const void *bytes, size_t size, mode_t mode, struct error *err);
bool file_exists(const char *path);
/* mkdir -p with `mode` for new folders. */
int folder_create(const char *path, mode_t mode, struct error *err);
/* rm -r of a folder of ours (does not follow links); a missing one is no error. */
int folder_remove(const char *path, struct error *err);
/* "folder/name" (or name when it is absolute); free() it. */
char *path_join(const char *folder, const char *name);
/* Folder part of a path ("." when there is none); free() it. */
char *path_folder(const char *path);
/* $XDG_CACHE_HOME/rung or ~/.cache/rung; $XDG_CONFIG_HOME/rung or ~/.config/rung. free() them; NULL: no
 * home. */
char *path_cache_folder(void);
char *path_config_folder(void);

#define SHA256_TEXT 65 /* 64 hex digits and NUL */
void sha256_bytes(const void *bytes, size_t size, char hex[SHA256_TEXT]);
int sha256_file(const char *path, char hex[SHA256_TEXT], int64_t *size, struct error *err);
bool sha256_is_valid(const char *hex); /* exactly 64 lower-case hex digits */

/* `count` random bytes from the system as 2*count lower-case hex digits and NUL. */
void random_hex(char *hex, size_t count);

#endif
