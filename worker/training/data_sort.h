/* Sorting a column's numbers. */
#ifndef RUNG_WORKER_TRAINING_DATA_SORT_H
#define RUNG_WORKER_TRAINING_DATA_SORT_H

#include <stdint.h>

/* Ascending; -0 before 0. No NaN. */
void numbers_sort(double *value, int64_t count);

#endif
