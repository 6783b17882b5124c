/* The trainer: epochs of one trial on one device. */
#include "worker/training/trainer.h"

#include "worker/training/checkpoint.h"
#include "worker/training/metrics.h"
#include "worker/training/optimizer.h"
#include "worker/training/schedule.h"
#include "worker/training/step.h"

#include <math.h>
#include <stdlib.h>

/* Evaluation has no gradient to keep small, so its batches may be larger than training's; 256 rows of the
 * usual widths still fit the second-level cache. */
#define EVALUATION_ROWS 256

static const struct lanes one_lane = {.count = 1};

struct trainer {
    struct training_settings settings;
    struct derived derived;
    struct model model;
    struct memory memory;
    struct progress progress;
    struct lane_state state; /* as the device's was after the last epoch */
    struct metrics metrics;
    const struct dataset *dataset; /* borrowed, like the device */
    struct device *device;
    struct device_rows rows[SPLIT_COUNT];
    uint64_t seed;
    int64_t evaluation_rows; /* in one batch */
    /* on the host */
    int32_t *order;    /* (training rows) */
    uint64_t *scratch; /* (2 * training rows) */
    double *rates;     /* (steps of an epoch) */
    float *outputs;    /* (evaluation rows, outputs) */
};

static int64_t dataset_outputs(const struct dataset *dataset)
{
    return dataset->task == TASK_CLASSIFICATION ? dataset->classes : 1;
}

static int64_t largest_split(const struct dataset *dataset)
{
    int64_t rows = 0;
    for (int i = 0; i < SPLIT_COUNT; i++)
        rows = dataset->rows[i] > rows ? dataset->rows[i] : rows;
    return rows;
}

static int share(struct device *device, const void *host, size_t bytes, const void **memory,
                 struct error *err)
{
    *memory = NULL;
    return host ? device->operations->share(device, memory, host, bytes, err) : 0;
}

static int share_split(struct trainer *trainer, enum split split, struct error *err)
{
    const struct dataset *dataset = trainer->dataset;
    size_t rows = (size_t)dataset->rows[split];
    const void *x, *label, *y;

    if (rows == 0)
        return 0;
    if (share(trainer->device, dataset->x[split], rows * (size_t)dataset->features * sizeof(float), &x,
              err) != 0)
        return -1;
    trainer->rows[split].x = x;
    if (share(trainer->device, dataset->label[split], rows * sizeof(int32_t), &label, err) != 0)
        return -1;
    trainer->rows[split].label = label;
    if (share(trainer->device, dataset->y[split], rows * sizeof(float), &y, err) != 0)
        return -1;
    trainer->rows[split].y = y;
    return 0;
}

static void unshare(struct device *device, const void *memory)
{
    if (memory)
        device->operations->unshare(device, memory);
}

static int make_host_buffers(struct trainer *trainer, struct error *err)
{
    size_t rows = (size_t)trainer->dataset->rows[SPLIT_TRAIN];
    size_t outputs = (size_t)(trainer->evaluation_rows * dataset_outputs(trainer->dataset));

    trainer->order = malloc(rows * sizeof(*trainer->order));
    trainer->scratch = malloc(2 * rows * sizeof(*trainer->scratch));
    trainer->rates = malloc((size_t)trainer->derived.steps_per_epoch * sizeof(*trainer->rates));
    trainer->outputs = malloc(outputs * sizeof(*trainer->outputs));
    if (!trainer->rates || !trainer->order || !trainer->scratch || !trainer->outputs)
        return error_set(err, ERROR_MEMORY, "no memory for a trial's buffers");
    return metrics_init(&trainer->metrics, trainer->dataset->classes, largest_split(trainer->dataset),
                        trainer->dataset->target_sd, err);
}

static int make_device_memory(struct trainer *trainer, struct error *err)
{
    int64_t batch_rows = trainer->derived.micro_batch;

    if (trainer->evaluation_rows > batch_rows)
        batch_rows = trainer->evaluation_rows;
    if (memory_init(&trainer->memory, &trainer->model, &trainer->settings, trainer->dataset->task, batch_rows,
                    trainer->dataset->rows[SPLIT_TRAIN], trainer->derived.steps_per_epoch, trainer->device,
                    err) != 0)
        return -1;
    for (int i = 0; i < SPLIT_COUNT; i++)
        if (share_split(trainer, (enum split)i, err) != 0)
            return -1;
    return 0;
}

static int set_initial_weights(struct trainer *trainer, struct error *err)
{
    size_t bytes = (size_t)trainer->model.parameters * sizeof(real);
    real *parameters = malloc(bytes);
    int result = -1;

    if (!parameters)
        return error_set(err, ERROR_MEMORY, "no memory for the initial weights");
    if (model_draw(&trainer->model, trainer->settings.init, trainer->seed, parameters, err) == 0) {
        trainer->device->operations->upload(trainer->device, trainer->memory.parameters, parameters, bytes);
        result = trainer->device->operations->synchronize(trainer->device, err);
    }
    free(parameters);
    return result;
}

struct trainer *trainer_create(const struct training_settings *settings, const struct dataset *dataset,
                               struct device *device, uint64_t seed, struct error *err)
{
    struct trainer *trainer;

    if (dataset->rows[SPLIT_TRAIN] < 1) {
        error_set(err, ERROR_USAGE, "there are no training rows");
        return NULL;
    }
    trainer = calloc(1, sizeof(*trainer));
    if (!trainer) {
        error_set(err, ERROR_MEMORY, "no memory for a trial");
        return NULL;
    }
    trainer->settings = *settings;
    trainer->dataset = dataset;
    trainer->device = device;
    trainer->seed = seed;
    training_derive(settings, dataset->rows[SPLIT_TRAIN], &trainer->derived);
    model_init(&trainer->model, settings, dataset->features, dataset_outputs(dataset));
    trainer->state = optimizer_start(settings, &trainer->derived, seed);
    trainer->evaluation_rows =
        largest_split(dataset) < EVALUATION_ROWS ? largest_split(dataset) : EVALUATION_ROWS;
    if (make_host_buffers(trainer, err) != 0 || make_device_memory(trainer, err) != 0 ||
        set_initial_weights(trainer, err) != 0) {
        trainer_destroy(trainer);
        return NULL;
    }
    return trainer;
}

void trainer_destroy(struct trainer *trainer)
{
    if (!trainer)
        return;
    for (int i = 0; i < SPLIT_COUNT; i++) {
        unshare(trainer->device, trainer->rows[i].x);
        unshare(trainer->device, trainer->rows[i].label);
        unshare(trainer->device, trainer->rows[i].y);
    }
    memory_release(&trainer->memory, trainer->device);
    metrics_release(&trainer->metrics);
    free(trainer->order);
    free(trainer->scratch);
    free(trainer->rates);
    free(trainer->outputs);
    free(trainer);
}

const struct derived *trainer_derived(const struct trainer *trainer)
{
    return &trainer->derived;
}

int64_t trainer_resource(const struct trainer *trainer)
{
    return trainer->progress.epochs;
}

/* ---- an epoch ---- */

/* What the device needs to know of an epoch before its first step. */
static void begin_epoch(struct trainer *trainer)
{
    const struct device_operations *operations = trainer->device->operations;
    int64_t rows = trainer->dataset->rows[SPLIT_TRAIN], steps = trainer->derived.steps_per_epoch;

    random_order(trainer->seed, trainer->progress.epochs, trainer->order, rows, trainer->scratch);
    for (int64_t i = 0; i < steps; i++)
        trainer->rates[i] =
            schedule_learning_rate(&trainer->settings, &trainer->derived, trainer->progress.steps + i);
    trainer->state.step = trainer->state.epoch_first = trainer->progress.steps;
    trainer->state.loss = 0;
    operations->upload(trainer->device, trainer->memory.order, trainer->order,
                       (size_t)rows * sizeof(int32_t));
    operations->upload(trainer->device, trainer->memory.rates, trainer->rates,
                       (size_t)steps * sizeof(double));
    operations->upload(trainer->device, trainer->memory.state, &trainer->state, sizeof(trainer->state));
}

static void train(struct trainer *trainer)
{
    int64_t rows = trainer->dataset->rows[SPLIT_TRAIN], batch = trainer->derived.batch_size;
    struct step_plan plan = {
        .settings = &trainer->settings,
        .derived = &trainer->derived,
        .model = &trainer->model,
        .memory = &trainer->memory,
        .device = trainer->device,
        .rows = trainer->rows[SPLIT_TRAIN],
    };

    begin_epoch(trainer);
    for (int64_t first = 0; first < rows; first += batch)
        step_run(&plan, rows - first < batch ? rows - first : batch);
    trainer->progress.steps += trainer->derived.steps_per_epoch;
    trainer->progress.epochs++;
}

static int evaluate(struct trainer *trainer, enum split split, const char *prefix, json_t *metrics,
                    struct error *err)
{
    const struct dataset *dataset = trainer->dataset;
    const struct step_plan plan = {
        .model = &trainer->model, .memory = &trainer->memory, .device = trainer->device};
    int64_t rows = dataset->rows[split], width = dataset_outputs(dataset);

    if (rows == 0)
        return 0;
    metrics_reset(&trainer->metrics);
    for (int64_t first = 0; first < rows; first += trainer->evaluation_rows) {
        int64_t count = rows - first < trainer->evaluation_rows ? rows - first : trainer->evaluation_rows;

        step_evaluate(&plan, &trainer->rows[split], first, count);
        trainer->device->operations->download(trainer->device, trainer->outputs,
                                              model_outputs(&trainer->model, &trainer->memory.activations),
                                              (size_t)(count * width) * sizeof(real));
        if (dataset->task == TASK_CLASSIFICATION)
            metrics_add_logits(&trainer->metrics, trainer->outputs, dataset->label[split] + first, count);
        else
            metrics_add_values(&trainer->metrics, trainer->outputs, dataset->y[split] + first, count);
    }
    if (trainer->device->operations->synchronize(trainer->device, err) != 0)
        return -1;
    return metrics_report(&trainer->metrics, prefix, metrics, err);
}

int trainer_evaluate(struct trainer *trainer, enum split split, const char *prefix, json_t **metrics,
                     struct error *err)
{
    *metrics = json_object();
    if (!*metrics)
        return error_set(err, ERROR_MEMORY, "no memory to report metrics");
    if (evaluate(trainer, split, prefix, *metrics, err) == 0)
        return 0;
    json_decref(*metrics);
    *metrics = NULL;
    return -1;
}

int trainer_epoch(struct trainer *trainer, json_t **metrics, bool *diverged, struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;
    double loss;
    bool finite;

    train(trainer);
    operations->download(trainer->device, &trainer->state, trainer->memory.state, sizeof(trainer->state));
    operations->finite(trainer->device, one_lane, &finite, trainer->memory.parameters,
                       trainer->model.parameters);
    if (operations->synchronize(trainer->device, err) != 0)
        return -1;
    loss = trainer->state.loss / (double)trainer->dataset->rows[SPLIT_TRAIN];
    *diverged = !isfinite(loss) || !finite;
    if (trainer_evaluate(trainer, SPLIT_VALIDATION, "validation_", metrics, err) != 0)
        return -1;
    if (json_object_set_new(*metrics, "train_loss", json_number(loss)) == 0)
        return 0;
    json_decref(*metrics);
    *metrics = NULL;
    return error_set(err, ERROR_MEMORY, "no memory to report metrics");
}

/* ---- the best epoch, checkpoints ---- */

static size_t parameter_bytes(const struct trainer *trainer)
{
    return (size_t)trainer->model.parameters * sizeof(real);
}

void trainer_keep_best(struct trainer *trainer, double objective)
{
    if (!trainer->memory.best)
        return;
    trainer->device->operations->copy(trainer->device, one_lane, trainer->memory.best,
                                      trainer->memory.parameters, parameter_bytes(trainer));
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
    if (trainer->progress.best_epoch > 0)
        trainer->device->operations->copy(trainer->device, one_lane, trainer->memory.parameters,
                                          trainer->memory.best, parameter_bytes(trainer));
}

static struct checkpoint_subject subject_of(const struct trainer *trainer)
{
    return (struct checkpoint_subject){
        .settings = &trainer->settings,
        .dataset = trainer->dataset,
        .model = &trainer->model,
        .memory = &trainer->memory,
        .device = trainer->device,
        .seed = trainer->seed,
    };
}

int trainer_save(struct trainer *trainer, const char *path, struct error *err)
{
    struct checkpoint_subject subject = subject_of(trainer);
    return checkpoint_write(path, &subject, &trainer->progress, err);
}

int trainer_load(struct trainer *trainer, const char *path, struct error *err)
{
    struct checkpoint_subject subject = subject_of(trainer);
    if (checkpoint_read(path, &subject, &trainer->progress, err) != 0)
        return -1;
    trainer->state.updates = trainer->progress.steps;
    return 0;
}
