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

static void fill_split(struct dataset *dataset, int split, int64_t rows)
{
    dataset->rows[split] = rows;
    dataset->x[split] = calloc((size_t)(rows * FEATURES), sizeof(float));
    dataset->label[split] = dataset->classes ? calloc((size_t)rows, sizeof(int32_t)) : NULL;
    dataset->y[split] = dataset->classes ? NULL : calloc((size_t)rows, sizeof(float));
    for (int64_t i = 0; i < rows; i++) {
        float *x = dataset->x[split] + i * FEATURES;
        for (int j = 0; j < FEATURES; j++)
            x[j] = 1.7f * random_value((uint64_t)split + 100, (uint32_t)(i * FEATURES + j));
        float score = x[0] - x[1] * x[2] + 0.5f * x[3] + 0.1f * x[4];
        if (dataset->classes)
            dataset->label[split][i] = score > 0.5f ? 2 : score > -0.5f;
        else
            dataset->y[split][i] = score;
    }
}

void world_init(struct trainer_world *world, int64_t classes)
{
    const int64_t rows[SPLIT_COUNT] = {150, 40, 30};
    struct error err = {0};

    memset(world, 0, sizeof(*world));
    world->dataset = (struct dataset){
        .task = classes ? TASK_CLASSIFICATION : TASK_REGRESSION,
        .features = FEATURES,
        .classes = classes,
        .target_sd = 1,
        .preprocessing = json_pack("{s:[s, s]}", "columns", "a", "b"),
    };
    for (int split = 0; split < SPLIT_COUNT; split++)
        fill_split(&world->dataset, split, rows[split]);
    world->device = device_create("cpu:0", &err);
    assert_non_null(world->device);
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
    }
    json_decref(world->dataset.preprocessing);
    device_destroy(world->device);
    folder_remove(world->folder, &err);
}

struct training_settings world_settings(void)
{
    return (struct training_settings){
        .model = MODEL_MLP,
        .hidden = {16, 12},
        .hidden_count = 2,
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
