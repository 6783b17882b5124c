/* What the settings come to on N training rows: batches, steps, and how the learning rate follows the batch.
 *
 * kappa = batch / base. linear: Goyal et al. 2017, "Accurate, Large Minibatch SGD"; sqrt with beta^kappa and
 * epsilon/sqrt(kappa): Malladi et al. 2022, "On the SDEs and Scaling Rules for Adaptive Gradient Algorithms";
 * power: McCandlish et al. 2018, "An Empirical Model of Large-Batch Training". */
#include "worker/training/settings.h"

#include <math.h>

/* Of a batch norm's group, where nothing is said: statistics over fewer rows are noisy, over more they cost
 * memory and say little more (Hoffer et al. 2017 take 128). */
#define NORM_BATCH_ROWS 128

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static double scale_of(const struct training_settings *settings, double kappa)
{
    switch (settings->rule) {
    case SCALING_NONE:
        return 1;
    case SCALING_LINEAR:
        return kappa;
    case SCALING_SQRT:
        return sqrt(kappa);
    case SCALING_POWER:
        return pow(kappa, settings->power);
    }
    return 1;
}

int64_t derived_micro_rows(const struct derived *derived, int64_t done, int64_t count)
{
    int64_t left = count - done, rows = left < derived->micro_batch ? left : derived->micro_batch;

    return derived->norm_batch > 0 && left - rows == 1 ? left : rows;
}

int64_t derived_most_rows(const struct derived *derived, int64_t training_rows)
{
    const int64_t counts[] = {derived->batch_size, training_rows % derived->batch_size};
    int64_t most = 0, micro = derived->micro_batch;

    for (int i = 0; i < 2; i++) {
        int64_t rows = counts[i] < micro ? counts[i] : micro;
        if (derived->norm_batch > 0 && counts[i] > micro && counts[i] % micro == 1)
            rows = micro + 1;
        most = rows > most ? rows : most;
    }
    return most;
}

void derived_set_micro_batch(struct derived *derived, int64_t rows)
{
    int64_t group = derived->norm_batch, batch = derived->batch_size;

    if (rows >= batch)
        rows = batch;
    else if (group > 0)
        rows = rows < group ? group : rows / group * group;
    derived->micro_batch = rows < batch ? rows : batch;
    derived->accumulation = divide_up(batch, derived->micro_batch);
    if (derived->accumulation > 1 && group > 0 && batch % derived->micro_batch == 1)
        derived->accumulation--;
}

static int64_t norm_batch(const struct training_settings *settings, int64_t batch)
{
    int64_t group = settings->norm_batch > 0 ? settings->norm_batch : NORM_BATCH_ROWS;

    if (settings->model == MODEL_LINEAR || settings->norm != NORM_BATCH)
        return 0;
    return group < batch ? group : batch;
}

static void derive_steps(const struct training_settings *settings, int64_t rows, struct derived *derived)
{
    derived->batch_size = settings->batch_size < rows ? settings->batch_size : rows;
    if (derived->batch_size < 1)
        derived->batch_size = 1;
    /* By the spec only, never by the machine: a sum of gradients in other pieces has other last bits. */
    derived->norm_batch = norm_batch(settings, derived->batch_size);
    derived_set_micro_batch(derived, settings->micro_batch > 0 ? settings->micro_batch : derived->batch_size);
    derived->steps_per_epoch = divide_up(rows, derived->batch_size);
    derived->total_steps = settings->epochs * derived->steps_per_epoch;
    /* One cycle has a rise of its own. */
    double epochs = settings->schedule == SCHEDULE_ONE_CYCLE ? 0 : settings->warmup_epochs;
    double warmup = round(epochs * (double)derived->steps_per_epoch);
    derived->warmup_steps = warmup < (double)derived->total_steps ? (int64_t)warmup : derived->total_steps;
}

void training_derive(const struct training_settings *settings, int64_t training_rows, struct derived *derived)
{
    derive_steps(settings, training_rows, derived);
    double base = settings->base_batch_size;
    double kappa = base > 0 ? (double)derived->batch_size / base : 1;
    derived->kappa = kappa;
    derived->scale = scale_of(settings, kappa);
    derived->peak_learning_rate = settings->learning_rate * derived->scale;
    bool decoupled = settings->optimizer == OPTIMIZER_ADAMW || settings->optimizer == OPTIMIZER_LAMB;
    bool betas = settings->scale_betas && (decoupled || settings->optimizer == OPTIMIZER_ADAM);
    derived->beta1 = betas ? pow(settings->beta1, kappa) : settings->beta1;
    derived->beta2 = betas ? pow(settings->beta2, kappa) : settings->beta2;
    derived->epsilon = betas ? settings->epsilon / sqrt(kappa) : settings->epsilon;
    derived->weight_decay = settings->weight_decay;
    if (settings->scale_weight_decay && decoupled)
        derived->weight_decay *= kappa / derived->scale;
}

json_t *derived_to_json(const struct derived *derived)
{
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "batch_size",
        (json_int_t)derived->batch_size, "micro_batch", (json_int_t)derived->micro_batch, "accumulation",
        (json_int_t)derived->accumulation, "kappa", json_number(derived->kappa), "scale",
        json_number(derived->scale), "peak_learning_rate", json_number(derived->peak_learning_rate), "beta1",
        json_number(derived->beta1), "beta2", json_number(derived->beta2), "epsilon",
        json_number(derived->epsilon), "weight_decay", json_number(derived->weight_decay), "steps_per_epoch",
        (json_int_t)derived->steps_per_epoch, "warmup_steps", (json_int_t)derived->warmup_steps,
        "total_steps", (json_int_t)derived->total_steps);

    if (derived->norm_batch > 0)
        json_object_set_new(json, "norm_batch", json_integer(derived->norm_batch));
    return json;
}
