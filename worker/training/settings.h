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

/* Names: data.path, .target, .validation, .test, .header, .delimiter, .task, .missing; model, hidden,
 * activation, dropout, init; optimizer, learning_rate, momentum, nesterov, weight_decay, beta1, beta2,
 * epsilon; batch_size, micro_batch, epochs, schedule; lr_scaling.rule, .base_batch_size, .power,
 * .scale_betas, .scale_weight_decay, .warmup_epochs; seed; final.refit, .seeds, .epochs. Ends with a NULL
 * name. The loss follows the task: cross-entropy for classes, mean squared error for numbers.
 * docs/training.md has the meanings. */
extern const struct setting train_settings[];

/* Every metric the trainer may report, NULL-terminated: train_loss, validation_loss, validation_accuracy, ...
 */
extern const char *const train_metrics[];

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
    int64_t batch_size;  /* global effective batch, as given */
    int64_t micro_batch; /* 0: choose */
    int64_t epochs;
    enum schedule_kind schedule;
    double warmup_epochs;
    enum scaling_rule rule;
    double base_batch_size; /* 0: none given, rule is none */
    double power;
    bool scale_betas, scale_weight_decay;
    int64_t seed;        /* replaces the trial's own seed; -1: none given */
    bool objective_best; /* set by the caller: keep the best epoch's weights */
};

/* What the settings come to on N training rows; kept in the trial's record as `derived`. */
struct derived {
    int64_t batch_size;                /* min(batch_size, N) */
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
/* The `derived` object of records and leaderboards. New reference. */
json_t *derived_to_json(const struct derived *derived);

#endif
