/* The normal distribution, for drawn values and for scores of ranks. */
#ifndef RUNG_BASE_NORMAL_H
#define RUNG_BASE_NORMAL_H

/* Inverse of the standard normal distribution function, 0 < u < 1; relative error about 1e-16. */
double normal_quantile(double u);

#endif
