#include "trainer_fixture.h"

#include "training_fixture.h"

#include "base/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FEATURES 6
#define CATEGORIES 2

static int64_t cardinality[CATEGORIES] = {4, 7};

static void fill_split(struct dataset *dataset, int split, int64_t rows)
{
    dataset->rows[split] = rows;
    dataset->x[split] = calloc((size_t)(rows * FEATURES), sizeof(float));
    dataset->label[split] = dataset->classes ? calloc((size_t)rows, sizeof(int32_t)) : NULL;
    dataset->y[split] = dataset->classes ? NULL : calloc((size_t)rows, sizeof(float));
    dataset->category[split] = calloc((size_t)(rows * CATEGORIES), sizeof(int32_t));
    for (int64_t i = 0; i < rows; i++) {
        float *x = dataset->x[split] + i * FEATURES;
        for (int j = 0; j < FEATURES; j++)
            x[j] = 1.7f * random_value((uint64_t)split + 100, (uint32_t)(i * FEATURES + j));
        float score = x[0] - x[1] * x[2] + 0.5f * x[3] + 0.1f * x[4];
        for (int j = 0; j < CATEGORIES; j++)
            dataset->category[split][i * CATEGORIES + j] = (int32_t)((i * (j + 3) + i / 5) % cardinality[j]);
        if (dataset->classes == 3)
            dataset->label[split][i] = score > 0.5f ? 2 : score > -0.5f;
        else if (dataset->classes)
            dataset->label[split][i] = score > 0.3f;
        else
            dataset->y[split][i] = score;
    }
}

void world_init(struct trainer_world *world, int64_t classes)
{
    const int64_t rows[SPLIT_COUNT] = {150, 40, 30};
    const char *name = getenv("RUNG_TEST_DEVICE");
    struct error err = {0};

    memset(world, 0, sizeof(*world));
    world->dataset = (struct dataset){
        .task = classes ? TASK_CLASSIFICATION : TASK_REGRESSION,
        .features = FEATURES,
        .classes = classes,
        .cardinality = cardinality,
        .class_rows = calloc((size_t)classes + 1, sizeof(int64_t)),
        .target_sd = 1,
        .preprocessing = json_pack("{s:[s, s]}", "columns", "a", "b"),
    };
    for (int split = 0; split < SPLIT_COUNT; split++)
        fill_split(&world->dataset, split, rows[split]);
    for (int64_t i = 0; i < rows[SPLIT_TRAIN] && classes > 0; i++)
        world->dataset.class_rows[world->dataset.label[SPLIT_TRAIN][i]]++;
    world->device = device_create(name ? name : "cpu:0", &err);
    if (!world->device)
        fail_msg("%s", err.message);
    strcpy(world->folder, "/tmp/rung-trainer-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->path, sizeof(world->path), "%s/trial.safetensors", world->folder);
}

void world_release(struct trainer_world *world)
{
    struct error err;

    for (int split = 0; split < SPLIT_COUNT; split++) {
        free(world->dataset.x[split]);
        free(world->dataset.label[split]);
        free(world->dataset.y[split]);
        free(world->dataset.category[split]);
    }
    free(world->dataset.class_rows);
    json_decref(world->dataset.preprocessing);
    device_destroy(world->device);
    folder_remove(world->folder, &err);
}

bool world_on_cpu(const struct trainer_world *world)
{
    return strncmp(world->device->name, "cpu", 3) == 0;
}

struct training_settings world_settings(void)
{
    return (struct training_settings){
        .model = MODEL_MLP,
        .hidden = {16, 12},
        .hidden_count = 2,
        .width = 12,
        .expansion = 2,
        .blocks = 2,
        .huber_delta = 1,
        .activation = ACTIVATION_GELU,
        .dropout = 0.2,
        .optimizer = OPTIMIZER_ADAMW,
        .learning_rate = 0.01,
        .weight_decay = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .batch_size = 32,
        .epochs = 6,
        .schedule = SCHEDULE_COSINE,
        .warmup_epochs = 1,
        .precision = PRECISION_FP32,
    };
}

struct trainer *world_trainer(const struct trainer_world *world, const struct training_settings *settings,
                              uint64_t seed)
{
    struct error err = {0};
    struct trainer *trainer = trainer_create(settings, &world->dataset, world->device, seed, &err);

    if (!trainer)
        fail_msg("%s", err.message);
    return trainer;
}

double world_metric(struct trainer *trainer, const char *name)
{
    struct error err = {0};
    json_t *metrics;
    bool diverged;

    if (trainer_epoch(trainer, &metrics, &diverged, &err) != 0)
        fail_msg("%s", err.message);
    assert_false(diverged);
    assert_non_null(json_object_get(metrics, name));
    double value = json_get_number(metrics, name, NAN);
    json_decref(metrics);
    return value;
}

char *world_epoch(struct trainer *trainer)
{
    struct error err = {0};
    json_t *metrics;
    bool diverged;
    char *text;

    if (trainer_epoch(trainer, &metrics, &diverged, &err) != 0)
        fail_msg("%s", err.message);
    text = json_canonical(metrics);
    json_decref(metrics);
    return text;
}

void world_save(struct trainer *trainer, const char *path)
{
    struct error err = {0};
    if (trainer_save(trainer, path, &err) != 0)
        fail_msg("%s", err.message);
}

void world_load(struct trainer *trainer, const char *path)
{
    struct error err = {0};
    if (trainer_load(trainer, path, &err) != 0)
        fail_msg("%s", err.message);
}

static char *bytes_of(const struct trainer_world *world, struct trainer *trainer, size_t *size)
{
    struct error err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/compare", world->folder);
    world_save(trainer, path);
    return file_read(path, 0, size, &err);
}

void assert_same_state(const struct trainer_world *world, struct trainer *one, struct trainer *two)
{
    size_t size, other_size;
    char *bytes = bytes_of(world, one, &size), *other = bytes_of(world, two, &other_size);

    assert_int_equal(size, other_size);
    assert_memory_equal(bytes, other, size);
    free(bytes);
    free(other);
}
