/* Steps per second of the trainer, on random data: `bench_training` prints one line a model and batch size,
 * as JSON with --json. In processor time: for one thread, what it would take on a machine that does nothing
 * else. training_torch.py times the same steps in PyTorch and prints both. */
#include "base/clock.h"
#include "base/error.h"
#include "worker/training/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS 34 /* an epoch's, at the small models; a large one has fewer */
#define LARGE_STEPS 4
#define MEASURE_NS (400 * NS_PER_MS)

struct bench_row {
    const char *name; /* widths, as training_torch.py reads them */
    int64_t widths[5];
    int layers;
    int64_t batch;
    double dropout;
    enum precision precision;
};

static const struct bench_row rows[] = {
    {"32-64-64-2", {32, 64, 64, 2}, 3, 32, 0, PRECISION_FP32},
    {"32-64-64-2", {32, 64, 64, 2}, 3, 128, 0, PRECISION_FP32},
    {"64-128-10", {64, 128, 10}, 2, 32, 0, PRECISION_FP32},
    {"64-128-10", {64, 128, 10}, 2, 128, 0, PRECISION_FP32},
    {"64-128-10", {64, 128, 10}, 2, 128, 0.2, PRECISION_FP32},
    {"64-128-128-10", {64, 128, 128, 10}, 3, 32, 0, PRECISION_FP32},
    {"64-128-128-10", {64, 128, 128, 10}, 3, 128, 0, PRECISION_FP32},
    {"64-128-128-10", {64, 128, 128, 10}, 3, 128, 0.2, PRECISION_FP32},
    {"784-512-512-10", {784, 512, 512, 10}, 3, 32, 0, PRECISION_FP32},
    {"784-512-512-10", {784, 512, 512, 10}, 3, 128, 0, PRECISION_FP32},
    {"784-512-512-10", {784, 512, 512, 10}, 3, 128, 0.2, PRECISION_FP32},
    {"784-1024-1024-10", {784, 1024, 1024, 10}, 3, 128, 0, PRECISION_FP32},
    {"784-1024-1024-10", {784, 1024, 1024, 10}, 3, 128, 0, PRECISION_BF16},
    {"784-1024-1024-10", {784, 1024, 1024, 10}, 3, 4096, 0, PRECISION_FP32},
    {"784-1024-1024-10", {784, 1024, 1024, 10}, 3, 4096, 0, PRECISION_BF16},
};

static int64_t steps_of(const struct bench_row *row)
{
    return row->batch * row->widths[1] > 1000000 ? LARGE_STEPS : STEPS;
}

static int make_data(struct dataset *dataset, const struct bench_row *row)
{
    int64_t features = row->widths[0], classes = row->widths[row->layers], count = steps_of(row) * row->batch;

    *dataset = (struct dataset){.task = TASK_CLASSIFICATION, .features = features, .classes = classes};
    dataset->rows[SPLIT_TRAIN] = count;
    dataset->x[SPLIT_TRAIN] = malloc((size_t)(count * features) * sizeof(float));
    dataset->label[SPLIT_TRAIN] = malloc((size_t)count * sizeof(int32_t));
    if (!dataset->x[SPLIT_TRAIN] || !dataset->label[SPLIT_TRAIN])
        return -1;
    for (int64_t i = 0; i < count * features; i++)
        dataset->x[SPLIT_TRAIN][i] = (float)(i * 7919 % 2003) / 1000 - 1;
    for (int64_t i = 0; i < count; i++)
        dataset->label[SPLIT_TRAIN][i] = (int32_t)(i * 31 % classes);
    return 0;
}

static struct training_settings make_settings(const struct bench_row *row)
{
    struct training_settings settings = {
        .model = MODEL_MLP,
        .hidden_count = row->layers - 1,
        .dropout = row->dropout,
        .optimizer = OPTIMIZER_ADAMW,
        .learning_rate = 1e-3,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .weight_decay = 0.01,
        .batch_size = row->batch,
        .epochs = 1000,
        .precision = row->precision,
        .seed = -1,
    };
    memcpy(settings.hidden, row->widths + 1, sizeof(*settings.hidden) * (size_t)(row->layers - 1));
    return settings;
}

static int64_t processor_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

/* Microseconds a step: the fastest epoch of those that fit the time. Negative: failed. */
static double measure(const struct bench_row *row, struct device *device, struct error *err)
{
    struct training_settings settings = make_settings(row);
    struct dataset dataset;
    struct trainer *trainer = NULL;
    double best = -1;

    if (make_data(&dataset, row) == 0)
        trainer = trainer_create(&settings, &dataset, device, 1, err);
    for (int64_t start = processor_ns(), epochs = 0;
         trainer && (processor_ns() - start < MEASURE_NS || epochs < 3); epochs++) {
        int64_t begin = processor_ns();
        json_t *metrics;
        bool diverged;
        if (trainer_epoch(trainer, &metrics, &diverged, err) != 0) {
            best = -1;
            break;
        }
        json_decref(metrics);
        double each = (double)(processor_ns() - begin) / 1000 / (double)steps_of(row);
        best = best < 0 || each < best ? each : best;
    }
    trainer_destroy(trainer);
    free(dataset.x[SPLIT_TRAIN]);
    free(dataset.label[SPLIT_TRAIN]);
    return best;
}

static void print_row(const struct bench_row *row, double microseconds, bool json)
{
    const char *precision = row->precision == PRECISION_BF16 ? "bf16" : "fp32";

    if (json)
        printf("{\"model\": \"%s\", \"batch\": %d, \"dropout\": %.1f, \"precision\": \"%s\", "
               "\"microseconds\": %.2f}\n",
               row->name, (int)row->batch, row->dropout, precision, microseconds);
    else
        printf("%-17s %6d %8.1f %10s %12.1f %12.0f\n", row->name, (int)row->batch, row->dropout, precision,
               microseconds, 1e6 / microseconds);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    struct error err = {0};
    struct device *device = device_create("cpu:0", &err);

    if (!device) {
        fprintf(stderr, "%s\n", err.message);
        return 4;
    }
    if (!json)
        printf("%s\n%-17s %6s %8s %10s %12s %12s\n", device->name, "model", "batch", "dropout", "precision",
               "us/step", "steps/s");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        double microseconds = measure(&rows[i], device, &err);
        if (microseconds < 0) {
            fprintf(stderr, "%s\n", err.message);
            device_destroy(device);
            return 4;
        }
        print_row(&rows[i], microseconds, json);
    }
    device_destroy(device);
    return 0;
}
