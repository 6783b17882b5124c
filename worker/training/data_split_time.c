/* The split along time; see data_split.h. */
#include "worker/training/data.h"
#include "worker/training/data_split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct moment {
    double time;
    int64_t row;
};

static int moment_compare(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time != y->time)
        return (x->time > y->time) - (x->time < y->time);
    return (x->row > y->row) - (x->row < y->row);
}

/* The change of time nearest to `wanted` in [least, most], the earlier of two; -1: there is none. A cut at i
 * lies before order[i]. */
static int64_t find_cut(const struct moment *order, int64_t wanted, int64_t least, int64_t most)
{
    int64_t reach = wanted - least > most - wanted ? wanted - least : most - wanted;
    for (int64_t away = 0; away <= reach; away++) {
        int64_t below = wanted - away, above = wanted + away;
        if (below >= least && below <= most && order[below].time != order[below - 1].time)
            return below;
        if (above >= least && above <= most && order[above].time != order[above - 1].time)
            return above;
    }
    return -1;
}

static void deal(unsigned char *part, const struct moment *order, int64_t rows,
                 const struct split_options *options)
{
    int64_t tested = llround((double)rows * options->test), test = rows;
    int64_t validated = llround((double)rows * options->validation);
    if (options->test > 0)
        test = find_cut(order, rows - (tested ? tested : 1), 3, rows - 1);
    int64_t wanted = test - (validated ? validated : 1);
    int64_t validation = test < 0 ? -1 : find_cut(order, wanted < 2 ? 2 : wanted, 2, test - 1);
    for (int64_t i = 0; i < rows; i++)
        part[order[i].row] = test >= 0 && i >= test               ? SPLIT_TEST
                             : validation >= 0 && i >= validation ? SPLIT_VALIDATION
                                                                  : SPLIT_TRAIN;
}

int split_by_time(unsigned char *part, const double *time, int64_t rows, const struct split_options *options,
                  struct error *err)
{
    struct moment *order = malloc((size_t)rows * sizeof *order);
    if (!order)
        return error_set(err, ERROR_MEMORY, "no memory to split %lld rows", (long long)rows);
    for (int64_t row = 0; row < rows; row++)
        order[row] = (struct moment){time[row], row};
    qsort(order, (size_t)rows, sizeof *order, moment_compare);
    deal(part, order, rows, options);
    free(order);
    if (split_check(part, rows, options->test, err) == 0)
        return 0;
    return error_prefix(err, "data.time: rows of one time stay together");
}
