/* A batch that does not fit a device of 64 MiB trains there to the same weights as on a large one, within
 * rounding. Each device is a process of its own, since the size of an emulated one is read once. */
#include "worker/training/safetensors.h"
#include "worker/training/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS 4096
#define FEATURES 256
#define HIDDEN 512
#define CLASSES 5
#define STEPS 2

/* What one device came to. */
struct outcome {
    int64_t micro_batch, accumulation;
    bool trained;
    char message[200];
};

static struct dataset make_data(void)
{
    struct dataset dataset = {
        .task = TASK_CLASSIFICATION, .features = FEATURES, .classes = CLASSES, .target_sd = 1};
    dataset.rows[SPLIT_TRAIN] = ROWS;
    dataset.x[SPLIT_TRAIN] = malloc(ROWS * FEATURES * sizeof(float));
    dataset.label[SPLIT_TRAIN] = malloc(ROWS * sizeof(int32_t));
    dataset.class_rows = calloc(CLASSES, sizeof(int64_t));
    assert_true(dataset.x[SPLIT_TRAIN] && dataset.label[SPLIT_TRAIN] && dataset.class_rows);
    for (int64_t i = 0; i < ROWS * FEATURES; i++)
        dataset.x[SPLIT_TRAIN][i] = (float)(i * 7919 % 2003) / 1000 - 1;
    for (int64_t i = 0; i < ROWS; i++) {
        dataset.label[SPLIT_TRAIN][i] = (int32_t)(i * 31 % CLASSES);
        dataset.class_rows[i * 31 % CLASSES]++;
    }
    dataset.preprocessing = json_object();
    return dataset;
}

static struct training_settings make_settings(enum norm_kind norm)
{
    return (struct training_settings){
        .model = MODEL_MLP,
        .hidden = {HIDDEN},
        .hidden_count = 1,
        .norm = norm,
        .norm_batch = 64,
        .dropout = 0.2,
        .optimizer =
            OPTIMIZER_SGD, /* an Adam step from a gradient of rounding alone is as long as any other */
        .learning_rate = 0.1,
        .momentum = 0.9,
        .precision = PRECISION_FP32,
        .batch_size = ROWS,
        .epochs = STEPS,
        .replicates = 1,
        .step_epochs = 1,
        .step_factor = 1,
    };
}

/* In the child: trains on a device of that size, saves the weights, fills *outcome. */
static void train_on(const char *memory, enum norm_kind norm, const char *path, struct outcome *outcome)
{
    struct training_settings settings = make_settings(norm);
    struct dataset dataset = make_data();
    struct error err = {0};
    setenv("RUNG_EMULATED_MEMORY", memory, 1);
    struct device *device = device_create("emulated:0", &err);
    struct trainer *trainer = device ? trainer_create(&settings, &dataset, device, 5, &err) : NULL;
    int failed = trainer ? 0 : -1;
    for (int step = 0; step < STEPS && !failed; step++) {
        json_t *metrics = NULL;
        bool diverged = false;
        failed = trainer_epoch(trainer, &metrics, &diverged, &err);
        json_decref(metrics);
    }
    if (!failed)
        failed = trainer_save(trainer, path, &err);
    if (!failed) {
        outcome->micro_batch = trainer_derived(trainer)->micro_batch;
        outcome->accumulation = trainer_derived(trainer)->accumulation;
        outcome->trained = true;
    }
    snprintf(outcome->message, sizeof outcome->message, "%.190s", err.message);
    trainer_destroy(trainer);
    device_destroy(device);
    dataset_release(&dataset);
}

static struct outcome outcome_on(const char *memory, enum norm_kind norm, const char *path)
{
    struct outcome outcome = {0};
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        train_on(memory, norm, path, &outcome);
        ssize_t written = write(ends[1], &outcome, sizeof outcome);
        _exit(written == (ssize_t)sizeof outcome ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &outcome, sizeof outcome), sizeof outcome);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    if (!outcome.trained)
        fail_msg("%s: %s", memory, outcome.message);
    return outcome;
}

/* The largest difference of a tensor's values in two files, over the largest value. */
static double difference(const char *path, const char *other, const char *name, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    size_t count = (size_t)(rows * columns);
    float *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
    struct safetensors file;
    struct error err = {0};
    double most = 0, largest = 0;
    const char *paths[] = {path, other};
    for (int i = 0; i < 2; i++) {
        if (safetensors_open(&file, paths[i], &err) != 0 ||
            safetensors_read(&file, name, 2, shape, i ? b : a, &err) != 0)
            fail_msg("%s", err.message);
        safetensors_close(&file);
    }
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)a[i] - b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    free(a);
    free(b);
    return most / largest;
}

static void small_and_large(enum norm_kind norm)
{
    struct outcome small = outcome_on("64M", norm, "fit-small.safetensors");
    struct outcome large = outcome_on("1G", norm, "fit-large.safetensors");
    assert_int_equal(large.micro_batch, ROWS);
    assert_int_equal(large.accumulation, 1);
    assert_in_range(small.micro_batch, 64, ROWS / 2);
    assert_int_equal(small.accumulation, (ROWS + small.micro_batch - 1) / small.micro_batch);
    if (norm == NORM_BATCH)
        assert_int_equal(small.micro_batch % 64, 0);
    print_message("norm %d: %lld rows at once on 64 MiB\n", (int)norm, (long long)small.micro_batch);
    /* Sums in another order: a few units in the last place of float32. */
    assert_true(difference("fit-small.safetensors", "fit-large.safetensors", "layers.0.weight", HIDDEN,
                           FEATURES) < 2e-6);
    assert_true(difference("fit-small.safetensors", "fit-large.safetensors", "layers.1.weight", CLASSES,
                           HIDDEN) < 2e-6);
    unlink("fit-small.safetensors");
    unlink("fit-large.safetensors");
}

static void without_norm(void **state)
{
    (void)state;
    small_and_large(NORM_NONE);
}

static void with_layer_norm(void **state)
{
    (void)state;
    small_and_large(NORM_LAYER);
}

static void with_batch_norm(void **state)
{
    (void)state;
    small_and_large(NORM_BATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_norm),
        cmocka_unit_test(with_layer_norm),
        cmocka_unit_test(with_batch_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
