#include "training_fixture.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct training_settings plain_settings(int64_t rows)
{
    return (struct training_settings){
        .model = MODEL_MLP,
        .optimizer = OPTIMIZER_SGD,
        .learning_rate = 0.1,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .batch_size = rows,
        .epochs = 1,
    };
}

void bed_init(struct training_bed *bed, const struct training_settings *settings, int64_t rows,
              int64_t features, int64_t classes, float *x, int32_t *label, float *y, uint64_t seed)
{
    enum task task = classes > 0 ? TASK_CLASSIFICATION : TASK_REGRESSION;
    struct error err = {0};

    *bed = (struct training_bed){.settings = *settings, .x = x, .label = label, .y = y};
    bed->device = device_create("cpu:0", &err);
    assert_non_null(bed->device);
    training_derive(settings, rows, &bed->derived);
    model_init(&bed->model, settings, features, classes > 0 ? classes : 1);
    assert_int_equal(memory_init(&bed->memory, &bed->model, settings, task, rows, rows,
                                 bed->derived.steps_per_epoch, bed->device, &err),
                     0);
    assert_int_equal(model_draw(&bed->model, settings->init, seed, bed->memory.parameters, &err), 0);
    for (int64_t i = 0; i < rows; i++)
        bed->memory.order[i] = (int32_t)i;
    bed->plan = (struct step_plan){
        .settings = &bed->settings,
        .derived = &bed->derived,
        .model = &bed->model,
        .memory = &bed->memory,
        .device = bed->device,
        .rows = {x, label, y},
    };
    *bed->memory.state = optimizer_start(settings, &bed->derived, seed);
}

void bed_release(struct training_bed *bed)
{
    memory_release(&bed->memory, bed->device);
    device_destroy(bed->device);
}

double bed_gradient(struct training_bed *bed, int64_t batch, int64_t count, int64_t step)
{
    struct error err;

    bed->memory.state->loss = 0;
    bed->memory.state->step = step;
    bed->memory.state->epoch_first = step - batch;
    step_gradient(&bed->plan, count);
    assert_int_equal(bed->device->operations->synchronize(bed->device, &err), 0);
    return bed->memory.state->loss / (double)count;
}

float random_value(uint64_t seed, uint32_t element)
{
    return (float)(philox4x32(seed, element, 0, 0, 0).word[0] / 2147483648.0 - 1);
}
