/* A data set in a device's memory. */
#include "worker/training/device_data.h"

_Static_assert(sizeof(float) == 4 && sizeof(int32_t) == 4, "all data are of 4 bytes");

/* What was shared is in *shared also after a failure. */
static int share_split(struct device_rows *shared, const struct dataset *dataset, int split,
                       struct device *device, struct error *err)
{
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

    for (int i = 0; i < 4 && result == 0; i++) {
        size_t bytes = rows * parts[i].columns * 4;
        if (parts[i].host && bytes > 0)
            result = device->operations->share(device, &memory[i], parts[i].host, bytes, err);
        if (result != 0)
            memory[i] = NULL;
    }
    *shared = (struct device_rows){memory[0], memory[1], memory[2], memory[3]};
    return result;
}

int device_data_share(struct device_data *data, const struct dataset *dataset, struct device *device,
                      struct error *err)
{
    *data = (struct device_data){0};
    for (int split = 0; split < SPLIT_COUNT; split++)
        if (share_split(&data->rows[split], dataset, split, device, err) != 0) {
            device_data_unshare(data, device);
            return -1;
        }
    return 0;
}

void device_data_unshare(struct device_data *data, struct device *device)
{
    for (int split = 0; split < SPLIT_COUNT; split++) {
        const struct device_rows *rows = &data->rows[split];
        const void *memory[] = {rows->x, rows->category, rows->label, rows->y};
        for (int i = 0; i < 4; i++)
            if (memory[i])
                device->operations->unshare(device, memory[i]);
    }
    *data = (struct device_data){0};
}
