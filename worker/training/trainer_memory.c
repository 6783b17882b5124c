/* A trial's memory on its device: the data shared, the block planned and allocated. */
#include "worker/training/trainer_private.h"

#include <stdlib.h>

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
    if (trainer->device->operations->share(trainer->device, &memory, trainer->class_weights, bytes, err) != 0)
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
        plan_fit(&trainer->plan, /* the data are there already */
                 available / (size_t)trainer->settings.replicates + trainer->plan.data);
    while (memory_init(&trainer->memory, &trainer->plan.shape, trainer->device, err) != 0)
        if (err->code != ERROR_MEMORY || total == 0 || !plan_shrink(&trainer->plan))
            return -1;
    return 0;
}

int trainer_allocate(struct trainer *trainer, struct error *err)
{
    struct error own;

    if (device_data_share(&trainer->data, trainer->dataset, trainer->device, err) != 0 ||
        share_class_weights(trainer, err) != 0)
        return -1;
    return allocate_block(trainer, err ? err : &own);
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
    device_data_unshare(&trainer->data, device);
    if (trainer->class_weight)
        device->operations->unshare(device, trainer->class_weight);
    free(trainer->class_weights);
    memory_release(&trainer->memory, device);
}
