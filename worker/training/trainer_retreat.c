/* A device may refuse memory also after a trial's block is there: for a recording, or for what a product of a
 * new shape needs. That shows in the first epoch, which meets every shape; so until one has gone well, where
 * memory is bounded, the trial is kept on the host as it was, and goes on from there with less. */
#include "worker/training/trainer_private.h"

#include <stdlib.h>
#include <string.h>

struct region {
    void *memory; /* on the device */
    size_t bytes;
};
#define REGIONS (2 + MOMENTS)

static int list_regions(const struct trainer *trainer, struct region *regions)
{
    const struct model *model = &trainer->plan.model;
    size_t parameters = (size_t)model->parameters * sizeof(real),
           values = (size_t)model->values * sizeof(real);
    int count = 0;

    regions[count++] = (struct region){trainer->memory.blocks.parameters, values};
    for (int i = 0; i < MOMENTS && trainer->memory.moments[i]; i++)
        regions[count++] = (struct region){trainer->memory.moments[i], parameters};
    if (trainer->memory.best)
        regions[count++] = (struct region){trainer->memory.best, values};
    return count;
}

int trainer_remember(struct trainer *trainer, struct error *err)
{
    struct region regions[REGIONS];
    int count = list_regions(trainer, regions);
    size_t bytes = 0, at = 0;

    if (trainer->proven || trainer->remembered || trainer->plan.available == 0)
        return 0;
    for (int i = 0; i < count; i++)
        bytes += regions[i].bytes;
    trainer->remembered = malloc(bytes);
    if (!trainer->remembered)
        return error_set(err, ERROR_MEMORY, "no memory to keep a trial on the host");
    for (int i = 0; i < count; i++) {
        trainer->device->operations->download(trainer->device, trainer->remembered + at, regions[i].memory,
                                              regions[i].bytes);
        at += regions[i].bytes;
    }
    trainer->remembered_progress = trainer->progress;
    return trainer->device->operations->synchronize(trainer->device, err);
}

void trainer_prove(struct trainer *trainer)
{
    free(trainer->remembered);
    trainer->remembered = NULL;
    trainer->proven = true;
}

int trainer_retreat(struct trainer *trainer, struct error *err)
{
    struct region regions[REGIONS];
    size_t at = 0;

    if (err->code != ERROR_MEMORY || !trainer->remembered)
        return -1;
    trainer_forget(trainer);
    memory_release(&trainer->memory, trainer->device);
    do
        if (!plan_shrink(&trainer->plan))
            return -1;
    while (memory_init(&trainer->memory, &trainer->plan.shape, trainer->device, err) != 0 &&
           err->code == ERROR_MEMORY);
    if (!trainer->memory.block)
        return -1;
    int count = list_regions(trainer, regions);
    for (int i = 0; i < count; i++) {
        trainer->device->operations->upload(trainer->device, regions[i].memory, trainer->remembered + at,
                                            regions[i].bytes);
        at += regions[i].bytes;
    }
    trainer->progress = trainer->remembered_progress;
    trainer_store(trainer);
    return trainer->device->operations->synchronize(trainer->device, err);
}
