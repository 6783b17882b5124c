/* Losses and updates of large shapes, against float64. */
#include "large_block.h"

/* Softmax of one row: the largest, and the sum of exponentials. */
static double row_loss(const float *x, int64_t classes, int64_t label, double smoothing, double *slope)
{
    double most = x[0], sum = 0, loss = 0;

    for (int64_t c = 1; c < classes; c++)
        most = x[c] > most ? x[c] : most;
    for (int64_t c = 0; c < classes; c++)
        sum += exp((double)x[c] - most);
    for (int64_t c = 0; c < classes; c++) {
        double share = smoothing / (double)classes + (c == label ? 1 - smoothing : 0);
        loss += share * (most + log(sum) - (double)x[c]);
        slope[c] = exp((double)x[c] - most) / sum - share;
    }
    return loss;
}

static void check_softmax(int64_t rows, int64_t classes)
{
    struct block block;
    double *slope = malloc(sizeof(double) * (size_t)classes);

    assert_non_null(slope);
    block_init(&block, 2);
    size_t logits = place(&block, rows * classes), gradient = place(&block, rows * classes);
    size_t labels = place(&block, rows);
    block_open(&block);
    for (int64_t l = 0; l < block.lanes.count; l++)
        for (int64_t r = 0; r < rows; r++)
            ((int32_t *)on_host(&block, l, labels))[r] = (int32_t)((r * 7 + l) % classes);
    to_device(&block);
    operations->softmax_cross_entropy(device, block.lanes, on_device(&block, gradient),
                                      on_device(&block, logits), on_device(&block, labels), NULL, rows,
                                      classes, 0.25, on_device(&block, 0));
    struct block after = from_device(&block);
    for (int64_t l = 0; l < block.lanes.count; l++) {
        const struct lane_state *state = on_host(&after, l, 0);
        double loss = 0;
        for (int64_t r = 0; r < rows; r++) {
            const float *x = (float *)on_host(&block, l, logits) + r * classes;
            loss += row_loss(x, classes, (r * 7 + l) % classes, state->label_smoothing, slope);
            for (int64_t c = 0; c < classes; c++)
                expect("gradient", l, r * classes + c, get(&after, l, gradient, r * classes + c),
                       0.25 * slope[c], 1e-6 * fabs(slope[c]) + 1e-8);
        }
        expect("loss", l, 0, state->loss, loss, 1e-6 * loss);
    }
    block_release(&block, &after);
    free(slope);
}

static void test_softmax(void **state)
{
    (void)state;
    check_softmax(1300, 10);
    check_softmax(700, 40);
    check_softmax(30, 1900);
    check_softmax(5, 3000);
}

static void test_measure_gradient(void **state)
{
    const int64_t count = 150001;
    struct block block;

    (void)state;
    block_init(&block, 2);
    size_t gradient = place(&block, count);
    block_open(&block);
    to_device(&block);
    operations->measure_gradient(device, block.lanes, on_device(&block, gradient), count,
                                 on_device(&block, 0));
    bool finite[2] = {false, false};
    operations->finite(device, block.lanes, finite, on_device(&block, gradient), count);
    struct block after = from_device(&block);
    for (int64_t l = 0; l < 2; l++) {
        double squares = 0;
        for (int64_t i = 0; i < count; i++)
            squares += get(&block, l, gradient, i) * get(&block, l, gradient, i);
        const struct lane_state *found = on_host(&after, l, 0);
        expect("norm", l, 0, found->gradient_norm, sqrt(squares), 1e-7 * sqrt(squares));
        assert_int_equal(found->finite, 1);
        assert_true(finite[l]);
    }
    block_release(&block, &after);
}

enum { PARAMETER_TENSORS = 70 };

/* One tensor of lamb (trusted: of the decayed part) or lars, without momentum. */
static void expect_tensor(const struct block *block, const struct block *after, int64_t l, const size_t at[4],
                          int64_t begin, int64_t end, bool trusted, bool lamb)
{
    const struct lane_state *s = on_host(block, l, 0);
    double decay = trusted ? s->weight_decay : 0, t = (double)(s->updates + 1), norm[2] = {0, 0}, ratio = 1;

    for (int64_t pass = 0; pass < 2; pass++) {
        for (int64_t i = begin; i < end; i++) {
            double w = get(block, l, at[0], i), g = get(block, l, at[1], i) * s->gradient_factor, u = g;
            if (lamb) {
                double m = s->beta1 * get(block, l, at[2], i) + (1 - s->beta1) * g;
                double v = s->beta2 * fabs(get(block, l, at[3], i)) + (1 - s->beta2) * g * g;
                u = m / (1 - pow(s->beta1, t)) / (sqrt(v / (1 - pow(s->beta2, t))) + s->epsilon) + decay * w;
            }
            norm[0] += pass ? 0 : w * w;
            norm[1] += pass ? 0 : u * u;
            u = lamb ? u : g + decay * w;
            if (pass)
                expect("weight", l, i, get(after, l, at[0], i), w - s->learning_rate * ratio * u,
                       1e-6 * (1 + s->learning_rate * ratio * fabs(u)));
        }
        double weight = sqrt(norm[0]), step = sqrt(norm[1]);
        if (trusted)
            ratio = lamb ? weight / step : 0.001 * weight / (step + decay * weight + 1e-8);
    }
}

/* Many tensors, one of them in parts, and more lanes than find room at once. */
static void check_trust(enum device_optimizer optimizer)
{
    const int64_t lanes = 34, rest = 77;
    int64_t end[PARAMETER_TENSORS], decayed = 0;
    struct block block;
    size_t at[4];

    for (int i = 0; i < PARAMETER_TENSORS; i++)
        end[i] = decayed += i == 50 ? 9001 : 1 + i % 40;
    block_init(&block, lanes);
    for (int i = 0; i < 4; i++)
        at[i] = place(&block, decayed + rest);
    block_open(&block);
    for (int64_t l = 0; l < lanes; l++) /* squares are not negative */
        for (int64_t i = 0; i < decayed + rest; i++)
            ((float *)on_host(&block, l, at[3]))[i] = (float)fabs(get(&block, l, at[3], i));
    to_device(&block);
    bool lamb = optimizer == DEVICE_LAMB;
    struct device_parameters parameters = {
        .weight = on_device(&block, at[0]),
        .gradient = on_device(&block, at[1]),
        .count = decayed + rest,
        .moment = {lamb ? on_device(&block, at[2]) : NULL, lamb ? on_device(&block, at[3]) : NULL},
        .decayed = decayed,
        .tensor_end = end,
        .tensors = PARAMETER_TENSORS};
    operations->update(device, block.lanes, optimizer, &parameters, on_device(&block, 0));
    struct block after = from_device(&block);
    for (int64_t l = 0; l < lanes; l++) {
        for (int i = 0; i < PARAMETER_TENSORS; i++)
            expect_tensor(&block, &after, l, at, i ? end[i - 1] : 0, end[i], true, lamb);
        expect_tensor(&block, &after, l, at, decayed, decayed + rest, false, lamb);
    }
    block_release(&block, &after);
}

static void test_trust(void **state)
{
    (void)state;
    check_trust(DEVICE_LAMB);
    check_trust(DEVICE_LARS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_measure_gradient),
        cmocka_unit_test(test_trust),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
