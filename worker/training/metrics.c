/* Metrics of one split; see metrics.h. */
#include "worker/training/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int metrics_init(struct metrics *metrics, int64_t classes, int64_t rows, double target_sd, double huber_delta,
                 struct error *err)
{
    memset(metrics, 0, sizeof *metrics);
    metrics->classes = classes;
    metrics->target_sd = target_sd;
    metrics->huber_delta = huber_delta;
    if (classes > 0) {
        metrics->correct = calloc((size_t)classes * 3, sizeof *metrics->correct);
        if (!metrics->correct)
            goto fail;
        metrics->present = metrics->correct + classes;
        metrics->predicted = metrics->present + classes;
    }
    if (classes == 2 && rows > 0) {
        metrics->score = malloc((size_t)rows * sizeof *metrics->score);
        metrics->positive = malloc((size_t)rows);
        if (!metrics->score || !metrics->positive)
            goto fail;
        metrics->capacity = rows;
    }
    return 0;
fail:
    metrics_release(metrics);
    return error_set(err, ERROR_MEMORY, "no memory for the metrics of %lld rows", (long long)rows);
}

void metrics_release(struct metrics *metrics)
{
    free(metrics->correct);
    free(metrics->score);
    free(metrics->positive);
    memset(metrics, 0, sizeof *metrics);
}

void metrics_reset(struct metrics *metrics)
{
    metrics->rows = 0;
    metrics->loss_sum = 0;
    metrics->square_sum = metrics->absolute_sum = metrics->target_mean = metrics->target_square_sum = 0;
    if (metrics->correct)
        memset(metrics->correct, 0, (size_t)metrics->classes * 3 * sizeof *metrics->correct);
}

/* Index of the largest of n logits, the first of equals; -1 if one is not a number. */
static int64_t largest(const float *logit, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(logit[i]))
            return -1;
        if (logit[i] > logit[best])
            best = i;
    }
    return best;
}

/* -log softmax(logit)[label], by the largest logit so that nothing overflows. */
static double cross_entropy(const float *logit, int64_t n, float top, int32_t label)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)logit[i] - top);
    return log(sum) - ((double)logit[label] - top);
}

/* A row whose class was guessed (-1: none); score: any number that grows with the chance of class 1. */
static void add_guess(struct metrics *metrics, int64_t row, int64_t guess, int32_t label, float score)
{
    int64_t at = metrics->rows + row;

    metrics->present[label]++;
    if (guess >= 0)
        metrics->predicted[guess]++;
    if (guess == label)
        metrics->correct[guess]++;
    if (at < metrics->capacity) {
        metrics->score[at] = score;
        metrics->positive[at] = label == 1;
    }
}

void metrics_add_logits(struct metrics *metrics, const float *logits, const int32_t *label, int64_t rows)
{
    int64_t classes = metrics->classes;
    for (int64_t row = 0; row < rows; row++) {
        const float *logit = logits + row * classes;
        int64_t guess = largest(logit, classes);
        metrics->loss_sum += guess < 0 ? NAN : cross_entropy(logit, classes, logit[guess], label[row]);
        /* The difference is monotone in the probability of class 1, and does not saturate as that does. */
        add_guess(metrics, row, guess, label[row], logit[1] - logit[0]);
    }
    metrics->rows += rows;
}

void metrics_add_scores(struct metrics *metrics, const float *logit, const int32_t *label, int64_t rows)
{
    for (int64_t row = 0; row < rows; row++) {
        double z = logit[row], towards = label[row] == 1 ? z : -z;
        /* log(1 + exp(-towards)), in the form that does not overflow */
        metrics->loss_sum += fmax(-towards, 0) + log1p(exp(-fabs(z))) + (isnan(z) ? NAN : 0);
        add_guess(metrics, row, isnan(z) ? -1 : z > 0, label[row], logit[row]);
    }
    metrics->rows += rows;
}

/* Of one standardised error. */
static double error_loss(double miss, double huber_delta)
{
    double size = fabs(miss);
    if (huber_delta <= 0)
        return miss * miss;
    return size <= huber_delta ? miss * miss / 2 : huber_delta * (size - huber_delta / 2);
}

void metrics_add_values(struct metrics *metrics, const float *prediction, const float *target, int64_t rows)
{
    double sd = metrics->target_sd;
    for (int64_t row = 0; row < rows; row++) {
        double miss = (double)prediction[row] - target[row];
        metrics->loss_sum += error_loss(miss, metrics->huber_delta);
        metrics->square_sum += miss * sd * (miss * sd);
        metrics->absolute_sum += fabs(miss * sd);
        double delta = target[row] * sd - metrics->target_mean;
        metrics->target_mean += delta / (double)(metrics->rows + row + 1);
        metrics->target_square_sum += delta * (target[row] * sd - metrics->target_mean);
    }
    metrics->rows += rows;
}

struct scored {
    float score;
    unsigned char positive;
};

static int scored_compare(const void *a, const void *b)
{
    float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x > y) - (x < y);
}

/* Mann-Whitney: (sum of the positives' ranks - P(P+1)/2) / (P*N), ties at their mean rank. NaN when a class
 * is absent or a score is not a number. Returns -1 on no memory. */
static int area_under_curve(const struct metrics *metrics, double *area)
{
    int64_t n = metrics->rows < metrics->capacity ? metrics->rows : metrics->capacity;
    *area = NAN;
    if (n == 0)
        return 0;
    struct scored *sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted)
        return -1;
    int64_t positives = 0;
    bool numbers = true;
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = (struct scored){metrics->score[i], metrics->positive[i]};
        positives += sorted[i].positive;
        numbers = numbers && !isnan(sorted[i].score);
    }
    if (numbers && positives > 0 && positives < n) {
        qsort(sorted, (size_t)n, sizeof *sorted, scored_compare);
        double ranks = 0;
        for (int64_t from = 0, to; from < n; from = to) {
            int64_t inside = 0;
            for (to = from; to < n && sorted[to].score == sorted[from].score; to++)
                inside += sorted[to].positive;
            ranks += (double)inside * ((double)(from + 1) + (double)to) / 2;
        }
        double p = (double)positives;
        *area = (ranks - p * (p + 1) / 2) / (p * ((double)n - p));
    }
    free(sorted);
    return 0;
}

static int put(json_t *object, const char *prefix, const char *name, double value)
{
    char key[80];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    return json_object_set_new(object, key, json_number(value));
}

static int report_classes(const struct metrics *metrics, const char *prefix, json_t *object)
{
    int64_t correct = 0;
    double recalls = 0, scores = 0;
    int64_t present = 0, met = 0;
    for (int64_t c = 0; c < metrics->classes; c++) {
        correct += metrics->correct[c];
        if (metrics->present[c]) {
            recalls += (double)metrics->correct[c] / (double)metrics->present[c];
            present++;
        }
        int64_t both = metrics->present[c] + metrics->predicted[c];
        if (both) {
            scores += 2.0 * (double)metrics->correct[c] / (double)both;
            met++;
        }
    }
    double area;
    if (metrics->classes == 2 &&
        (area_under_curve(metrics, &area) < 0 || put(object, prefix, "auc", area) < 0))
        return -1;
    double rows = (double)metrics->rows;
    return put(object, prefix, "accuracy", metrics->rows ? (double)correct / rows : NAN) |
           put(object, prefix, "balanced_accuracy", present ? recalls / (double)present : NAN) |
           put(object, prefix, "f1", met ? scores / (double)met : NAN);
}

static int report_values(const struct metrics *metrics, const char *prefix, json_t *object)
{
    double rows = metrics->rows ? (double)metrics->rows : NAN;
    double total = metrics->target_square_sum;
    return put(object, prefix, "rmse", sqrt(metrics->square_sum / rows)) |
           put(object, prefix, "mae", metrics->absolute_sum / rows) |
           put(object, prefix, "r2", total > 0 ? 1 - metrics->square_sum / total : NAN);
}

int metrics_report(const struct metrics *metrics, const char *prefix, json_t *object, struct error *err)
{
    double loss = metrics->rows ? metrics->loss_sum / (double)metrics->rows : NAN;
    int failed = put(object, prefix, "loss", loss);
    failed |=
        metrics->classes ? report_classes(metrics, prefix, object) : report_values(metrics, prefix, object);
    return failed ? error_set(err, ERROR_MEMORY, "no memory to report metrics") : 0;
}
