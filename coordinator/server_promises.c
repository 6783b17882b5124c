/* A short list: an entry for each upload between its first piece and the `ended` that names it. */
#include "coordinator/server_promises.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* Whoever was told that a blob is stored names it at once; after so long it will not come. */
#define PROMISE_NS (120 * NS_PER_SECOND)

void promises_release(struct promises *promises)
{
    free(promises->list);
    *promises = (struct promises){0};
}

static void promises_expire(struct promises *promises, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < promises->count; i++) {
        if (now_ns - promises->list[i].made_ns < PROMISE_NS) {
            promises->list[kept++] = promises->list[i];
        }
    }
    promises->count = kept;
}

static int promises_grow(struct promises *promises)
{
    if (promises->count < promises->capacity) {
        return 0;
    }
    size_t capacity = promises->capacity ? 2 * promises->capacity : 64;
    struct promise *list = realloc(promises->list, capacity * sizeof *list);
    if (!list) {
        return -1;
    }
    promises->list = list;
    promises->capacity = capacity;
    return 0;
}

int promises_make(struct promises *promises, const char *sha256, uint64_t owner, int64_t now_ns)
{
    promises_expire(promises, now_ns);
    for (size_t i = 0; i < promises->count; i++) {
        struct promise *promise = &promises->list[i];
        if (promise->owner == owner && strcmp(promise->sha256, sha256) == 0) {
            promise->made_ns = now_ns;
            return 0;
        }
    }
    if (promises_grow(promises)) {
        return -1;
    }
    struct promise *promise = &promises->list[promises->count++];
    *promise = (struct promise){.owner = owner, .made_ns = now_ns};
    memcpy(promise->sha256, sha256, SHA256_TEXT);
    return 0;
}

static struct promise *promise_find(struct promises *promises, const char *sha256, int64_t now_ns)
{
    promises_expire(promises, now_ns);
    for (size_t i = 0; i < promises->count; i++) {
        if (strcmp(promises->list[i].sha256, sha256) == 0) {
            return &promises->list[i];
        }
    }
    return NULL;
}

void promises_keep(struct promises *promises, const char *sha256, int64_t now_ns)
{
    struct promise *promise = promise_find(promises, sha256, now_ns);
    if (promise) {
        size_t behind = (size_t)(promises->list + promises->count - promise) - 1;
        memmove(promise, promise + 1, behind * sizeof *promise);
        promises->count--;
    }
}

bool promises_hold(struct promises *promises, const char *sha256, int64_t now_ns)
{
    return promise_find(promises, sha256, now_ns) != NULL;
}
