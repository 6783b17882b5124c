/* What holds for a step whatever the model: micro batches, short batches, dropout by position, the short way
 * through memory. */
#include "training_fixture.h"

#include "worker/training/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 37
#define FEATURES 9
#define CLASSES 4
#define SEED 71

static float x[ROWS * FEATURES];
static int32_t label[ROWS];
static const struct bed_rows rows_here = {
    .rows = ROWS, .features = FEATURES, .classes = CLASSES, .x = x, .label = label};

static int make_rows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ROWS * FEATURES; i++)
        x[i] = 2 * random_value(SEED, i);
    for (int i = 0; i < ROWS; i++)
        label[i] = i * 7 % CLASSES;
    return 0;
}

static struct training_settings mlp_settings(double dropout, int64_t micro_batch)
{
    struct training_settings settings = plain_settings(ROWS);

    settings.hidden_count = 2;
    settings.hidden[0] = 24;
    settings.hidden[1] = 18;
    settings.activation = ACTIVATION_GELU;
    settings.dropout = dropout;
    settings.micro_batch = micro_batch;
    return settings;
}

static void bed_classify(struct training_bed *bed, double dropout, int64_t micro_batch)
{
    struct training_settings settings = mlp_settings(dropout, micro_batch);
    bed_init(bed, &settings, &rows_here, SEED);
}

static double largest_difference(const real *a, const real *b, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

/* Dropout too: masks go by the position in the effective batch. A mask that differed would show as about
 * 0.01. */
static void test_accumulation_gives_the_whole_batch_gradient(void **state)
{
    (void)state;
    for (int64_t micro = 1; micro < ROWS; micro += 5) {
        struct training_bed whole, cut;
        bed_classify(&whole, 0.3, 0);
        bed_classify(&cut, 0.3, micro);
        double loss = bed_gradient(&whole, 0, ROWS, 11), cut_loss = bed_gradient(&cut, 0, ROWS, 11);
        assert_true(fabs(loss - cut_loss) < 1e-6);
        assert_true(largest_difference(whole.memory.blocks.gradients, cut.memory.blocks.gradients,
                                       whole.model.parameters) < 1e-6);
        bed_release(&whole);
        bed_release(&cut);
    }
}

/* The gradient of 30 rows and that of the other 7 are each a mean over their own rows. */
static void test_short_batch_is_a_mean_over_its_own_rows(void **state)
{
    struct training_settings settings = mlp_settings(0, 4);
    struct training_bed all, most, rest;
    double difference = 0;

    (void)state;
    bed_classify(&all, 0, 0);
    settings.batch_size = 30;
    bed_init(&most, &settings, &rows_here, SEED);
    bed_init(&rest, &settings, &rows_here, SEED);
    double loss = bed_gradient(&all, 0, ROWS, 0);
    double parts = (30 * bed_gradient(&most, 0, 30, 0) + 7 * bed_gradient(&rest, 1, 7, 1)) / ROWS;
    assert_true(fabs(loss - parts) < 1e-6);
    for (int64_t i = 0; i < all.model.parameters; i++)
        difference =
            fmax(difference,
                 fabs(all.memory.blocks.gradients[i] -
                      (30 * most.memory.blocks.gradients[i] + 7 * rest.memory.blocks.gradients[i]) / ROWS));
    assert_true(difference < 1e-6);
    bed_release(&all);
    bed_release(&most);
    bed_release(&rest);
}

static void test_dropout_differs_between_steps_layers_and_seeds(void **state)
{
    struct training_bed bed;
    unsigned char first[ROWS * 18], *mask[2];

    (void)state;
    bed_classify(&bed, 0.5, 0);
    mask[0] = bed.memory.training.mask[1];
    mask[1] = bed.memory.training.mask[2];
    bed_gradient(&bed, 0, ROWS, 3);
    memcpy(first, mask[1], sizeof(first));
    assert_memory_not_equal(mask[0], mask[1], sizeof(first));
    bed_gradient(&bed, 0, ROWS, 3);
    assert_memory_equal(first, mask[1], sizeof(first));
    bed_gradient(&bed, 0, ROWS, 4);
    assert_memory_not_equal(first, mask[1], sizeof(first));
    bed.memory.state->key++;
    bed_gradient(&bed, 0, ROWS, 3);
    assert_memory_not_equal(first, mask[1], sizeof(first));
    bed_release(&bed);
}

static void test_evaluation_knows_no_dropout(void **state)
{
    struct training_bed with, without;
    const real *outputs[2];

    (void)state;
    bed_classify(&with, 0.5, 0);
    bed_classify(&without, 0, 0);
    step_evaluate(&with.plan, &with.plan.rows, 2, 20);
    step_evaluate(&without.plan, &without.plan.rows, 2, 20);
    outputs[0] = model_outputs(&with.model, &with.memory.evaluation);
    outputs[1] = model_outputs(&without.model, &without.memory.evaluation);
    assert_memory_equal(outputs[0], outputs[1], 20 * CLASSES * sizeof(real));
    bed_release(&with);
    bed_release(&without);
}

/* A gradient of 0, so that only decay moves a weight: by hand from the formulas in kernels/device.h. */
static double decayed(enum optimizer_kind optimizer, double weight)
{
    switch (optimizer) {
    case OPTIMIZER_SGD:
    case OPTIMIZER_ADAMW:
        return weight - 0.1 * 0.5 * weight;
    case OPTIMIZER_ADAM: /* m / sqrt(v) of a first step is the sign of the gradient, 0.5 w */
        return weight - (weight > 0 ? 0.1 : -0.1);
    case OPTIMIZER_LAMB: /* u = 0.5 w, r = 2 */
        return weight - 0.1 * 2 * 0.5 * weight;
    case OPTIMIZER_LARS: /* r = 0.001 / 0.5 */
        return weight - 0.1 * 0.5 * weight * 0.002;
    }
    return NAN;
}

static void test_weight_decay_spares_biases(void **state)
{
    struct training_settings settings = mlp_settings(0, 0);
    struct training_bed bed;

    (void)state;
    for (int optimizer = OPTIMIZER_SGD; optimizer <= OPTIMIZER_LARS; optimizer++) {
        settings.optimizer = (enum optimizer_kind)optimizer;
        settings.weight_decay = 0.5;
        bed_init(&bed, &settings, &rows_here, SEED);
        real *parameters = bed.memory.blocks.parameters;
        real weight = parameters[0], bias = parameters[bed.model.weights];
        memset(bed.memory.blocks.gradients, 0, (size_t)bed.model.parameters * sizeof(real));
        bed.memory.state->learning_rate = 0.1;
        optimizer_update(&settings, &bed.model, &bed.memory, bed.device, bed.plan.lanes);
        assert_true(fabs(parameters[0] - decayed(settings.optimizer, weight)) < 1e-6);
        assert_true(parameters[bed.model.weights] == bias);
        bed_release(&bed);
    }
}

static const struct device_operations *plain;
static size_t asked;

static int noting_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    asked = bytes;
    return plain->allocate(device, memory, bytes, err);
}

/* Each tensor of a training pass ends where the next begins, or within the alignment before it, and the last
 * with the block. */
static void check_layout(const struct memory *memory, const struct model *model, int64_t rows)
{
    const struct activations *a = &memory->training;
    size_t parameters = (size_t)model->parameters * sizeof(real);
    const struct {
        const void *begin;
        size_t size;
    } tensors[] = {
        {memory->state, sizeof(struct lane_state)},
        {memory->rates, 5 * sizeof(double)},
        {memory->order, ROWS * sizeof(int32_t)},
        {memory->blocks.parameters, parameters},
        {memory->blocks.gradients, parameters},
        {memory->moments[0], parameters},
        {memory->moments[1], parameters},
        {memory->best, parameters},
        {a->value[0], (size_t)rows * FEATURES * sizeof(real)},
        {a->value[1], (size_t)rows * 24 * sizeof(real)},
        {a->kept[1], (size_t)rows * 24 * sizeof(real)},
        {a->mask[1], (size_t)rows * 24},
        {a->value[2], (size_t)rows * 18 * sizeof(real)},
        {a->kept[2], (size_t)rows * 18 * sizeof(real)},
        {a->mask[2], (size_t)rows * 18},
        {a->value[3], (size_t)rows * CLASSES * sizeof(real)},
        {a->gradient[0], (size_t)rows * 24 * sizeof(real)},
        {a->gradient[1], (size_t)rows * 18 * sizeof(real)},
        {memory->label, (size_t)rows * sizeof(int32_t)},
        {(const char *)memory->block + asked, 0},
    };
    for (size_t i = 0; i + 1 < sizeof(tensors) / sizeof(*tensors); i++) {
        uintptr_t end = (uintptr_t)tensors[i].begin + tensors[i].size, next = (uintptr_t)tensors[i + 1].begin;
        assert_int_equal((uintptr_t)tensors[i].begin % DEVICE_ALIGNMENT, 0);
        assert_true(next >= end && next - end < DEVICE_ALIGNMENT);
    }
}

static void test_tensors_fill_what_is_allocated(void **state)
{
    struct training_settings settings = mlp_settings(0.1, 8);
    struct training_bed bed;
    struct device_operations noting;
    struct memory memory;
    struct error err = {0};

    (void)state;
    settings.objective_best = true;
    settings.optimizer = OPTIMIZER_ADAMW;
    settings.batch_size = 8;
    bed_init(&bed, &settings, &rows_here, SEED);
    plain = bed.device->operations;
    noting = *plain;
    noting.allocate = noting_allocate;
    bed.device->operations = &noting;
    bed.shape.evaluation_rows = 8;
    assert_int_equal(memory_init(&memory, &bed.shape, bed.device, &err), 0);
    assert_int_equal(memory.size, asked);
    assert_int_equal(memory_size(&bed.shape), asked);
    check_layout(&memory, &bed.model, 8);
    memory_release(&memory, bed.device);
    bed.device->operations = plain;
    bed_release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accumulation_gives_the_whole_batch_gradient),
        cmocka_unit_test(test_short_batch_is_a_mean_over_its_own_rows),
        cmocka_unit_test(test_dropout_differs_between_steps_layers_and_seeds),
        cmocka_unit_test(test_evaluation_knows_no_dropout),
        cmocka_unit_test(test_weight_decay_spares_biases),
        cmocka_unit_test(test_tensors_fill_what_is_allocated),
    };
    return cmocka_run_group_tests(tests, make_rows, NULL);
}
