/* What the files of the trainer share. */
#ifndef RUNG_WORKER_TRAINING_TRAINER_PRIVATE_H
#define RUNG_WORKER_TRAINING_TRAINER_PRIVATE_H

#include "worker/training/checkpoint.h"
#include "worker/training/device_data.h"
#include "worker/training/metrics.h"
#include "worker/training/plan.h"
#include "worker/training/step.h"
#include "worker/training/trainer.h"

/* Shapes of a step: a full batch, and the short last one of an epoch. */
enum { STEP_FULL, STEP_SHORT, STEP_SHAPES };

struct trainer {
    struct training_settings settings;
    struct plan plan;
    struct memory memory;
    struct lanes lanes;
    struct step_plan step;
    struct progress progress; /* its state: as the device's was after the last epoch */
    struct metrics metrics;
    const struct dataset *dataset; /* borrowed, like the device */
    struct device *device;
    struct device_data data;
    const real *class_weight; /* on the device */
    uint64_t seed;
    char *loaded_from; /* another numerics class that a checkpoint was made in; or NULL */
    bool proven;       /* an epoch has gone well, so no shape is new to the device */
    char *remembered;  /* the trial on the host, until then; or NULL */
    struct progress remembered_progress;
    bool warm[STEP_SHAPES];
    struct device_recording *recordings[STEP_SHAPES];
    const char *divergence; /* static: why it has diverged in the last epoch; NULL: it has not */
    char unrecorded[200];   /* why steps are no longer recorded; empty: they are, where the device can */
    /* on the host */
    int32_t *order;      /* (training rows) */
    int64_t ordered;     /* 1 + the epoch that `order` is of; 0: of none */
    uint64_t *scratch;   /* (2 * training rows) */
    double *rates;       /* (steps of an epoch) */
    float *outputs;      /* (evaluation rows, outputs) */
    real *class_weights; /* (classes), or NULL */
};

/* Device memory of a trial: shares the data, plans, allocates. */
int trainer_allocate(struct trainer *trainer, struct error *err);
void trainer_release(struct trainer *trainer);
/* `times` steps of `count` rows, one shape of step. -1: the device has failed. */
int trainer_run_steps(struct trainer *trainer, int shape, int64_t count, int64_t times, struct error *err);
/* Drops what was recorded. */
void trainer_forget(struct trainer *trainer);

/* Keeps the trial on the host before an epoch, until trainer_prove says that one has gone well; only where
 * the device's memory is bounded. */
int trainer_remember(struct trainer *trainer, struct error *err);
void trainer_prove(struct trainer *trainer);
/* After a failure that `err` tells: puts what was remembered into a smaller block. -1, err unchanged or new:
 * it was none of memory, or there is nothing less. */
int trainer_retreat(struct trainer *trainer, struct error *err);

/* After weights came by other ways than an update. */
void trainer_store(struct trainer *trainer);
struct checkpoint_subject trainer_subject(const struct trainer *trainer);

#endif
