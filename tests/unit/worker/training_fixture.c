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

void bed_init(struct training_bed *bed, const struct training_settings *settings, const struct bed_rows *rows,
              uint64_t seed)
{
    const struct model_input input = {rows->features, rows->categories, rows->cardinality};
    struct error err = {0};
    enum loss_kind loss;

    *bed = (struct training_bed){.settings = *settings};
    bed->device = device_create("cpu:0", &err);
    assert_non_null(bed->device);
    training_derive(settings, rows->rows, &bed->derived);
    assert_int_equal(loss_resolve(settings->loss, rows->classes, &loss, &err), 0);
    assert_int_equal(model_init(&bed->model, settings, &input, loss_outputs(loss, rows->classes), &err), 0);
    bed->shape = (struct memory_shape){
        .model = &bed->model,
        .settings = &bed->settings,
        .precision = rows->precision,
        .labels = rows->classes > 0,
        .training_rows = rows->rows,
        .steps = bed->derived.steps_per_epoch,
        .micro_rows = derived_most_rows(&bed->derived, rows->rows),
        .norm_batch = bed->derived.norm_batch,
        .evaluation_rows = rows->rows,
    };
    assert_int_equal(memory_init(&bed->memory, &bed->shape, bed->device, &err), 0);
    assert_int_equal(model_draw(&bed->model, settings->init, seed, bed->memory.blocks.parameters, &err), 0);
    if (bed->memory.blocks.stored)
        bed->device->operations->store(bed->device, (struct lanes){.count = 1, .precision = rows->precision},
                                       bed->memory.blocks.stored, bed->memory.blocks.parameters,
                                       bed->model.parameters);
    for (int64_t i = 0; i < rows->rows; i++)
        bed->memory.order[i] = (int32_t)i;
    bed->plan = (struct step_plan){
        .settings = &bed->settings,
        .derived = &bed->derived,
        .model = &bed->model,
        .memory = &bed->memory,
        .device = bed->device,
        .lanes = {.count = 1, .precision = rows->precision},
        .loss = loss,
        .classes = rows->classes,
        .rows = {rows->x, rows->category, rows->label, rows->y},
    };
    if (settings->class_weight == CLASS_WEIGHT_BALANCED) {
        int64_t class_rows[64] = {0};
        for (int64_t i = 0; i < rows->rows; i++)
            class_rows[rows->label[i]]++;
        bed->class_weight = calloc((size_t)rows->classes, sizeof(real));
        loss_class_weights(class_rows, rows->classes, bed->class_weight);
        bed->plan.class_weight = bed->class_weight;
    }
    *bed->memory.state = optimizer_start(settings, &bed->derived, rows->precision, seed);
}

void bed_release(struct training_bed *bed)
{
    memory_release(&bed->memory, bed->device);
    model_release(&bed->model);
    device_destroy(bed->device);
    free(bed->class_weight);
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
