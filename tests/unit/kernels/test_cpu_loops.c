/* Every table of loops this processor can run, against float64 references. */
#include "kernels/cpu/loops.h"

#include "base/random.h"
#include "kernels/cpu/exponential.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST 137 /* not a multiple of any vector, and longer than several */

static const struct cpu_loops *loops; /* the table under test */

static real value(uint32_t element, double scale)
{
    return (real)(scale * (philox4x32(42, element, 0, 0, 0).word[0] / 2147483648.0 - 1));
}

static void fill(real *x, int64_t count, uint32_t first, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = value(first + (uint32_t)i, scale);
}

static void assert_near(double found, double expected, double tolerance, const char *what, int64_t at)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s: %s %lld is %.9g, expected %.9g", loops->instruction_set, what, (long long)at, found,
                 expected);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double activate(double x, enum device_activation f)
{
    return f == DEVICE_GELU ? gelu(x) : f == DEVICE_RELU ? fmax(x, 0) : x;
}

/* From the tanh form itself, not from the logistic one the loops use. */
static double slope(double x, enum device_activation f)
{
    double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), t = tanh(u);

    if (f == DEVICE_GELU)
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    return f == DEVICE_RELU ? x > 0 : 1;
}

static void check_bias_activation(void)
{
    real y[3 * LONGEST], before[3 * LONGEST], sums[3 * LONGEST], bias[LONGEST];

    for (int64_t columns = 1; columns <= LONGEST; columns += 17)
        for (int f = DEVICE_IDENTITY; f <= DEVICE_GELU; f++) {
            fill(y, 3 * columns, 0, 6);
            fill(bias, columns, 1000, 2);
            for (int64_t i = 0; i < 3 * columns; i++)
                sums[i] = y[i] + bias[i % columns];
            loops->bias_activation(y, before, bias, 3, columns, (enum device_activation)f);
            for (int64_t i = 0; i < 3 * columns; i++) {
                double expected = activate(sums[i], (enum device_activation)f);
                assert_true(before[i] == sums[i]);
                assert_near(y[i], expected, 3e-7 * (1 + fabs(expected)), "activation", i);
            }
        }
}

static void check_activation_extremes(void)
{
    const real inputs[] = {-1e30f, -100, -12, -0.0f, 0, 12, 100, 1e30f, INFINITY};
    const int count = sizeof(inputs) / sizeof(*inputs);
    real y[16], zero[16] = {0};

    memcpy(y, inputs, sizeof(inputs));
    loops->bias_activation(y, NULL, zero, 1, count, DEVICE_GELU);
    for (int i = 0; i < count; i++)
        assert_true(inputs[i] > 1 ? y[i] == inputs[i] : fabs((double)y[i]) < 1e-5);
    y[0] = y[5] = NAN;
    loops->bias_activation(y, NULL, zero, 1, 16, DEVICE_GELU);
    assert_true(isnan(y[0]) && isnan(y[5]));
    loops->bias_activation(y, NULL, zero, 1, 16, DEVICE_RELU);
    assert_true(isnan(y[0]) && isnan(y[5]));
}

static void check_activation_backward(void)
{
    real x[LONGEST], mask[LONGEST], gradient[LONGEST], given[LONGEST];

    fill(x, LONGEST, 0, 5);
    fill(given, LONGEST, 500, 1);
    for (int i = 0; i < LONGEST; i++)
        mask[i] = i % 3 ? 1.5f : 0;
    for (int f = DEVICE_RELU; f <= DEVICE_GELU; f++)
        for (int masked = 0; masked < 2; masked++) {
            memcpy(gradient, given, sizeof(given));
            loops->activation_backward(gradient, x, masked ? mask : NULL, LONGEST, (enum device_activation)f);
            for (int i = 0; i < LONGEST; i++)
                assert_near(gradient[i],
                            given[i] * (masked ? mask[i] : 1) * slope(x[i], (enum device_activation)f), 1e-6,
                            "backward", i);
        }
}

/* Far out the slope is 1 or 0; its polynomial alone would overflow there. */
static void check_slope_extremes(void)
{
    const real inputs[] = {20, 1e4f, 1e6f, 1e12f, 1e16f, 1e20f, 1e30f, INFINITY};
    const int count = sizeof(inputs) / sizeof(*inputs);
    real gradient[20], x[20];

    for (int sign = -1; sign <= 1; sign += 2) {
        for (int i = 0; i < 20; i++) {
            gradient[i] = 1;
            x[i] = (real)sign * inputs[i % count];
        }
        loops->activation_backward(gradient, x, NULL, 20, DEVICE_GELU);
        for (int i = 0; i < 20; i++)
            assert_near(gradient[i], sign > 0 ? 1 : 0, 1e-6, "slope", i);
    }
    x[3] = NAN;
    loops->activation_backward(gradient, x, NULL, 20, DEVICE_GELU);
    assert_true(isnan(gradient[3]) && !isnan(gradient[4]));
}

static void check_column_sums(void)
{
    real x[5 * LONGEST], sums[LONGEST];

    fill(x, 5 * LONGEST, 0, 1);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        for (int j = 0; j < LONGEST; j++)
            sums[j] = 10;
        loops->column_sums(sums, x, 5, LONGEST, accumulate);
        for (int j = 0; j < LONGEST; j++) {
            double expected = accumulate ? 10 : 0;
            for (int i = 0; i < 5; i++)
                expected += x[i * LONGEST + j];
            assert_near(sums[j], expected, 3e-6, "column sum", j);
        }
    }
}

/* As device.h says. */
static bool is_dropped(int64_t e, uint32_t stream, const struct dropout_draw *draw)
{
    int64_t r = e % 128;
    struct philox block = philox4x32(draw->key, (uint32_t)(e / 128 * 16 + r % 16), 0, draw->step, stream);
    uint32_t word = block.word[r / 32], half = r / 16 % 2 ? word >> 16 : word & 0xffff;

    return half < (uint32_t)round(draw->probability * 65536);
}

static void check_dropout(void)
{
    const struct dropout_draw draw = {.key = 0xfedcba9876543210, .step = 17, .probability = 0.3};
    const int64_t firsts[] = {0, 1, 63, 64, 127, 128, 1000, 131071};
    real y[LONGEST], mask[LONGEST];

    for (size_t f = 0; f < sizeof(firsts) / sizeof(*firsts); f++)
        for (int64_t count = 1; count <= LONGEST; count += 34) {
            fill(y, count, 0, 1);
            loops->dropout(y, mask, firsts[f], count, 5, &draw);
            for (int64_t i = 0; i < count; i++) {
                double factor =
                    is_dropped(firsts[f] + i, 5, &draw) ? 0 : 65536 / (65536 - round(0.3 * 65536));
                assert_near(mask[i], factor, 1e-7, "mask", i);
                assert_near(y[i], value((uint32_t)i, 1) * factor, 1e-6, "dropped", i);
            }
        }
}

/* The share dropped within 5 standard errors, and so the expectation of what is kept. */
static void check_dropout_mean(void)
{
    enum { COUNT = 200000 };
    const double probabilities[] = {0, 0.1, 0.5, 0.9999999};
    real *y = malloc(COUNT * sizeof(*y)), *mask = malloc(COUNT * sizeof(*mask));

    assert_true(y && mask);
    for (int p = 0; p < 4; p++) {
        struct dropout_draw draw = {.key = 99, .step = 3, .probability = probabilities[p]};
        double mean = 0, error = sqrt(draw.probability / (1 - draw.probability) / COUNT);
        for (int i = 0; i < COUNT; i++)
            y[i] = 1;
        loops->dropout(y, mask, 0, COUNT, 0, &draw);
        for (int i = 0; i < COUNT; i++)
            mean += (double)y[i] / COUNT;
        assert_near(mean, 1, 5 * error + 1e-6, "mean after dropout", p);
    }
    free(y);
    free(mask);
}

static double reference_loss(const real *logits, int32_t label, int64_t classes, double *softmax)
{
    double maximum = -INFINITY, sum = 0;

    for (int64_t j = 0; j < classes; j++)
        maximum = fmax(maximum, logits[j]);
    for (int64_t j = 0; j < classes; j++)
        sum += softmax[j] = exp(logits[j] - maximum);
    for (int64_t j = 0; j < classes; j++)
        softmax[j] /= sum;
    return log(sum) + maximum - logits[label];
}

static void check_cross_entropy(void)
{
    const double scales[] = {1, 30, 1000}; /* 1000: naive exponentials would overflow */
    real logits[4 * LONGEST], gradient[4 * LONGEST];
    double softmax[LONGEST];
    int32_t label[4];

    for (int64_t classes = 2; classes <= LONGEST; classes += classes < 20 ? 1 : 29)
        for (int s = 0; s < 3; s++) {
            double expected = 0, scale = 0.125, loss;
            fill(logits, 4 * classes, (uint32_t)s, scales[s]);
            for (int i = 0; i < 4; i++)
                label[i] = (int32_t)(i * 5 % classes);
            loss = loops->softmax_cross_entropy(gradient, logits, label, 4, classes, scale);
            for (int i = 0; i < 4; i++) {
                expected += reference_loss(logits + i * classes, label[i], classes, softmax);
                for (int64_t j = 0; j < classes; j++)
                    assert_near(gradient[i * classes + j], scale * (softmax[j] - (j == label[i])), 1e-7,
                                "cross-entropy gradient", j);
            }
            assert_near(loss, expected, 1e-6 * (1 + expected), "cross-entropy", classes);
        }
    logits[1] = NAN;
    assert_true(isnan(loops->softmax_cross_entropy(gradient, logits, label, 1, 20, 1)));
}

static void check_squared_error(void)
{
    real prediction[LONGEST], target[LONGEST], gradient[LONGEST];
    double expected = 0;

    fill(prediction, LONGEST, 0, 3);
    fill(target, LONGEST, 200, 3);
    double loss = loops->squared_error(gradient, prediction, target, LONGEST, 0.25);
    for (int i = 0; i < LONGEST; i++) {
        double difference = (double)prediction[i] - (double)target[i];
        expected += difference * difference;
        assert_near(gradient[i], 0.5 * difference, 1e-6, "mse gradient", i);
    }
    assert_near(loss, expected, 1e-4, "mse", 0);
}

static void check_sgd(void)
{
    struct sgd_step step = {.learning_rate = 0.05, .momentum = 0.8, .weight_decay = 0.1};
    real w[LONGEST], g[LONGEST], v[LONGEST];

    for (int kind = 0; kind < 3; kind++) { /* plain, momentum, nesterov */
        fill(w, LONGEST, 0, 1);
        fill(g, LONGEST, 200, 1);
        fill(v, LONGEST, 400, 1);
        step.nesterov = kind == 2;
        loops->sgd(w, g, kind ? v : NULL, LONGEST, &step);
        for (uint32_t i = 0; i < LONGEST; i++) {
            double weight = value(i, 1), gradient = value(200 + i, 1) + 0.1 * weight;
            double velocity = 0.8 * value(400 + i, 1) + gradient;
            double change = kind == 0 ? gradient : kind == 1 ? velocity : gradient + 0.8 * velocity;
            assert_near(w[i], weight - 0.05 * change, 2e-7, "sgd weight", i);
            assert_near(v[i], kind ? velocity : value(400 + i, 1), 2e-7, "velocity", i);
        }
    }
}

static void check_adamw(void)
{
    const struct adamw_step step = {.learning_rate = 0.01,
                                    .beta1 = 0.9,
                                    .beta2 = 0.99,
                                    .epsilon = 1e-6,
                                    .weight_decay = 0.2,
                                    .number = 3};
    real w[LONGEST], g[LONGEST], m[LONGEST], v[LONGEST];

    fill(w, LONGEST, 0, 1);
    fill(g, LONGEST, 200, 1);
    fill(m, LONGEST, 400, 1);
    for (uint32_t i = 0; i < LONGEST; i++)
        v[i] = (real)fabs((double)value(600 + i, 1));
    loops->adamw(w, g, m, v, LONGEST, &step);
    for (uint32_t i = 0; i < LONGEST; i++) {
        double gradient = value(200 + i, 1), mean = 0.9 * value(400 + i, 1) + 0.1 * gradient;
        double square = 0.99 * fabs((double)value(600 + i, 1)) + 0.01 * gradient * gradient;
        double change = mean / (1 - pow(0.9, 3)) / (sqrt(square / (1 - pow(0.99, 3))) + 1e-6);
        assert_near(w[i], value(i, 1) * (1 - 0.01 * 0.2) - 0.01 * change, 3e-7, "adamw weight", i);
        assert_near(m[i], mean, 2e-7, "mean", i);
        assert_near(v[i], square, 2e-7, "square", i);
    }
}

/* Without a gradient the moments end at exactly nothing, not among the denormals. */
static void check_moments_end(void)
{
    const struct adamw_step adamw = {
        .learning_rate = 0.01, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 1e-8, .number = 1000};
    const struct sgd_step sgd = {.learning_rate = 0.01, .momentum = 0.5};
    real w[LONGEST], g[LONGEST] = {0}, m[LONGEST], v[LONGEST], velocity[LONGEST];

    fill(w, LONGEST, 0, 1);
    fill(m, LONGEST, 0, 1);
    fill(velocity, LONGEST, 0, 1);
    for (int i = 0; i < LONGEST; i++)
        v[i] = 1;
    for (int step = 0; step < 110; step++) { /* 2^-110 = 8e-34 */
        loops->adamw(w, g, m, v, LONGEST, &adamw);
        loops->sgd(w, g, velocity, LONGEST, &sgd);
    }
    for (int i = 0; i < LONGEST; i++)
        assert_true(m[i] == 0 && v[i] == 0 && velocity[i] == 0 && isfinite(w[i]));
    g[3] = NAN;
    loops->adamw(w, g, m, v, LONGEST, &adamw);
    assert_true(isnan(m[3]) && isnan(v[3]) && isnan(w[3]));
}

static void check_finite(void)
{
    const real bad[] = {NAN, INFINITY, -INFINITY};
    real x[LONGEST];

    for (int64_t count = 0; count <= LONGEST; count++) {
        fill(x, LONGEST, 0, 1e38);
        assert_true(loops->finite(x, count));
        if (count < LONGEST) {
            x[count] = bad[count % 3]; /* just behind the end */
            assert_true(loops->finite(x, count));
            assert_false(loops->finite(x, count + 1));
        }
    }
}

static void each_table(void (*check)(void))
{
    int tables = 0;

    for (int i = 0; cpu_loops_all[i]; i++)
        if (cpu_loops_runs_here(cpu_loops_all[i])) {
            loops = cpu_loops_all[i];
            check();
            tables++;
        }
    assert_true(tables >= 1);
}

#define EACH_TABLE(name)                                                                                     \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        each_table(check_##name);                                                                            \
    }
EACH_TABLE(bias_activation)
EACH_TABLE(activation_extremes)
EACH_TABLE(activation_backward)
EACH_TABLE(slope_extremes)
EACH_TABLE(column_sums)
EACH_TABLE(dropout)
EACH_TABLE(dropout_mean)
EACH_TABLE(cross_entropy)
EACH_TABLE(squared_error)
EACH_TABLE(sgd)
EACH_TABLE(adamw)
EACH_TABLE(moments_end)
EACH_TABLE(finite)

/* Two units in the last place over the whole range, as the header says. */
static void test_exponential_is_close(void **state)
{
    double worst = 0;

    (void)state;
    for (int i = -87000; i <= 88000; i++) {
        float x = (float)(i / 1000.0), found = exponential(x), expected = (float)exp((double)x);
        double ulp = nextafterf(expected, INFINITY) - expected;
        worst = fmax(worst, fabs((double)found - exp((double)x)) / ulp);
    }
    if (worst > 2)
        fail_msg("exponential is off by %.2f units in the last place", worst);
    assert_true(exponential(0) == 1);
    assert_true(exponential(-1e30f) < 2e-38f && exponential(-INFINITY) >= 0);
    assert_true(isfinite(exponential(INFINITY)) && exponential(1e30f) > 1e38f);
    assert_true(isnan(exponential(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential_is_close),
        cmocka_unit_test(test_bias_activation),
        cmocka_unit_test(test_activation_extremes),
        cmocka_unit_test(test_activation_backward),
        cmocka_unit_test(test_slope_extremes),
        cmocka_unit_test(test_column_sums),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_dropout_mean),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_squared_error),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_moments_end),
        cmocka_unit_test(test_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
