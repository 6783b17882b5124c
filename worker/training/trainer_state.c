/* What is kept of a trial: the best epoch and checkpoints. */
#include "worker/training/trainer_private.h"

#include <stdlib.h>

static size_t values_bytes(const struct trainer *trainer)
{
    return (size_t)trainer->plan.model.values * sizeof(real);
}

void trainer_store(struct trainer *trainer)
{
    const struct blocks *blocks = &trainer->memory.blocks;

    if (blocks->stored)
        trainer->device->operations->store(trainer->device, trainer->lanes, blocks->stored,
                                           blocks->parameters, trainer->plan.model.parameters);
}

void trainer_keep_best(struct trainer *trainer, double objective)
{
    if (!trainer->memory.best)
        return;
    trainer->device->operations->copy(trainer->device, trainer->lanes, trainer->memory.best,
                                      trainer->memory.blocks.parameters, values_bytes(trainer));
    trainer->progress.best_epoch = trainer->progress.epochs;
    trainer->progress.best_objective = objective;
}

bool trainer_best(const struct trainer *trainer, double *objective, int64_t *resource)
{
    *objective = trainer->progress.best_objective;
    if (resource)
        *resource = trainer->progress.best_epoch;
    return trainer->progress.best_epoch > 0;
}

void trainer_restore_best(struct trainer *trainer)
{
    if (trainer->progress.best_epoch == 0)
        return;
    trainer->device->operations->copy(trainer->device, trainer->lanes, trainer->memory.blocks.parameters,
                                      trainer->memory.best, values_bytes(trainer));
    trainer_store(trainer);
}

/* ---- checkpoints ---- */

struct checkpoint_subject trainer_subject(const struct trainer *trainer)
{
    return (struct checkpoint_subject){
        .settings = &trainer->settings,
        .derived = &trainer->plan.derived,
        .dataset = trainer->dataset,
        .model = &trainer->plan.model,
        .loss = trainer->plan.loss,
        .memory = &trainer->memory,
        .device = trainer->device,
        .precision = trainer->lanes.precision,
        .seed = trainer->seed,
    };
}

int trainer_save(struct trainer *trainer, const char *path, struct error *err)
{
    struct checkpoint_subject subject = trainer_subject(trainer);

    return checkpoint_write(path, &subject, &trainer->progress, err);
}

int trainer_take(struct trainer *trainer, const struct safetensors *file, struct error *err)
{
    struct checkpoint_subject subject = trainer_subject(trainer);
    char *numerics;

    if (checkpoint_read(file, &subject, &trainer->progress, &numerics, err) != 0)
        return -1;
    free(trainer->loaded_from);
    trainer->loaded_from = numerics;
    free(trainer->remembered);
    trainer->remembered = NULL;
    trainer_store(trainer);
    return trainer->device->operations->synchronize(trainer->device, err);
}

int trainer_load(struct trainer *trainer, const char *path, struct error *err)
{
    struct safetensors file;
    int result;

    if (safetensors_open(&file, path, err) != 0)
        return -1;
    result = trainer_take(trainer, &file, err);
    safetensors_close(&file);
    return result == 0 ? 0 : error_prefix(err, "%s", path);
}
