/* Matrix products of the CPU backend: oneDNN in float32 and bf16, plain loops in the float64 build. */
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
    bool accumulate;  /* c += instead of c = */
    bool bf16;        /* a and b are bf16, else real */
    bool bf16_result; /* c is, else real */
};

struct products;
struct products *products_create(struct error *err);
void products_destroy(struct products *products);
/* Compiles for the shape at its first use (about 0.1 ms), then is a look-up and the product itself. */
int product_run(struct products *products, const struct product_shape *shape, void *c, const void *a,
                const void *b, struct error *err);
/* Whether the processor multiplies bf16 by itself; where it does not, shapes with bf16 are not to be asked
 * for. */
bool products_have_bf16(void);
/* Name of the instruction set products run on: part of a device's name. Static. */
const char *products_instruction_set(void);

#endif
