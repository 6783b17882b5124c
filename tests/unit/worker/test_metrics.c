/* Metrics against values by hand, and against the formulas written out naively in double precision. */
#include "base/random.h"
#include "worker/training/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct metrics make(int64_t classes, int64_t rows, double sd)
{
    struct metrics metrics;
    struct error err;
    assert_int_equal(metrics_init(&metrics, classes, rows, sd, 0, &err), 0);
    return metrics;
}

/* Reports once and frees; get() then looks values up. */
static json_t *finish(struct metrics *metrics)
{
    struct error err;
    json_t *object = json_object();
    assert_int_equal(metrics_report(metrics, "validation_", object, &err), 0);
    metrics_release(metrics);
    return object;
}

static double get(const json_t *object, const char *name)
{
    double value;
    char key[64];
    snprintf(key, sizeof key, "validation_%s", name);
    if (!json_number_get(json_object_get(object, key), &value))
        fail_msg("no %s", key);
    return value;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 + 1e-9 * fabs(b)))
        fail_msg("%.17g is not %.17g", a, b);
}

/* One logit a row: softplus(z) - z of a positive; at 0 neither side wins, and the first class is taken. */
static void one_logit_by_hand(void **state)
{
    (void)state;
    struct metrics metrics = make(2, 6, 1);
    const float logit[] = {2, -1, 0.5f, -3, 0, 200};
    const int32_t label[] = {1, 1, 0, 0, 0, 1};
    metrics_add_scores(&metrics, logit, label, 2);
    metrics_add_scores(&metrics, logit + 2, label + 2, 4);
    json_t *object = finish(&metrics);
    near(get(object, "accuracy"), 4.0 / 6);
    near(get(object, "loss"),
         (log1p(exp(-2)) + log1p(exp(1)) + log1p(exp(0.5)) + log1p(exp(-3)) + log(2) + 0) / 6);
    near(get(object, "balanced_accuracy"), 2.0 / 3);
    near(get(object, "auc"), 7.0 / 9); /* of 9 pairs, -1 loses to 0.5 and 0 */
    json_decref(object);
    /* The same as two logits, of which the first is 0. */
    metrics = make(2, 6, 1);
    const float pairs[] = {0, 2, 0, -1, 0, 0.5f, 0, -3, 0, 0, 0, 200};
    metrics_add_logits(&metrics, pairs, label, 6);
    object = finish(&metrics);
    near(get(object, "accuracy"), 4.0 / 6);
    near(get(object, "auc"), 7.0 / 9);
    json_decref(object);
    metrics = make(2, 2, 1);
    metrics_add_scores(&metrics, (const float[]){NAN, 1}, label, 2);
    object = finish(&metrics);
    assert_true(isnan(get(object, "loss")) && isnan(get(object, "auc")));
    near(get(object, "accuracy"), 0.5);
    json_decref(object);
}

/* delta 1: errors of 0.5 and -3 standard deviations; the other metrics know nothing of it. */
static void huber_by_hand(void **state)
{
    (void)state;
    struct metrics metrics;
    struct error err;
    assert_int_equal(metrics_init(&metrics, 0, 2, 10, 1, &err), 0);
    metrics_add_values(&metrics, (const float[]){0.5f, -1}, (const float[]){0, 2}, 2);
    json_t *object = finish(&metrics);
    near(get(object, "loss"), (0.125 + 2.5) / 2);
    near(get(object, "rmse"), sqrt((25.0 + 900) / 2));
    near(get(object, "mae"), (5.0 + 30) / 2);
    json_decref(object);
}

/* Three classes of which the third is only predicted; one batch of 4 and one of 1. */
static void classes_by_hand(void **state)
{
    (void)state;
    struct metrics metrics = make(3, 5, 1);
    const float logits[] = {2, 0, 0, /**/ 2, 0, 0, /**/ 0, 2, 0, /**/ 0, 0, 2, /**/ 0, 2, 0};
    const int32_t label[] = {0, 1, 1, 0, 1};
    metrics_add_logits(&metrics, logits, label, 4);
    metrics_add_logits(&metrics, logits + 12, label + 4, 1);
    json_t *object = finish(&metrics);
    near(get(object, "accuracy"), 3.0 / 5);
    near(get(object, "balanced_accuracy"), (1.0 / 2 + 2.0 / 3) / 2);
    /* f1: class 0: 2*1/(2+2), class 1: 2*2/(3+2), class 2: 0/(0+1) */
    near(get(object, "f1"), (0.5 + 0.8 + 0) / 3);
    double right = log(exp(2) + 2) - 2, wrong = log(exp(2) + 2);
    near(get(object, "loss"), (3 * right + 2 * wrong) / 5);
    assert_null(json_object_get(object, "validation_auc"));
    json_decref(object);
}

static void area_with_ties(void **state)
{
    (void)state;
    struct metrics metrics = make(2, 6, 1);
    /* scores 1, 1, 2, 3, 3, 0 with labels 0, 1, 1, 0, 1, 0: of 9 pairs (1,1)=half, (1 over 0)=1, (2 over
     * 1)=1, (2 over 0)=1, (3 over 1)=1, (3,3)=half, (3 over 0)=1; in all 6 of 9 */
    const float logits[] = {0, 1, 0, 1, 0, 2, 0, 3, 0, 3, 0, 0};
    const int32_t label[] = {0, 1, 1, 0, 1, 0};
    metrics_add_logits(&metrics, logits, label, 3);
    metrics_add_logits(&metrics, logits + 6, label + 3, 3);
    json_t *object = finish(&metrics);
    near(get(object, "auc"), 6.0 / 9);
    json_decref(object);
}

static void values_in_target_units(void **state)
{
    (void)state;
    struct metrics metrics = make(0, 4, 10);
    const float prediction[] = {0.1f, 0.9f, 2.0f, 3.5f}, target[] = {0, 1, 2, 3};
    metrics_add_values(&metrics, prediction, target, 3);
    metrics_add_values(&metrics, prediction + 3, target + 3, 1);
    json_t *object = finish(&metrics);
    double squares = pow(0.1f, 2) + pow(0.9f - 1.0, 2) + 0.25;
    near(get(object, "loss"), squares / 4);
    near(get(object, "rmse"), 10 * sqrt(squares / 4));
    near(get(object, "mae"), 10 * ((double)0.1f + (1 - (double)0.9f) + 0.5) / 4);
    near(get(object, "r2"), 1 - squares / 5); /* sum (t - 1.5)^2 = 5 */
    json_decref(object);
}

static void undefined_is_nan(void **state)
{
    (void)state;
    struct metrics metrics = make(2, 3, 1);
    json_t *object = finish(&metrics);
    const char *const names[] = {"loss", "accuracy", "balanced_accuracy", "f1", "auc"};
    for (size_t i = 0; i < 5; i++)
        assert_true(isnan(get(object, names[i])));
    json_decref(object);

    metrics = make(2, 3, 1); /* one class only */
    metrics_add_logits(&metrics, (const float[]){0, 1, 1, 0}, (const int32_t[]){1, 1}, 2);
    object = finish(&metrics);
    assert_true(isnan(get(object, "auc")));
    near(get(object, "balanced_accuracy"), 0.5);
    json_decref(object);

    metrics = make(0, 3, 1); /* a constant target */
    metrics_add_values(&metrics, (const float[]){0.1f, 0.2f}, (const float[]){0.3f, 0.3f}, 2);
    object = finish(&metrics);
    assert_true(isnan(get(object, "r2")));
    json_decref(object);
}

static void not_a_number_is_never_right(void **state)
{
    (void)state;
    struct metrics metrics = make(2, 2, 1);
    metrics_add_logits(&metrics, (const float[]){NAN, NAN, 0, 1}, (const int32_t[]){0, 1}, 2);
    json_t *object = finish(&metrics);
    assert_true(isnan(get(object, "loss")));
    near(get(object, "accuracy"), 0.5);
    assert_true(isnan(get(object, "auc")));
    json_decref(object);
}

static void huge_logits_stay_finite(void **state)
{
    (void)state;
    struct metrics metrics = make(2, 1, 1);
    metrics_add_logits(&metrics, (const float[]){1e30f, -1e30f}, (const int32_t[]){0}, 1);
    json_t *object = finish(&metrics);
    near(get(object, "loss"), 0);
    json_decref(object);
}

static void reset_begins_again(void **state)
{
    (void)state;
    struct metrics metrics = make(2, 2, 1);
    const float logits[] = {1, 0, 0, 1};
    metrics_add_logits(&metrics, logits, (const int32_t[]){1, 0}, 2);
    metrics_reset(&metrics);
    metrics_add_logits(&metrics, logits, (const int32_t[]){0, 1}, 2);
    json_t *object = finish(&metrics);
    near(get(object, "accuracy"), 1);
    near(get(object, "auc"), 1);
    json_decref(object);
}

/* The definitions, quadratic where that is the definition. */
static void naive(const float *logits, const int32_t *label, int n, double *auc, double *f1, double *loss)
{
    double wins = 0, pairs = 0, tp[2] = {0}, met[2] = {0};
    *loss = 0;
    for (int i = 0; i < n; i++) {
        double a = logits[2 * i], b = logits[2 * i + 1];
        int guess = b > a;
        *loss -= log(exp(label[i] ? b : a) / (exp(a) + exp(b))) / n;
        tp[guess] += guess == label[i];
        met[guess]++;
        met[label[i]]++;
        for (int j = 0; j < n; j++) {
            if (label[i] != 1 || label[j] != 0)
                continue;
            float x = logits[2 * i + 1] - logits[2 * i], y = logits[2 * j + 1] - logits[2 * j];
            wins += x > y ? 1 : x == y ? 0.5 : 0;
            pairs++;
        }
    }
    *auc = wins / pairs;
    *f1 = (2 * tp[0] / met[0] + 2 * tp[1] / met[1]) / 2;
}

static void drawn_at_random(void **state)
{
    (void)state;
    enum { ROWS = 300 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        float logits[2 * ROWS];
        int32_t label[ROWS];
        for (uint32_t i = 0; i < ROWS; i++) {
            struct philox word = philox4x32(seed, i, 0, 0, 0);
            logits[2 * i] = (float)(word.word[0] % 13) / 4; /* few values: many ties */
            logits[2 * i + 1] = (float)(word.word[1] % 13) / 4;
            label[i] = (int32_t)(word.word[2] & 1);
        }
        struct metrics metrics = make(2, ROWS, 1);
        for (int from = 0, step = 1; from < ROWS; from += step, step = step % 37 + 1) {
            step = from + step > ROWS ? ROWS - from : step;
            metrics_add_logits(&metrics, logits + 2 * from, label + from, step);
        }
        json_t *object = finish(&metrics);
        double auc, f1, loss;
        naive(logits, label, ROWS, &auc, &f1, &loss);
        print_message("seed %llu\n", (unsigned long long)seed);
        near(get(object, "auc"), auc);
        near(get(object, "f1"), f1);
        near(get(object, "loss"), loss);
        json_decref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_by_hand),
        cmocka_unit_test(one_logit_by_hand),
        cmocka_unit_test(huber_by_hand),
        cmocka_unit_test(area_with_ties),
        cmocka_unit_test(values_in_target_units),
        cmocka_unit_test(undefined_is_nan),
        cmocka_unit_test(not_a_number_is_never_right),
        cmocka_unit_test(huge_logits_stay_finite),
        cmocka_unit_test(reset_begins_again),
        cmocka_unit_test(drawn_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
