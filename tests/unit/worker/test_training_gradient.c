/* Gradients of whole models against central differences, in the float64 build: linear and mlp, relu and gelu,
 * with and without dropout, both losses, whole and in micro batches. */
#include "training_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define ROWS 7
#define FEATURES 4
#define CLASSES 3
#define SEED 20261

/* (f(w + h) - f(w - h)) / 2h is exact to h^2 f'''/6 + 1e-16/h: about 1e-10 at this h. */
#define H 1e-5
#define TOLERANCE 1e-8

struct gradient_case {
    const char *name;
    enum model_kind model;
    enum activation activation;
    double dropout;
    int64_t classes, micro_batch;
};

static const struct gradient_case cases[] = {
    {"linear cross-entropy", MODEL_LINEAR, ACTIVATION_RELU, 0, CLASSES, 0},
    {"linear mse", MODEL_LINEAR, ACTIVATION_RELU, 0, 0, 0},
    {"relu cross-entropy", MODEL_MLP, ACTIVATION_RELU, 0, CLASSES, 0},
    {"relu mse", MODEL_MLP, ACTIVATION_RELU, 0, 0, 2},
    {"gelu cross-entropy", MODEL_MLP, ACTIVATION_GELU, 0, CLASSES, 3},
    {"gelu mse", MODEL_MLP, ACTIVATION_GELU, 0, 0, 0},
    {"relu dropout cross-entropy", MODEL_MLP, ACTIVATION_RELU, 0.4, CLASSES, 0},
    {"gelu dropout cross-entropy", MODEL_MLP, ACTIVATION_GELU, 0.4, CLASSES, 2},
    {"gelu dropout mse", MODEL_MLP, ACTIVATION_GELU, 0.5, 0, 0},
    {"relu dropout mse", MODEL_MLP, ACTIVATION_RELU, 0.5, 0, 4},
};

static void check(const struct gradient_case *c)
{
    struct training_settings settings = plain_settings(ROWS);
    struct training_bed bed;
    float x[ROWS * FEATURES], y[ROWS];
    int32_t label[ROWS];
    real gradient[1000];

    settings.model = c->model;
    settings.hidden_count = 2;
    settings.hidden[0] = 6;
    settings.hidden[1] = 5;
    settings.activation = c->activation;
    settings.dropout = c->dropout;
    settings.micro_batch = c->micro_batch;
    for (uint32_t i = 0; i < ROWS * FEATURES; i++)
        x[i] = 2 * random_value(SEED, i);
    for (uint32_t i = 0; i < ROWS; i++) {
        y[i] = random_value(SEED + 1, i);
        label[i] = (int32_t)(i % CLASSES);
    }
    bed_init(&bed, &settings,
             &(struct bed_rows){.rows = ROWS,
                                .features = FEATURES,
                                .classes = c->classes,
                                .x = x,
                                .label = c->classes ? label : NULL,
                                .y = c->classes ? NULL : y},
             SEED);
    assert_true(bed.model.parameters <= 1000);
    bed_gradient(&bed, 0, ROWS, 5);
    for (int64_t i = 0; i < bed.model.parameters; i++)
        gradient[i] = bed.memory.blocks.gradients[i];
    for (int64_t i = 0; i < bed.model.parameters; i++) {
        real *weight = &bed.memory.blocks.parameters[i], kept = *weight;
        *weight = kept + H;
        double above = bed_gradient(&bed, 0, ROWS, 5);
        *weight = kept - H;
        double below = bed_gradient(&bed, 0, ROWS, 5);
        *weight = kept;
        double difference = (above - below) / (2 * H);
        if (!(fabs(gradient[i] - difference) <= TOLERANCE * (1 + fabs(difference))))
            fail_msg("%s: gradient %lld is %.12g, the difference %.12g", c->name, (long long)i, gradient[i],
                     difference);
    }
    bed_release(&bed);
}

static void test_gradients_equal_central_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_equal_central_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
