/* Initial values of a model's parameters. */
#include "worker/training/model.h"

#include "worker/training/random.h"

#include <math.h>
#include <stdlib.h>

static double weight_bound(enum init_kind init, const struct parameter *weight)
{
    switch (init) {
    case INIT_HE:
        return sqrt(6.0 / (double)weight->inputs);
    case INIT_XAVIER:
        return sqrt(6.0 / (double)(weight->inputs + weight->outputs));
    case INIT_DEFAULT:
        break;
    }
    return 1 / sqrt((double)weight->inputs);
}

static void fill(double *values, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
}

static void draw(const struct parameter *parameter, enum init_kind init, uint64_t seed, double *values)
{
    int64_t count = parameter->rows * parameter->columns;

    switch (parameter->kind) {
    case PARAMETER_WEIGHT:
        random_uniform(seed, parameter->layer, 0, values, count, weight_bound(init, parameter));
        break;
    case PARAMETER_BIAS: /* its numbers are those behind the weight's */
        random_uniform(seed, parameter->layer, parameter->inputs * parameter->outputs, values, count,
                       init == INIT_DEFAULT ? weight_bound(init, parameter) : 0);
        break;
    case PARAMETER_EMBEDDING:
        random_normal(seed, parameter->layer, values, count);
        break;
    case PARAMETER_GAIN:
    case PARAMETER_VARIANCE:
        fill(values, count, 1);
        break;
    case PARAMETER_OFFSET:
    case PARAMETER_MEAN:
        break;
    }
}

int model_draw(const struct model *model, enum init_kind init, uint64_t seed, real *values, struct error *err)
{
    double *drawn = calloc((size_t)model->values, sizeof(*drawn));

    if (!drawn)
        return error_set(err, ERROR_MEMORY, "no memory for %lld initial weights",
                         (long long)model->parameters);
    for (int i = 0; i < model->parameter_count; i++)
        draw(&model->list[i], init, seed, drawn + model->list[i].at);
    for (int64_t i = 0; i < model->values; i++)
        values[i] = (real)drawn[i];
    free(drawn);
    return 0;
}
