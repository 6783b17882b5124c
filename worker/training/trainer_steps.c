/* The steps of an epoch, recorded where a device can: everything that changes from step to step lies in its
 * memory, so that one recording is all steps of its shape. */
#include "worker/training/trainer_private.h"

#include <stdio.h>

/* A device that cannot record a step can still do it, only more slowly; so that is noted, and steps are no
 * longer recorded. -1: the device has failed, before or meanwhile. */
static int record(struct trainer *trainer, int shape, int64_t count, struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;
    struct error reason;

    if (operations->synchronize(trainer->device, err) != 0) /* so that what fails now is the recording's */
        return -1;
    if (operations->record_begin(trainer->device, &reason) == 0) {
        step_run(&trainer->step, count);
        if (operations->record_end(trainer->device, &trainer->recordings[shape], &reason) == 0)
            return 0;
    }
    if (operations->synchronize(trainer->device, err) != 0)
        return -1;
    trainer->recordings[shape] = NULL;
    snprintf(trainer->unrecorded, sizeof(trainer->unrecorded), "%.199s", reason.message);
    return 0;
}

int trainer_run_steps(struct trainer *trainer, int shape, int64_t count, int64_t times, struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;

    /* The first of a shape is run, so that everything it needs is there. */
    if (times > 0 && !trainer->warm[shape]) {
        step_run(&trainer->step, count);
        trainer->warm[shape] = true;
        times--;
    }
    if (times > 0 && operations->record_begin && !trainer->recordings[shape] && !trainer->unrecorded[0] &&
        record(trainer, shape, count, err) != 0)
        return -1;
    if (trainer->recordings[shape] && times > 0)
        operations->replay(trainer->device, trainer->recordings[shape], times);
    for (; !trainer->recordings[shape] && times > 0; times--)
        step_run(&trainer->step, count);
    return 0;
}
