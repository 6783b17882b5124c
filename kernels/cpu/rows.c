/* Where a step's data come from: its state, rows of the data set, and embeddings. */
#include "kernels/cpu/cpu_internal.h"

#include <string.h>

static bool is_narrow(struct lanes lanes)
{
    return device_stored_size(lanes.precision) == 2;
}

void cpu_step_begin(struct device *device, struct lanes lanes, struct lane_state *state, const double *rates)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++) {
        struct lane_state *own = LANE(state, l);
        const double *rate = LANE_CONST(rates, l);
        own->learning_rate = rate[own->step - own->epoch_first];
    }
}

void cpu_step_end(struct device *device, struct lanes lanes, struct lane_state *state)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++)
        lane_state_end_step(LANE(state, l));
}

/* A lane's rows: of[r] is order[r], or first + r without an order. */
struct source_rows {
    const int32_t *order;
    int64_t first;
};

static struct source_rows lane_rows(struct lanes lanes, int64_t l, const struct device_rows_of *of)
{
    if (!of->order)
        return (struct source_rows){.first = of->first};
    const struct lane_state *state = LANE_CONST(of->state, l);
    const int32_t *order = LANE_CONST(of->order, l);
    return (struct source_rows){.order = order + (state->step - state->epoch_first) * of->batch + of->first};
}

static int64_t source_row(const struct source_rows *rows, int64_t r)
{
    return rows->order ? rows->order[r] : rows->first + r;
}

static void take_row(real *restrict y, const float *restrict source, int64_t columns)
{
#ifdef RUNG_REAL_DOUBLE
    for (int64_t j = 0; j < columns; j++)
        y[j] = source[j];
#else
    memcpy(y, source, (size_t)columns * sizeof(*y));
#endif
}

void cpu_gather_real(struct device *device, struct lanes lanes, real *y, const float *source,
                     struct device_rows_of of, int64_t rows, int64_t columns)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++) {
        real *to = LANE(y, l);
        struct source_rows from = lane_rows(lanes, l, &of);
        for (int64_t i = 0; i < rows; i++)
            take_row(to + i * columns, source + source_row(&from, i) * columns, columns);
    }
}

#define STRETCH 1024 /* elements narrowed at once */

static void narrow_row(struct cpu *cpu, uint16_t *y, const float *source, int64_t columns,
                       enum device_precision precision)
{
    real block[STRETCH];

    for (int64_t at = 0, count; at < columns; at += count) {
        count = columns - at < STRETCH ? columns - at : STRETCH;
        take_row(block, source + at, count);
        cpu->loops->narrow(y + at, block, count, precision);
    }
}

void cpu_gather(struct device *device, struct lanes lanes, void *y, int64_t stride, const float *source,
                struct device_rows_of of, int64_t rows, int64_t columns)
{
    for (int64_t l = 0; l < lanes.count; l++) {
        void *to = LANE(y, l);
        struct source_rows from = lane_rows(lanes, l, &of);
        for (int64_t i = 0; i < rows; i++) {
            const float *row = source + source_row(&from, i) * columns;
            if (is_narrow(lanes))
                narrow_row(cpu_of(device), (uint16_t *)to + i * stride, row, columns, lanes.precision);
            else
                take_row((real *)to + i * stride, row, columns);
        }
    }
}

void cpu_gather_integers(struct device *device, struct lanes lanes, int32_t *y, const int32_t *source,
                         struct device_rows_of of, int64_t rows, int64_t columns)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++) {
        int32_t *to = LANE(y, l);
        struct source_rows from = lane_rows(lanes, l, &of);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                to[i * columns + j] = source[source_row(&from, i) * columns + j];
    }
}

void cpu_embedding_forward(struct device *device, struct lanes lanes, void *y, int64_t stride, int64_t first,
                           const real *table, const int32_t *category, int64_t categories, int64_t which,
                           int64_t rows, int64_t width)
{
    struct cpu *cpu = cpu_of(device);

    for (int64_t l = 0; l < lanes.count; l++) {
        void *to = LANE(y, l);
        const real *entries = LANE_CONST(table, l);
        const int32_t *of = LANE_CONST(category, l);
        for (int64_t i = 0; i < rows; i++) {
            const real *entry = entries + of[i * categories + which] * width;
            int64_t at = i * stride + first;
            if (is_narrow(lanes))
                cpu->loops->narrow((uint16_t *)to + at, entry, width, lanes.precision);
            else
                memcpy((real *)to + at, entry, (size_t)width * sizeof(*entry));
        }
    }
}

void cpu_embedding_backward(struct device *device, struct lanes lanes, real *dtable, const void *dy,
                            int64_t stride, int64_t first, const int32_t *category, int64_t categories,
                            int64_t which, int64_t rows, int64_t entries, int64_t width, bool accumulate)
{
    struct cpu *cpu = cpu_of(device);

    for (int64_t l = 0; l < lanes.count; l++) {
        real *sums = LANE(dtable, l);
        const char *slopes = LANE_CONST(dy, l);
        const int32_t *of = LANE_CONST(category, l);
        if (!accumulate)
            memset(sums, 0, (size_t)(entries * width) * sizeof(*sums));
        for (int64_t i = 0; i < rows; i++) {
            int64_t at = i * stride + first;
            cpu->loops->column_sums(sums + of[i * categories + which] * width,
                                    slopes + (size_t)at * device_stored_size(lanes.precision), 1, width, true,
                                    lanes.precision);
        }
    }
}
