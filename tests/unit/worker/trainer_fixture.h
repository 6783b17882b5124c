/* A data set in memory and a scratch folder, for tests of the trainer and its checkpoints. */
#ifndef RUNG_TESTS_TRAINER_FIXTURE_H
#define RUNG_TESTS_TRAINER_FIXTURE_H

#include "worker/training/trainer.h"

struct trainer_world {
    struct dataset dataset;
    struct device *device; /* RUNG_TEST_DEVICE, cpu:0 without */
    char folder[64];
    char path[96]; /* of a file in it */
};

/* Classes (3 or 2), or with `classes` 0 a number, that follow from 6 features with some noise; 150/40/30
 * rows. Two columns of categories are there, and are used where dataset.categories is set to 2. */
void world_init(struct trainer_world *world, int64_t classes);
void world_release(struct trainer_world *world);
/* Elsewhere steps take so much longer that tests of many take fewer. */
bool world_on_cpu(const struct trainer_world *world);

/* A small mlp with dropout, batch 32, 6 epochs. */
struct training_settings world_settings(void);
struct trainer *world_trainer(const struct trainer_world *world, const struct training_settings *settings,
                              uint64_t seed);
/* The number called NAME of the next epoch's metrics. */
double world_metric(struct trainer *trainer, const char *name);
/* One epoch's metrics as canonical text; free() it. */
char *world_epoch(struct trainer *trainer);

void world_save(struct trainer *trainer, const char *path);
void world_load(struct trainer *trainer, const char *path);
/* Checkpoints hold all state, so equal files are equal trials. */
void assert_same_state(const struct trainer_world *world, struct trainer *one, struct trainer *two);

#endif
