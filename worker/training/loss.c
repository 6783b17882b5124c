/* Losses by name, task and batch. */
#include "worker/training/loss.h"

static const char *const names[] = {
    [LOSS_AUTO] = "auto",
    [LOSS_CROSS_ENTROPY] = "cross_entropy",
    [LOSS_BINARY] = "binary_cross_entropy",
    [LOSS_MSE] = "mse",
    [LOSS_HUBER] = "huber",
};

const char *loss_name(enum loss_kind loss)
{
    return names[loss];
}

int loss_resolve(enum loss_kind loss, int64_t classes, enum loss_kind *resolved, struct error *err)
{
    if (loss == LOSS_AUTO)
        loss = classes > 0 ? LOSS_CROSS_ENTROPY : LOSS_MSE;
    *resolved = loss;
    if (loss_of_labels(loss) != (classes > 0))
        return error_set(err, ERROR_USAGE, "loss: %s is for %s, but the target is %s", names[loss],
                         classes > 0 ? "numbers" : "classes", classes > 0 ? "a class" : "a number");
    if (loss == LOSS_BINARY && classes != 2)
        return error_set(err, ERROR_USAGE, "loss: %s is for two classes, but the target has %lld",
                         names[loss], (long long)classes);
    return 0;
}

int64_t loss_outputs(enum loss_kind loss, int64_t classes)
{
    return loss == LOSS_CROSS_ENTROPY ? classes : 1;
}

bool loss_of_labels(enum loss_kind loss)
{
    return loss == LOSS_CROSS_ENTROPY || loss == LOSS_BINARY;
}

void loss_class_weights(const int64_t *class_rows, int64_t classes, real *weights)
{
    double rows = 0;

    for (int64_t c = 0; c < classes; c++)
        rows += (double)class_rows[c];
    for (int64_t c = 0; c < classes; c++)
        weights[c] = class_rows[c] > 0 ? (real)(rows / ((double)classes * (double)class_rows[c])) : 0;
}

void loss_run(enum loss_kind loss, struct device *device, struct lanes lanes, const struct loss_batch *batch,
              double scale, struct lane_state *state)
{
    const struct device_operations *operations = device->operations;

    switch (loss) {
    case LOSS_AUTO: /* resolved long ago */
        break;
    case LOSS_CROSS_ENTROPY:
        operations->softmax_cross_entropy(device, lanes, batch->gradient, batch->outputs, batch->label,
                                          batch->class_weight, batch->rows, batch->classes, scale, state);
        break;
    case LOSS_BINARY:
        operations->binary_cross_entropy(device, lanes, batch->gradient, batch->outputs, batch->label,
                                         batch->class_weight, batch->rows, scale, state);
        break;
    case LOSS_MSE:
        operations->squared_error(device, lanes, batch->gradient, batch->outputs, batch->target, batch->rows,
                                  scale, state);
        break;
    case LOSS_HUBER:
        operations->huber_error(device, lanes, batch->gradient, batch->outputs, batch->target, batch->rows,
                                scale, state);
        break;
    }
}
