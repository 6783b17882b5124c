/* Matrix products of the CPU backend: oneDNN in float32, plain loops in the float64 build. */
#ifndef RUNG_KERNELS_CPU_PRODUCT_H
#define RUNG_KERNELS_CPU_PRODUCT_H

#include "base/error.h"
#include "kernels/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c (m, n) = op(a) (m, k) op(b) (k, n), all dense and row-major; a transposed operand is stored (k, m) or (n,
 * k). */
struct product_shape {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    bool accumulate; /* c += instead of c = */
};

struct products;
struct products *products_create(struct error *err);
void products_destroy(struct products *products);
/* Compiles for the shape at its first use (about 0.1 ms), then is a look-up and the product itself. */
int product_run(struct products *products, const struct product_shape *shape, real *c, const real *a,
                const real *b, struct error *err);
/* Name of the instruction set products run on: part of a device's name. Static. */
const char *products_instruction_set(void);

#endif
