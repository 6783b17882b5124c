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

#define CLASSES 10
#define MEASURE_NS (400 * NS_PER_MS)

struct bench_model {
    const char *name;
    int64_t features, hidden[2];
    int hidden_count;
};

static const struct bench_model models[] = {
    {"64-128-10", 64, {128}, 1},
    {"64-128-128-10", 64, {128, 128}, 2},
    {"784-512-512-10", 784, {512, 512}, 2},
};
static const int64_t batches[] = {32, 128, 256};

static int make_data(struct dataset *dataset, int64_t features, int64_t rows)
{
    *dataset = (struct dataset){.task = TASK_CLASSIFICATION, .features = features, .classes = CLASSES};
    dataset->rows[SPLIT_TRAIN] = rows;
    dataset->x[SPLIT_TRAIN] = malloc((size_t)(rows * features) * sizeof(float));
    dataset->label[SPLIT_TRAIN] = malloc((size_t)rows * sizeof(int32_t));
    if (!dataset->x[SPLIT_TRAIN] || !dataset->label[SPLIT_TRAIN])
        return -1;
    for (int64_t i = 0; i < rows * features; i++)
        dataset->x[SPLIT_TRAIN][i] = (float)(i * 7919 % 2003) / 1000 - 1;
    for (int64_t i = 0; i < rows; i++)
        dataset->label[SPLIT_TRAIN][i] = (int32_t)(i * 31 % CLASSES);
    return 0;
}

static struct training_settings make_settings(const struct bench_model *model, int64_t batch, double dropout)
{
    struct training_settings settings = {
        .model = MODEL_MLP,
        .hidden_count = model->hidden_count,
        .dropout = dropout,
        .optimizer = OPTIMIZER_ADAMW,
        .learning_rate = 1e-3,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .weight_decay = 0.01,
        .batch_size = batch,
        .epochs = 1000,
    };
    memcpy(settings.hidden, model->hidden, sizeof(model->hidden));
    return settings;
}

static int64_t processor_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

/* Microseconds a step: the fastest epoch of those that fit the time. Negative: failed. */
static double measure(const struct bench_model *model, int64_t batch, double dropout, struct device *device,
                      struct error *err)
{
    struct training_settings settings = make_settings(model, batch, dropout);
    struct dataset dataset;
    struct trainer *trainer = NULL;
    double best = -1;

    if (make_data(&dataset, model->features, 34 * batch) == 0)
        trainer = trainer_create(&settings, &dataset, device, 1, err);
    for (int64_t start = processor_ns(); trainer && processor_ns() - start < MEASURE_NS;) {
        int64_t begin = processor_ns();
        json_t *metrics;
        bool diverged;
        if (trainer_epoch(trainer, &metrics, &diverged, err) != 0) {
            best = -1;
            break;
        }
        json_decref(metrics);
        double each = (double)(processor_ns() - begin) / 1000 / 34;
        best = best < 0 || each < best ? each : best;
    }
    trainer_destroy(trainer);
    free(dataset.x[SPLIT_TRAIN]);
    free(dataset.label[SPLIT_TRAIN]);
    return best;
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
        printf("%s\n%-16s %6s %8s %12s %12s\n", device->name, "model", "batch", "dropout", "us/step",
               "steps/s");
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        for (size_t j = 0; j < sizeof(batches) / sizeof(*batches); j++)
            for (int k = 0; k < 2; k++) {
                double dropout = k * 0.2, each = measure(&models[i], batches[j], dropout, device, &err);
                if (each < 0) {
                    fprintf(stderr, "%s\n", err.message);
                    device_destroy(device);
                    return 4;
                }
                printf(json
                           ? "{\"model\": \"%s\", \"batch\": %d, \"dropout\": %.1f, \"microseconds\": %.2f}\n"
                           : "%-16s %6d %8.1f %12.1f",
                       models[i].name, (int)batches[j], dropout, each);
                if (!json)
                    printf(" %12.0f\n", 1e6 / each);
            }
    device_destroy(device);
    return 0;
}
