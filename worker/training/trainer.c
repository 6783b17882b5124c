/* The trainer: epochs of one trial on one device. */
#include "worker/training/trainer_private.h"

#include "worker/training/optimizer.h"
#include "worker/training/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t largest_split(const struct dataset *dataset)
{
    int64_t rows = 0;
    for (int i = 0; i < SPLIT_COUNT; i++)
        rows = dataset->rows[i] > rows ? dataset->rows[i] : rows;
    return rows;
}

static int make_host_buffers(struct trainer *trainer, struct error *err)
{
    const struct dataset *dataset = trainer->dataset;
    size_t rows = (size_t)dataset->rows[SPLIT_TRAIN];
    size_t outputs = (size_t)(trainer->plan.shape.evaluation_rows * model_head(&trainer->plan.model)->width);
    double delta = trainer->plan.loss == LOSS_HUBER ? trainer->settings.huber_delta : 0;

    trainer->order = malloc(rows * sizeof(*trainer->order));
    trainer->scratch = malloc(2 * rows * sizeof(*trainer->scratch));
    trainer->rates = malloc((size_t)trainer->plan.derived.steps_per_epoch * sizeof(*trainer->rates));
    trainer->outputs = malloc(outputs * sizeof(*trainer->outputs));
    if (!trainer->order || !trainer->scratch || !trainer->rates || !trainer->outputs)
        return error_set(err, ERROR_MEMORY, "no memory for a trial's buffers");
    return metrics_init(&trainer->metrics, dataset->classes, largest_split(dataset), dataset->target_sd,
                        delta, err);
}

static int set_initial_weights(struct trainer *trainer, struct error *err)
{
    const struct model *model = &trainer->plan.model;
    size_t bytes = (size_t)model->values * sizeof(real);
    real *values = malloc(bytes);
    int result = -1;

    if (!values)
        return error_set(err, ERROR_MEMORY, "no memory for the initial weights");
    if (model_draw(model, trainer->settings.init, trainer->seed, values, err) == 0) {
        trainer->device->operations->upload(trainer->device, trainer->memory.blocks.parameters, values,
                                            bytes);
        trainer_store(trainer);
        result = trainer->device->operations->synchronize(trainer->device, err);
    }
    free(values);
    return result;
}

/* auto: what the device does best without losing accuracy that matters. */
static enum device_precision precision_on(enum precision precision, const struct device *device)
{
    static const enum device_precision of[] = {
        [PRECISION_FP32] = DEVICE_FP32,
        [PRECISION_TF32] = DEVICE_TF32,
        [PRECISION_BF16] = DEVICE_BF16,
        [PRECISION_FP16] = DEVICE_FP16,
    };
    bool cpu = strncmp(device->name, "cpu", 3) == 0;

    if (precision == PRECISION_AUTO)
        return !cpu && device->precisions[DEVICE_BF16] ? DEVICE_BF16 : DEVICE_FP32;
    return of[precision];
}

static int trainer_init(struct trainer *trainer, struct error *err)
{
    enum device_precision precision = precision_on(trainer->settings.precision, trainer->device);

    trainer->lanes = (struct lanes){.count = 1, .precision = precision};
    if (plan_init(&trainer->plan, &trainer->settings, trainer->dataset, precision,
                  trainer->device->evaluation_rows, err) != 0 ||
        trainer_allocate(trainer, err) != 0 || make_host_buffers(trainer, err) != 0)
        return -1;
    trainer->progress.state =
        optimizer_start(&trainer->settings, &trainer->plan.derived, precision, trainer->seed);
    trainer->step = (struct step_plan){
        .settings = &trainer->settings,
        .derived = &trainer->plan.derived,
        .model = &trainer->plan.model,
        .memory = &trainer->memory,
        .device = trainer->device,
        .lanes = trainer->lanes,
        .loss = trainer->plan.loss,
        .classes = trainer->dataset->classes,
        .class_weight = trainer->class_weight,
        .rows = trainer->data.rows[SPLIT_TRAIN],
    };
    return set_initial_weights(trainer, err);
}

struct trainer *trainer_create(const struct training_settings *settings, const struct dataset *dataset,
                               struct device *device, uint64_t seed, struct error *err)
{
    struct trainer *trainer = calloc(1, sizeof(*trainer));

    if (!trainer) {
        error_set(err, ERROR_MEMORY, "no memory for a trial");
        return NULL;
    }
    trainer->settings = *settings;
    trainer->settings.replicates = settings->replicates > 1 ? settings->replicates : 1;
    trainer->dataset = dataset;
    trainer->device = device;
    trainer->seed = seed;
    if (trainer_init(trainer, err) == 0)
        return trainer;
    trainer_destroy(trainer);
    return NULL;
}

void trainer_destroy(struct trainer *trainer)
{
    if (!trainer)
        return;
    trainer_release(trainer);
    plan_release(&trainer->plan);
    metrics_release(&trainer->metrics);
    free(trainer->order);
    free(trainer->scratch);
    free(trainer->rates);
    free(trainer->outputs);
    free(trainer->loaded_from);
    free(trainer);
}

const struct derived *trainer_derived(const struct trainer *trainer)
{
    return &trainer->plan.derived;
}

int64_t trainer_resource(const struct trainer *trainer)
{
    return trainer->progress.epochs;
}

/* ---- an epoch ---- */

/* In which order an epoch takes the rows. Of large batches of a small net a GPU takes no longer for the epoch
 * than the host for its order, so the next one's is made while the device is still at work. */
static void order_rows(struct trainer *trainer, int64_t epoch)
{
    if (trainer->ordered == epoch + 1)
        return;
    random_order(trainer->seed, epoch, trainer->order, trainer->dataset->rows[SPLIT_TRAIN], trainer->scratch);
    trainer->ordered = epoch + 1;
}

/* What the device needs to know of an epoch before its first step. */
static void begin_epoch(struct trainer *trainer)
{
    const struct device_operations *operations = trainer->device->operations;
    struct lane_state *state = &trainer->progress.state;
    int64_t rows = trainer->dataset->rows[SPLIT_TRAIN], steps = trainer->plan.derived.steps_per_epoch;

    order_rows(trainer, trainer->progress.epochs);
    for (int64_t i = 0; i < steps; i++)
        trainer->rates[i] =
            schedule_learning_rate(&trainer->settings, &trainer->plan.derived, state->step + i);
    state->epoch_first = state->step;
    state->loss = 0;
    operations->upload(trainer->device, trainer->memory.order, trainer->order,
                       (size_t)rows * sizeof(int32_t));
    operations->upload(trainer->device, trainer->memory.rates, trainer->rates,
                       (size_t)steps * sizeof(double));
    operations->upload(trainer->device, trainer->memory.state, state, sizeof(*state));
}

/* finite: whether all weights are; known, like the trainer's progress, after the next synchronize. Everything
 * is asked for before anything is waited for, so that the device is waited for once. */
static int train(struct trainer *trainer, bool *finite, struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;
    int64_t rows = trainer->dataset->rows[SPLIT_TRAIN], batch = trainer->plan.derived.batch_size;

    begin_epoch(trainer);
    if (trainer_run_steps(trainer, STEP_FULL, batch, rows / batch, err) != 0 ||
        trainer_run_steps(trainer, STEP_SHORT, rows % batch, rows % batch > 0, err) != 0)
        return -1;
    operations->finite(trainer->device, trainer->lanes, finite, trainer->memory.blocks.parameters,
                       trainer->plan.model.parameters);
    if (trainer->progress.epochs + 1 < trainer->settings.epochs)
        order_rows(trainer, trainer->progress.epochs + 1);
    operations->download(trainer->device, &trainer->progress.state, trainer->memory.state,
                         sizeof(trainer->progress.state));
    trainer->progress.epochs++;
    return 0;
}

/* Why what has been trained cannot be mended; NULL: it is as it should be. */
static const char *find_divergence(const struct lane_state *state, bool weights_finite)
{
    if (!isfinite(state->loss))
        return "the training loss is no finite number";
    if (!weights_finite)
        return "a weight is no finite number";
    if (state->updates + state->skipped < state->step) /* and there is no loss scale to lower */
        return "a gradient is no finite number";
    if (state->small_steps >= LOSS_SCALE_SMALL_STEPS)
        return "gradients overflow fp16 whatever their scale";
    return NULL;
}

static void add_batch(struct trainer *trainer, enum split split, int64_t first, int64_t rows)
{
    const struct dataset *dataset = trainer->dataset;

    if (trainer->plan.loss == LOSS_BINARY)
        metrics_add_scores(&trainer->metrics, trainer->outputs, dataset->label[split] + first, rows);
    else if (dataset->classes > 0)
        metrics_add_logits(&trainer->metrics, trainer->outputs, dataset->label[split] + first, rows);
    else
        metrics_add_values(&trainer->metrics, trainer->outputs, dataset->y[split] + first, rows);
}

static int evaluate(struct trainer *trainer, enum split split, const char *prefix, json_t *metrics,
                    struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;
    const real *outputs = model_outputs(&trainer->plan.model, &trainer->memory.evaluation);
    int64_t rows = trainer->dataset->rows[split], most = trainer->plan.shape.evaluation_rows;
    size_t row_bytes = (size_t)model_head(&trainer->plan.model)->width * sizeof(real);

    if (rows == 0)
        return 0;
    metrics_reset(&trainer->metrics);
    for (int64_t first = 0; first < rows; first += most) {
        int64_t count = rows - first < most ? rows - first : most;

        step_evaluate(&trainer->step, &trainer->data.rows[split], first, count);
        operations->download(trainer->device, trainer->outputs, outputs, (size_t)count * row_bytes);
        add_batch(trainer, split, first, count);
    }
    if (operations->synchronize(trainer->device, err) != 0)
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

static int run_epoch(struct trainer *trainer, json_t **metrics, bool *diverged, struct error *err)
{
    const struct device_operations *operations = trainer->device->operations;
    bool finite;

    if (train(trainer, &finite, err) != 0 || operations->synchronize(trainer->device, err) != 0)
        return -1;
    double loss = trainer->progress.state.loss / (double)trainer->dataset->rows[SPLIT_TRAIN];
    trainer->divergence = find_divergence(&trainer->progress.state, finite);
    *diverged = trainer->divergence != NULL;
    if (trainer_evaluate(trainer, SPLIT_VALIDATION, "validation_", metrics, err) != 0)
        return -1;
    if (json_object_set_new(*metrics, "train_loss", json_number(loss)) == 0)
        return 0;
    json_decref(*metrics);
    *metrics = NULL;
    return error_set(err, ERROR_MEMORY, "no memory to report metrics");
}

int trainer_epoch(struct trainer *trainer, json_t **metrics, bool *diverged, struct error *err)
{
    struct error own;
    struct error *reason = err ? err : &own;

    if (trainer_remember(trainer, reason) != 0)
        return -1;
    while (run_epoch(trainer, metrics, diverged, reason) != 0)
        if (trainer_retreat(trainer, reason) != 0)
            return -1;
    trainer_prove(trainer);
    return 0;
}
