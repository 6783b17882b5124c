/* Promises: blobs that somebody is sending, or was told are stored, and has not named yet. Two attempts may
 * make the same checkpoint; while one is about to name it, the farewell of the other must not take it. Not
 * thread-safe. */
#ifndef RUNG_COORDINATOR_SERVER_PROMISES_H
#define RUNG_COORDINATOR_SERVER_PROMISES_H

#include "base/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct promise {
    char sha256[SHA256_TEXT];
    uint64_t owner;
    int64_t made_ns;
};

struct promises {
    struct promise *list;
    size_t count, capacity;
};

void promises_release(struct promises *promises);
/* One for each sender of a blob, however often it is made. -1: no memory. */
int promises_make(struct promises *promises, const char *sha256, uint64_t owner, int64_t now_ns);
/* The blob was named: its oldest promise is kept and gone. */
void promises_keep(struct promises *promises, const char *sha256, int64_t now_ns);
/* Whether a promise of this blob is open. */
bool promises_hold(struct promises *promises, const char *sha256, int64_t now_ns);

#endif
