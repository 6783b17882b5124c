/* A trial's memory on its device: the data shared, the block planned and allocated. */
#include "worker/training/trainer_private.h"

#include <stdlib.h>

static int share(struct device *device, const void *host, size_t bytes, const void **memory,
                 struct error *err)
{
    *memory = NULL;
    return host && bytes > 0 ? device->operations->share(device, memory, host, bytes, err) : 0;
}

/* What was shared is in trainer->rows also after a failure. */
static int share_split(struct trainer *trainer, enum split split, struct error *err)
{
    const struct dataset *dataset = trainer->dataset;
    struct device_rows *shared = &trainer->rows[split];
    size_t rows = (size_t)dataset->rows[split];
    const struct {
        const void *host;
        size_t columns;
    } parts[] = {{dataset->x[split], (size_t)dataset->features},
                 {dataset->category[split], (size_t)dataset->categories},
                 {dataset->label[split], 1},
                 {dataset->y[split], 1}};
    const void *memory[4] = {NULL};
    int result = 0;

    _Static_assert(sizeof(float) == 4 && sizeof(int32_t) == 4, "all data are of 4 bytes");
    for (int i = 0; i < 4 && result == 0; i++)
        result = share(trainer->device, parts[i].host, rows * parts[i].columns * 4, &memory[i], err);
    *shared = (struct device_rows){memory[0], memory[1], memory[2], memory[3]};
    return result;
}

static int share_class_weights(struct trainer *trainer, struct error *err)
{
    const struct dataset *dataset = trainer->dataset;
    size_t bytes = (size_t)dataset->classes * sizeof(real);
    const void *memory;

    if (trainer->settings.class_weight != CLASS_WEIGHT_BALANCED || dataset->classes == 0)
        return 0;
    trainer->class_weights = malloc(bytes);
    if (!trainer->class_weights)
        return error_set(err, ERROR_MEMORY, "no memory for the classes' weights");
    loss_class_weights(dataset->class_rows, dataset->classes, trainer->class_weights);
    if (share(trainer->device, trainer->class_weights, bytes, &memory, err) != 0)
        return -1;
    trainer->class_weight = memory;
    return 0;
}

/* Where memory is bounded, a device that refuses what should have fitted (others use it too) is asked for
 * less. On a CPU the micro batch depends on the settings only, so that results do. */
static int allocate_block(struct trainer *trainer, struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;
    size_t available, total;

    operations->memory(trainer->device, &available, &total);
    if (total > 0)
        plan_fit(&trainer->plan, available + trainer->plan.data); /* the data are there already */
    while (memory_init(&trainer->memory, &trainer->plan.shape, trainer->device, err) != 0)
        if (err->code != ERROR_MEMORY || total == 0 || !plan_shrink(&trainer->plan))
            return -1;
    return 0;
}

int trainer_allocate(struct trainer *trainer, struct error *err)
{
    struct error own;

    for (int i = 0; i < SPLIT_COUNT; i++)
        if (share_split(trainer, (enum split)i, err) != 0)
            return -1;
    if (share_class_weights(trainer, err) != 0)
        return -1;
    return allocate_block(trainer, err ? err : &own);
}

static void unshare(struct device *device, const void *memory)
{
    if (memory)
        device->operations->unshare(device, memory);
}

void trainer_forget(struct trainer *trainer)
{
    for (int i = 0; i < STEP_SHAPES; i++) {
        if (trainer->recordings[i])
            trainer->device->operations->forget(trainer->device, trainer->recordings[i]);
        trainer->recordings[i] = NULL;
        trainer->warm[i] = false;
    }
}

void trainer_release(struct trainer *trainer)
{
    struct device *device = trainer->device;

    trainer_forget(trainer);
    free(trainer->remembered);
    for (int i = 0; i < SPLIT_COUNT; i++) {
        unshare(device, trainer->rows[i].x);
        unshare(device, trainer->rows[i].category);
        unshare(device, trainer->rows[i].label);
        unshare(device, trainer->rows[i].y);
    }
    unshare(device, trainer->class_weight);
    free(trainer->class_weights);
    memory_release(&trainer->memory, device);
}
