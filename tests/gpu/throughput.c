/* Samples per second of whole training epochs on any device, on random data:
 *
 *     gpu_throughput DEVICE [SECONDS A ROW] [ROW...]
 *
 * One JSON line a row: {"model", "batch", "precision", "device", "samples_per_second"}, or {..., "error"}. A
 * ROW is MODEL/BATCH/PRECISION; without any, all of the table. compare.py puts PyTorch's figures beside them.
 */
#include "base/clock.h"
#include "base/json.h"
#include "worker/training/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 64 /* of an epoch: enough that the host's share of it is small */

struct row_model {
    const char *name;
    int64_t features, classes;
    const char *settings; /* members of the train object */
};

static const struct row_model models[] = {
    {"32-64-64-2", 32, 2, "\"model\": \"mlp\", \"hidden\": [64, 64]"},
    {"784-256-256-10", 784, 10, "\"model\": \"mlp\", \"hidden\": [256, 256]"},
    {"784-1024-1024-10", 784, 10, "\"model\": \"mlp\", \"hidden\": [1024, 1024]"},
    {"resnet-256x4", 128, 10,
     "\"model\": \"resnet\", \"width\": 256, \"blocks\": 4, \"expansion\": 2, \"norm\": \"layer\""},
};
static const int64_t batches[] = {128, 4096};
static const char *const precisions[] = {"fp32", "tf32", "bf16"};

static int dataset_make(struct dataset *dataset, const struct row_model *model, int64_t rows)
{
    *dataset = (struct dataset){
        .task = TASK_CLASSIFICATION, .features = model->features, .classes = model->classes, .target_sd = 1};
    dataset->rows[SPLIT_TRAIN] = rows;
    dataset->x[SPLIT_TRAIN] = malloc((size_t)(rows * model->features) * sizeof(float));
    dataset->label[SPLIT_TRAIN] = malloc((size_t)rows * sizeof(int32_t));
    dataset->class_rows = malloc((size_t)model->classes * sizeof(int64_t));
    if (!dataset->x[SPLIT_TRAIN] || !dataset->label[SPLIT_TRAIN] || !dataset->class_rows)
        return -1;
    for (int64_t i = 0; i < rows * model->features; i++)
        dataset->x[SPLIT_TRAIN][i] = (float)(i * 7919 % 2003) / 1000 - 1;
    for (int64_t i = 0; i < rows; i++)
        dataset->label[SPLIT_TRAIN][i] = (int32_t)(i * 31 % model->classes);
    for (int64_t i = 0; i < model->classes; i++)
        dataset->class_rows[i] = rows / model->classes;
    return 0;
}

static int settings_make(struct training_settings *settings, const struct row_model *model, int64_t batch,
                         const char *precision, struct error *err)
{
    char text[400];
    int size = snprintf(text, sizeof text,
                        "{%s, \"batch_size\": %lld, \"precision\": \"%s\", \"optimizer\": \"adamw\", "
                        "\"epochs\": 1000000}",
                        model->settings, (long long)batch, precision);
    json_t *train = json_parse(text, (size_t)size, err);
    int result = train ? training_settings_read(settings, train, NULL, err) : -1;
    json_decref(train);
    return result;
}

/* Of the fastest epoch of those that fit the time. */
static int measure(struct trainer *trainer, int64_t rows, double seconds, double *samples, struct error *err)
{
    int64_t end = clock_now().monotonic_ns + (int64_t)(seconds * (double)NS_PER_SECOND);
    *samples = 0;
    for (int epochs = 0; epochs < 3 || clock_now().monotonic_ns < end; epochs++) {
        int64_t begin = clock_now().monotonic_ns;
        json_t *metrics = NULL;
        bool diverged;
        if (trainer_epoch(trainer, &metrics, &diverged, err) != 0)
            return -1;
        json_decref(metrics);
        double each = (double)rows * (double)NS_PER_SECOND / (double)(clock_now().monotonic_ns - begin);
        if (epochs > 0 && each > *samples) /* the first one records and compiles */
            *samples = each;
    }
    return 0;
}

static void row_print(const struct row_model *model, int64_t batch, const char *precision,
                      const struct device *device, double samples, const struct error *err)
{
    json_t *line = json_pack("{s:s,s:I,s:s,s:s}", "model", model->name, "batch", (json_int_t)batch,
                             "precision", precision, "device", device->name);
    if (err)
        json_object_set_new(line, "error", json_string(err->message));
    else
        json_object_set_new(line, "samples_per_second", json_real(samples));
    char *text = json_canonical(line);
    printf("%s\n", text ? text : "{}");
    fflush(stdout);
    free(text);
    json_decref(line);
}

static int row_run(const struct row_model *model, int64_t batch, const char *precision, struct device *device,
                   double seconds)
{
    struct training_settings settings;
    struct dataset dataset = {0};
    struct trainer *trainer = NULL;
    struct error err = {0};
    double samples = 0;
    int64_t rows = STEPS * batch;
    int failed = dataset_make(&dataset, model, rows);
    if (failed)
        error_set(&err, ERROR_MEMORY, "no memory for the data");
    if (!failed)
        failed = settings_make(&settings, model, batch, precision, &err);
    if (!failed)
        trainer = trainer_create(&settings, &dataset, device, 1, &err);
    if (!trainer || measure(trainer, rows, seconds, &samples, &err) != 0)
        failed = -1;
    row_print(model, batch, precision, device, samples, failed ? &err : NULL);
    trainer_destroy(trainer);
    dataset_release(&dataset);
    return failed;
}

static bool row_wanted(const char *model, int64_t batch, const char *precision, char **rows, int count)
{
    char name[100];
    snprintf(name, sizeof name, "%s/%lld/%s", model, (long long)batch, precision);
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i], name) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    int failed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: gpu_throughput DEVICE [SECONDS A ROW] [MODEL/BATCH/PRECISION...]\n");
        return 2;
    }
    struct device *device = device_create(argv[1], &err);
    if (!device) {
        fprintf(stderr, "%s\n", err.message);
        return 4;
    }
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
            for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
                if (row_wanted(models[m].name, batches[b], precisions[p], argv + 3, argc > 3 ? argc - 3 : 0))
                    failed |= row_run(&models[m], batches[b], precisions[p], device, seconds);
    device_destroy(device);
    return failed ? 1 : 0;
}
