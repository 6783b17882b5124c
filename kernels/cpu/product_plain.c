/* Products of the float64 build: as plain as can be, since they are what finite differences are measured by.
 */
#include "kernels/cpu/product.h"

#include <stdlib.h>

struct products {
    char unused;
};

struct products *products_create(struct error *err)
{
    struct products *products = calloc(1, sizeof(*products));
    if (!products)
        error_set(err, ERROR_MEMORY, "no memory for the products' state");
    return products;
}

void products_destroy(struct products *products)
{
    free(products);
}

const char *products_instruction_set(void)
{
    return "float64";
}

bool products_have_bf16(void)
{
    return false;
}

int product_run(struct products *products, const struct product_shape *shape, void *result, const void *left,
                const void *right, struct error *err)
{
    real *c = result;
    const real *a = left, *b = right;

    (void)products;
    (void)err;
    for (int64_t i = 0; i < shape->m; i++)
        for (int64_t j = 0; j < shape->n; j++) {
            real sum = 0;
            for (int64_t p = 0; p < shape->k; p++)
                sum += a[shape->transpose_a ? p * shape->m + i : i * shape->k + p] *
                       b[shape->transpose_b ? j * shape->k + p : p * shape->n + j];
            c[i * shape->n + j] = shape->accumulate ? c[i * shape->n + j] + sum : sum;
        }
    return 0;
}
