/* The `train` settings: one table (for the spec reader, docs and check), and the struct the trainer works
 * from. A parameter of the space named like a setting overrides it (nested ones by dotted name). */
#ifndef RUNG_WORKER_TRAINING_SETTINGS_H
#define RUNG_WORKER_TRAINING_SETTINGS_H

#include "base/error.h"
#include "base/json.h"
#include "base/setting.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* data.*, the model, its loss, the optimizer, the batch and its learning rate, precision, final.*. Ends with
 * a NULL name. docs/training.md has the meanings. */
extern const struct setting train_settings[];

/* Every metric the trainer may report, NULL-terminated: train_loss, validation_loss, validation_accuracy, ...
 */
extern const char *const train_metrics[];

/* The order of each is that of the table's choices. */
enum model_kind { MODEL_LINEAR, MODEL_MLP, MODEL_RESNET };
enum activation { ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATION_SILU, ACTIVATION_TANH };
enum norm_kind { NORM_NONE, NORM_LAYER, NORM_BATCH };
enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_LAMB, OPTIMIZER_LARS };
enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,
    SCHEDULE_COSINE,
    SCHEDULE_LINEAR,
    SCHEDULE_ONE_CYCLE,
    SCHEDULE_WSD,
};
enum scaling_rule { SCALING_NONE, SCALING_LINEAR, SCALING_SQRT, SCALING_POWER }; /* auto is resolved */
enum init_kind { INIT_DEFAULT, INIT_HE, INIT_XAVIER };
enum loss_kind { LOSS_AUTO, LOSS_CROSS_ENTROPY, LOSS_BINARY, LOSS_MSE, LOSS_HUBER };
enum class_weight { CLASS_WEIGHT_NONE, CLASS_WEIGHT_BALANCED };
enum precision { PRECISION_AUTO, PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16 };

#define HIDDEN_LAYERS 16   /* of mlp */
#define RESIDUAL_BLOCKS 16 /* of resnet */

struct training_settings {
    enum model_kind model;
    int64_t hidden[HIDDEN_LAYERS];
    int hidden_count;
    int64_t width, expansion; /* resnet: of the residual stream; inner width = expansion * width */
    int64_t blocks;           /* resnet */
    enum activation activation;
    enum norm_kind norm;
    int64_t norm_batch; /* rows of a ghost batch norm's group; 0: min(batch_size, 128) */
    double dropout;
    enum init_kind init;
    enum loss_kind loss; /* auto: cross-entropy for classes, mse for numbers */
    double huber_delta, label_smoothing;
    enum class_weight class_weight;
    enum optimizer_kind optimizer;
    double learning_rate; /* as given; the peak is in struct derived */
    double momentum, weight_decay, beta1, beta2, epsilon;
    bool nesterov;
    double clip_norm;    /* of a lane's whole gradient; 0: none */
    int64_t batch_size;  /* global effective batch, as given */
    int64_t micro_batch; /* 0: choose */
    int64_t epochs;
    enum schedule_kind schedule;
    double step_epochs, step_factor; /* of schedule step */
    double warmup_epochs;
    enum scaling_rule rule;
    double base_batch_size; /* 0: none given, rule is none */
    double power;
    bool scale_betas, scale_weight_decay;
    enum precision precision;
    int64_t replicates;  /* seeds a point is trained with */
    int64_t seed;        /* replaces the trial's own seed; -1: none given */
    bool objective_best; /* set by the caller: keep the best epoch's weights */
};

/* What the settings come to on N training rows; kept in the trial's record as `derived`. */
struct derived {
    int64_t batch_size;                /* min(batch_size, N) */
    int64_t norm_batch;                /* rows of a batch norm's group; 0 without batch norm */
    int64_t micro_batch, accumulation; /* micro x accumulation covers batch_size */
    double kappa, scale;               /* batch/base, f(kappa) */
    double peak_learning_rate;
    double beta1, beta2, epsilon, weight_decay; /* after scaling */
    int64_t steps_per_epoch, warmup_steps, total_steps;
};

/* Merges a point into the sweep's train object (names of the point may be dotted) and reads it; what neither
 * gives has its default. `parameters` may be NULL. ERROR_USAGE names the key. */
int training_settings_read(struct training_settings *settings, const json_t *train, const json_t *parameters,
                           struct error *err);
void training_derive(const struct training_settings *settings, int64_t training_rows,
                     struct derived *derived);
/* Cuts the batch into micro batches of at most `rows` rows: whole groups of a batch norm, one at least. */
void derived_set_micro_batch(struct derived *derived, int64_t rows);
/* Rows of the micro batch that begins `done` rows into a batch of `count`. With batch norm a single row left
 * over joins the micro batch before it, as it joins the group before it. */
int64_t derived_micro_rows(const struct derived *derived, int64_t done, int64_t count);
/* The most rows a micro batch has, of full batches and of the last one of an epoch. */
int64_t derived_most_rows(const struct derived *derived, int64_t training_rows);
/* The `derived` object of records and leaderboards. New reference. */
json_t *derived_to_json(const struct derived *derived);

#endif
