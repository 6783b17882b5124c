/* Checkpoints: a trial's newest stays while the trial may go on; after its end only the best trial's stays. A
 * blob is unneeded when the last trial that names it lets it go (equal trials make equal checkpoints). */
#include "coordinator/engine_state.h"
#include "coordinator/moves.h"

#include <stdlib.h>
#include <string.h>

/* The first 16 hex digits. Two blobs that share them are counted together, so that one may be kept too long,
 * never deleted too early. */
static uint64_t blob_key(const char *sha256)
{
    char digits[17] = {0};
    memcpy(digits, sha256, strnlen(sha256, 16));
    return strtoull(digits, NULL, 16);
}

void checkpoint_refer(struct engine *engine, const char *sha256)
{
    uintptr_t count = (uintptr_t)engine_table_get(&engine->blobs, blob_key(sha256));
    if (engine_table_put(&engine->blobs, blob_key(sha256), (void *)(count + 1)) < 0)
        engine_fail_memory(engine);
}

static void blob_unneeded(struct engine *engine, const char *sha256)
{
    struct effects *effects = engine->effects;
    if (effects->unneeded_count == effects->unneeded_capacity) {
        size_t capacity = effects->unneeded_capacity ? effects->unneeded_capacity * 2 : 16;
        void *grown = realloc(effects->unneeded_blobs, capacity * sizeof(*effects->unneeded_blobs));
        if (!grown) {
            engine_fail_memory(engine);
            return;
        }
        effects->unneeded_blobs = grown;
        effects->unneeded_capacity = capacity;
    }
    memcpy(effects->unneeded_blobs[effects->unneeded_count++], sha256, 65);
}

/* A blob named again in the turn in which it became unneeded must not be deleted. */
static void blob_needed(struct engine *engine, const char *sha256)
{
    struct effects *effects = engine->effects;
    for (size_t i = effects->unneeded_count; i-- > 0;)
        if (strcmp(effects->unneeded_blobs[i], sha256) == 0)
            memmove(effects->unneeded_blobs[i], effects->unneeded_blobs[--effects->unneeded_count], 65);
}

/* Equal work makes equal checkpoints: the trial's newest attempt may have been told that this very blob is
 * stored already, and be about to name it. So it is kept until the trial has ended. */
void checkpoint_orphan(struct engine *engine, struct trial *trial, const char *sha256)
{
    if (strlen(sha256) != sizeof(*trial->orphans) - 1)
        return;
    if (trial_state_is_end(trial->record.state)) {
        if (!engine_table_get(&engine->blobs, blob_key(sha256)))
            blob_unneeded(engine, sha256);
        return;
    }
    char(*orphans)[65] = realloc(trial->orphans, (trial->orphan_count + 1) * sizeof(*orphans));
    if (!orphans) {
        engine_fail_memory(engine);
        return;
    }
    trial->orphans = orphans;
    memcpy(orphans[trial->orphan_count++], sha256, sizeof(*orphans));
}

static void orphans_release(struct engine *engine, struct trial *trial)
{
    for (size_t i = 0; i < trial->orphan_count; i++)
        if (!engine_table_get(&engine->blobs, blob_key(trial->orphans[i])))
            blob_unneeded(engine, trial->orphans[i]);
    free(trial->orphans);
    trial->orphans = NULL;
    trial->orphan_count = 0;
}

void checkpoint_drop(struct engine *engine, struct trial *trial)
{
    char *sha256 = trial->record.checkpoint;
    if (!*sha256)
        return;
    uintptr_t count = (uintptr_t)engine_table_get(&engine->blobs, blob_key(sha256));
    if (count > 1) {
        engine_table_put(&engine->blobs, blob_key(sha256), (void *)(count - 1));
    } else {
        engine_table_remove(&engine->blobs, blob_key(sha256));
        blob_unneeded(engine, sha256);
    }
    *sha256 = '\0';
    trial->record.checkpoint_bytes = trial->record.checkpoint_resource = 0;
    engine_mark_trial(engine, trial);
}

void checkpoint_set(struct engine *engine, struct trial *trial, const char *sha256, int64_t bytes,
                    int64_t resource)
{
    if (strlen(sha256) != sizeof(trial->record.checkpoint) - 1)
        return; /* no name of a blob: the trial goes on from what it has */
    if (strcmp(sha256, trial->record.checkpoint) != 0) {
        checkpoint_drop(engine, trial);
        checkpoint_refer(engine, sha256);
        blob_needed(engine, sha256);
        memcpy(trial->record.checkpoint, sha256, sizeof(trial->record.checkpoint));
    }
    trial->record.checkpoint_bytes = bytes;
    trial->record.checkpoint_resource = resource;
    engine_mark_trial(engine, trial);
}

/* Keeps the checkpoint of the best trial that has ended. */
static void best_retire(struct engine *engine, struct trial *trial)
{
    struct trial *best = engine->best_ended;
    if (!trial->record.has_objective || (best && !ranking_order.before(trial, best))) {
        checkpoint_drop(engine, trial);
        return;
    }
    engine->best_ended = trial;
    if (best)
        checkpoint_drop(engine, best);
}

void checkpoint_retire(struct engine *engine, struct trial *trial)
{
    if (!trial->record.is_final) /* the refitted winner is what the sweep was for */
        best_retire(engine, trial);
    orphans_release(engine, trial);
}
