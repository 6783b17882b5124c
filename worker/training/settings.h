/* The `train` settings: one table (for the spec reader, docs and check), and the struct the trainer works from.
 * A parameter of the space named like a setting overrides it (nested ones by dotted name). */
#ifndef RUNG_WORKER_TRAINING_SETTINGS_H
#define RUNG_WORKER_TRAINING_SETTINGS_H

#include "base/error.h"
#include "base/json.h"
#include "base/setting.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* data.path, data.target, data.validation, data.test, data.header, data.delimiter, data.task, data.missing, model, hidden, activation,
 * dropout, init, loss, optimizer, learning_rate, momentum, nesterov, weight_decay, beta1, beta2, epsilon, batch_size,
 * micro_batch, epochs, schedule, warmup_epochs is lr_scaling.warmup_epochs, lr_scaling.rule, lr_scaling.base_batch_size,
 * lr_scaling.power, lr_scaling.scale_betas, lr_scaling.scale_weight_decay, seed, final.refit, final.seeds, final.epochs.
 * Ends with a NULL name. */
extern const struct setting train_settings[];

enum model_kind { MODEL_LINEAR, MODEL_MLP };
enum activation { ACTIVATION_RELU, ACTIVATION_GELU };
enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAMW };
enum schedule_kind { SCHEDULE_CONSTANT, SCHEDULE_COSINE };
enum scaling_rule { SCALING_NONE, SCALING_LINEAR, SCALING_SQRT, SCALING_POWER }; /* auto is resolved */
enum init_kind { INIT_DEFAULT, INIT_HE, INIT_XAVIER };
enum loss_kind { LOSS_CROSS_ENTROPY, LOSS_MSE };

#define HIDDEN_LAYERS 16

struct training_settings {
    enum model_kind model;
    int64_t hidden[HIDDEN_LAYERS];
    int hidden_count;
    enum activation activation;
    double dropout;
    enum init_kind init;
    enum optimizer_kind optimizer;
    double learning_rate; /* as given; the peak is in struct derived */
    double momentum, weight_decay, beta1, beta2, epsilon;
    bool nesterov;
    int64_t batch_size;   /* global effective batch, as given */
    int64_t micro_batch;  /* 0: choose */
    int64_t epochs;
    enum schedule_kind schedule;
    double warmup_epochs;
    enum scaling_rule rule;
    double base_batch_size; /* 0: none given, rule is none */
    double power;
    bool scale_betas, scale_weight_decay;
    bool objective_best;  /* keep the best epoch's weights */
};

/* What the settings come to on N training rows; kept in the trial's record as `derived`. */
struct derived {
    int64_t batch_size;   /* min(batch_size, N) */
    int64_t micro_batch, accumulation; /* micro x accumulation covers batch_size */
    double kappa, scale;  /* batch/base, f(kappa) */
    double peak_learning_rate;
    double beta1, beta2, epsilon, weight_decay; /* after scaling */
    int64_t steps_per_epoch, warmup_steps, total_steps;
};

/* Merges a point into the sweep's train object (names may be dotted) and reads it; ERROR_USAGE names the key. */
int training_settings_read(struct training_settings *settings, const json_t *train, const json_t *parameters,
                           struct error *err);
void training_derive(const struct training_settings *settings, int64_t training_rows, struct derived *derived);
/* The `derived` object of records and leaderboards. New reference. */
json_t *derived_to_json(const struct derived *derived);

#endif
