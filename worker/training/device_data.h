/* A data set in a device's memory. Whoever trains on it shares it, and it is copied there once for all of
 * them; whoever is to train one trial after the other keeps it shared meanwhile, lest each has it copied
 * again. */
#ifndef RUNG_WORKER_TRAINING_DEVICE_DATA_H
#define RUNG_WORKER_TRAINING_DEVICE_DATA_H

#include "kernels/device.h"
#include "worker/training/data.h"
#include "worker/training/step.h"

struct device_data {
    struct device_rows rows[SPLIT_COUNT];
};

/* dataset is borrowed until it is no longer shared. On failure (ERROR_MEMORY) nothing is. */
int device_data_share(struct device_data *data, const struct dataset *dataset, struct device *device,
                      struct error *err);
/* Of one that is all zero, or was given back: nothing. */
void device_data_unshare(struct device_data *data, struct device *device);

#endif
