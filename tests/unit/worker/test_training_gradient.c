/* Gradients of whole models against central differences, in the float64 build: every kind of model, norm,
 * activation and loss, with and without dropout, embeddings, smoothing and class weights, whole and in micro
 * batches. */
#include "training_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 7
#define FEATURES 4
#define CLASSES 3
#define CATEGORIES 2
#define SEED 20261
#define PARAMETERS 3000

/* (8 (f(w + h) - f(w - h)) - (f(w + 2h) - f(w - 2h))) / 12h is exact to h^4 f'''''/30 + 1e-16/h: about 1e-11
 * at this h, also where norms of few rows bend sharply. */
#define H 5e-5
#define TOLERANCE 1e-8

static float x[ROWS * FEATURES], y[ROWS];
static int32_t category[ROWS * CATEGORIES], label[ROWS];
static const int64_t cardinality[CATEGORIES] = {3, 5};

static void make_rows(int64_t classes)
{
    for (uint32_t i = 0; i < ROWS * FEATURES; i++)
        x[i] = 2 * random_value(SEED, i);
    for (uint32_t i = 0; i < ROWS; i++) {
        y[i] = 2 * random_value(SEED + 1, i);
        label[i] = classes > 0 ? (int32_t)((i * i + i / 3) % (uint32_t)classes) : 0;
        category[2 * i] = (int32_t)(i % 3);
        category[2 * i + 1] = (int32_t)(i * i % 5); /* entries 0, 1, 4: two are never met */
    }
}

static double step_difference(struct training_bed *bed, real *weight, real kept, double h)
{
    *weight = kept + h;
    double above = bed_gradient(bed, 0, ROWS, 5);
    *weight = kept - h;
    return above - bed_gradient(bed, 0, ROWS, 5);
}

static double central_difference(struct training_bed *bed, int64_t i)
{
    real *weight = &bed->memory.blocks.parameters[i], kept = *weight;
    double near = step_difference(bed, weight, kept, H), far = step_difference(bed, weight, kept, 2 * H);

    *weight = kept;
    return (8 * near - far) / (12 * H);
}

static void check(const char *name, const struct training_settings *settings, int64_t classes,
                  int64_t categories)
{
    static real gradient[PARAMETERS];
    struct training_bed bed;

    make_rows(classes);
    bed_init(&bed, settings,
             &(struct bed_rows){.rows = ROWS,
                                .features = FEATURES,
                                .categories = categories,
                                .classes = classes,
                                .cardinality = cardinality,
                                .x = x,
                                .category = categories ? category : NULL,
                                .label = classes ? label : NULL,
                                .y = classes ? NULL : y},
             SEED);
    assert_true(bed.model.parameters <= PARAMETERS);
    bed_gradient(&bed, 0, ROWS, 5);
    memcpy(gradient, bed.memory.blocks.gradients, (size_t)bed.model.parameters * sizeof(real));
    double largest = 0;
    for (int p = 0; p < bed.model.parameter_count; p++) {
        const struct parameter *parameter = &bed.model.list[p];
        if (parameter->kind == PARAMETER_MEAN || parameter->kind == PARAMETER_VARIANCE)
            continue;
        for (int64_t i = parameter->at; i < parameter->at + parameter->rows * parameter->columns; i++) {
            double difference = central_difference(&bed, i);
            largest = fmax(largest, fabs(gradient[i]));
            if (!(fabs(gradient[i] - difference) <= TOLERANCE * (1 + fabs(difference))))
                fail_msg("%s: gradient of %s at %d is %.12g, the difference %.12g", name, parameter->name,
                         (int)(i - parameter->at), gradient[i], difference);
        }
    }
    assert_true(largest > 1e-3);
    bed_release(&bed);
}

static struct training_settings small(enum model_kind model)
{
    struct training_settings settings = plain_settings(ROWS);

    settings.model = model;
    settings.hidden_count = 2;
    settings.hidden[0] = 6;
    settings.hidden[1] = 5;
    settings.width = 4;
    settings.expansion = 2;
    settings.blocks = 2;
    settings.huber_delta = 0.7;
    return settings;
}

static const char *const model_names[] = {"linear", "mlp", "resnet"};
static const char *const norm_names[] = {"none", "layer", "batch"};

/* Every model with every norm and activation, with and without dropout. */
static void test_models(void **state)
{
    (void)state;
    for (int model = MODEL_LINEAR; model <= MODEL_RESNET; model++)
        for (int norm = NORM_NONE; norm <= NORM_BATCH; norm++)
            for (int activation = ACTIVATION_RELU; activation <= ACTIVATION_TANH; activation++)
                for (int dropout = 0; dropout < 2; dropout++) {
                    struct training_settings settings = small((enum model_kind)model);
                    char name[100];
                    if (model == MODEL_LINEAR && norm + activation + dropout > 0)
                        continue;
                    settings.norm = (enum norm_kind)norm;
                    settings.activation = (enum activation)activation;
                    settings.dropout = 0.4 * dropout;
                    snprintf(name, sizeof(name), "%s, norm %s, activation %d, dropout %d", model_names[model],
                             norm_names[norm], activation, dropout);
                    check(name, &settings, CLASSES, 0);
                }
}

/* Cut in every way there is, with ghost groups of 3, of which the last is of one row and joins. */
static void test_micro_batches(void **state)
{
    (void)state;
    for (int norm = NORM_NONE; norm <= NORM_BATCH; norm++)
        for (int64_t micro = 1; micro <= ROWS; micro++) {
            struct training_settings settings = small(micro % 2 ? MODEL_RESNET : MODEL_MLP);
            char name[100];
            settings.norm = (enum norm_kind)norm;
            settings.norm_batch = 3;
            settings.micro_batch = micro;
            settings.dropout = 0.3;
            settings.activation = ACTIVATION_GELU;
            snprintf(name, sizeof(name), "micro batches of %d, norm %s", (int)micro, norm_names[norm]);
            check(name, &settings, CLASSES, CATEGORIES);
        }
}

static void test_losses(void **state)
{
    static const struct {
        enum loss_kind loss;
        int64_t classes;
        const char *name;
    } losses[] = {{LOSS_CROSS_ENTROPY, CLASSES, "cross-entropy"},
                  {LOSS_CROSS_ENTROPY, 2, "cross-entropy of two"},
                  {LOSS_BINARY, 2, "binary cross-entropy"},
                  {LOSS_MSE, 0, "mse"},
                  {LOSS_HUBER, 0, "huber"}};

    (void)state;
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
        for (int form = 0; form < 4; form++) {
            struct training_settings settings = small(MODEL_MLP);
            char name[100];
            settings.loss = losses[i].loss;
            settings.activation = ACTIVATION_SILU;
            settings.label_smoothing = form & 1 ? 0.2 : 0;
            settings.class_weight = form & 2 && losses[i].classes ? CLASS_WEIGHT_BALANCED : CLASS_WEIGHT_NONE;
            settings.micro_batch = 3;
            snprintf(name, sizeof(name), "%s, form %d", losses[i].name, form);
            check(name, &settings, losses[i].classes, 0);
        }
}

static void test_embeddings(void **state)
{
    (void)state;
    for (int model = MODEL_LINEAR; model <= MODEL_RESNET; model++)
        for (int64_t micro = 0; micro <= 4; micro += 4) {
            struct training_settings settings = small((enum model_kind)model);
            char name[100];
            settings.norm = model == MODEL_RESNET ? NORM_LAYER : NORM_NONE;
            settings.micro_batch = micro;
            settings.activation = ACTIVATION_TANH;
            settings.dropout = 0.25;
            snprintf(name, sizeof(name), "%s with embeddings, micro batches of %d", model_names[model],
                     (int)micro);
            check(name, &settings, 0, CATEGORIES);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_embeddings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
