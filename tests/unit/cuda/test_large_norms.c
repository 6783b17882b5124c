/* Norms of large shapes, against float64. */
#include "large_block.h"

static void check_layer_norm(int64_t rows, int64_t columns)
{
    struct block block;

    block_init(&block, 2);
    size_t x = place(&block, rows * columns), y = place(&block, rows * columns),
           dy = place(&block, rows * columns);
    size_t saved = place(&block, 2 * rows), gain = place(&block, columns), offset = place(&block, columns);
    size_t dgain = place(&block, columns), doffset = place(&block, columns);
    block_open(&block);
    to_device(&block);
    operations->layer_norm(device, block.lanes, on_device(&block, y), on_device(&block, saved),
                           on_device(&block, x), on_device(&block, gain), on_device(&block, offset), rows,
                           columns);
    operations->layer_norm_backward(device, block.lanes, on_device(&block, dy), on_device(&block, dgain),
                                    on_device(&block, doffset), on_device(&block, dy), on_device(&block, x),
                                    on_device(&block, saved), on_device(&block, gain), rows, columns, false);
    struct block after = from_device(&block);
    double *total = calloc((size_t)columns, 2 * sizeof(double));
    assert_non_null(total);
    for (int64_t l = 0; l < block.lanes.count; l++) {
        memset(total, 0, (size_t)columns * 2 * sizeof(double));
        for (int64_t r = 0; r < rows; r++) {
            double mean = 0, variance = 0, sum = 0, products = 0;
            int64_t row = r * columns;
            for (int64_t j = 0; j < columns; j++)
                mean += get(&block, l, x, row + j) / (double)columns;
            for (int64_t j = 0; j < columns; j++)
                variance += pow(get(&block, l, x, row + j) - mean, 2) / (double)columns;
            double inverse = 1 / sqrt(variance + 1e-5);
            for (int64_t j = 0; j < columns; j++) {
                double normal = (get(&block, l, x, row + j) - mean) * inverse;
                double d = get(&block, l, dy, row + j), h = d * get(&block, l, gain, j);
                sum += h / (double)columns;
                products += h * normal / (double)columns;
                total[2 * j] += d * normal;
                total[2 * j + 1] += d;
            }
            for (int64_t j = 0; j < columns; j++) {
                double normal = (get(&block, l, x, row + j) - mean) * inverse;
                double h = get(&block, l, dy, row + j) * get(&block, l, gain, j);
                expect("y", l, row + j, get(&after, l, y, row + j),
                       normal * get(&block, l, gain, j) + get(&block, l, offset, j), 4e-6);
                expect("dx", l, row + j, get(&after, l, dy, row + j), inverse * (h - sum - normal * products),
                       4e-6);
            }
        }
        for (int64_t j = 0; j < columns; j++) {
            expect("dgain", l, j, get(&after, l, dgain, j), total[2 * j], 2e-7 * (double)rows + 2e-6);
            expect("doffset", l, j, get(&after, l, doffset, j), total[2 * j + 1], 2e-7 * (double)rows + 2e-6);
        }
    }
    block_release(&block, &after);
    free(total);
}

static void test_layer_norm(void **state)
{
    (void)state;
    check_layer_norm(3, 5000);  /* long rows */
    check_layer_norm(2100, 37); /* column sums in parts */
}

/* The last group has one row more, and running statistics move by each group in its order. */
static void test_batch_norm(void **state)
{
    const int64_t group = 3, groups = 300, rows = group * groups + 1, columns = 35;
    struct block block;

    (void)state;
    block_init(&block, 2);
    size_t x = place(&block, rows * columns), y = place(&block, rows * columns),
           dy = place(&block, rows * columns);
    size_t dx = place(&block, rows * columns), saved = place(&block, 2 * groups * columns);
    size_t running = place(&block, 2 * columns), gain = place(&block, columns),
           offset = place(&block, columns);
    size_t dgain = place(&block, columns), doffset = place(&block, columns);
    block_open(&block);
    to_device(&block);
    operations->batch_norm(device, block.lanes, on_device(&block, y), on_device(&block, saved),
                           on_device(&block, running), on_device(&block, x), on_device(&block, gain),
                           on_device(&block, offset), rows, columns, group);
    operations->batch_norm_backward(device, block.lanes, on_device(&block, dx), on_device(&block, dgain),
                                    on_device(&block, doffset), on_device(&block, dy), on_device(&block, x),
                                    on_device(&block, saved), on_device(&block, gain), rows, columns, group,
                                    true);
    struct block after = from_device(&block);
    for (int64_t l = 0; l < block.lanes.count; l++)
        for (int64_t j = 0; j < columns; j++) {
            double average = get(&block, l, running, j), spread = get(&block, l, running, columns + j);
            double g = get(&block, l, gain, j), o = get(&block, l, offset, j);
            double totals[2] = {get(&block, l, dgain, j), get(&block, l, doffset, j)};
            for (int64_t k = 0; k < groups; k++) {
                int64_t first = k * group, end = k == groups - 1 ? rows : first + group;
                double n = (double)(end - first), mean = 0, variance = 0, sum = 0, products = 0;
                for (int64_t r = first; r < end; r++)
                    mean += get(&block, l, x, r * columns + j) / n;
                for (int64_t r = first; r < end; r++)
                    variance += pow(get(&block, l, x, r * columns + j) - mean, 2) / n;
                double inverse = 1 / sqrt(variance + 1e-5);
                average += 0.1 * (mean - average);
                spread += 0.1 * (variance * n / (n - 1) - spread);
                for (int64_t r = first; r < end; r++) {
                    double d = get(&block, l, dy, r * columns + j);
                    sum += d;
                    products += d * (get(&block, l, x, r * columns + j) - mean) * inverse;
                }
                totals[0] += products;
                totals[1] += sum;
                for (int64_t r = first; r < end; r++) {
                    int64_t i = r * columns + j;
                    double normal = (get(&block, l, x, i) - mean) * inverse, d = get(&block, l, dy, i);
                    double slope = g * inverse * (d - sum / n - normal * products / n);
                    expect("y", l, i, get(&after, l, y, i), normal * g + o, 1e-6 * (1 + inverse));
                    expect("dx", l, i, get(&after, l, dx, i), slope, 1e-6 * inverse * (1 + inverse));
                }
            }
            expect("running mean", l, j, get(&after, l, running, j), average, 1e-6);
            expect("running variance", l, j, get(&after, l, running, columns + j), spread, 1e-6);
            expect("dgain", l, j, get(&after, l, dgain, j), totals[0], 2e-4);
            expect("doffset", l, j, get(&after, l, doffset, j), totals[1], 1e-4);
        }
    block_release(&block, &after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_batch_norm),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
