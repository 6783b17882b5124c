/* Products by oneDNN: one compiled matmul primitive a shape, kept in a small hash table.
 *
 * Primitives rather than dnnl_sgemm: on an AVX-512 machine both reach 85-100 GFLOP/s from 32x128x64 up, but
 * sgemm is up to half as fast where b is transposed or narrow, and its first call compiles for 34 ms; a
 * primitive for 0.1 ms. bf16 runs at twice float32's speed on rows as they lie (195-214 GFLOP/s on a Zen 4
 * core), which is all the processor has: a packed layout of weights, to be made after every update, could win
 * nothing.
 */
#include "kernels/cpu/product.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE 1024 /* a power of two; a trial of L layers uses about 9 L */
#define TABLE_LIMIT 768 /* beyond it all are dropped; oneDNN's own cache makes the next use cheap (5 us) */

struct plan {
    struct product_shape shape;
    dnnl_primitive_t primitive; /* NULL: the slot is free */
    dnnl_memory_t a, b, c;
};

struct products {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int count;
    struct plan table[TABLE_SIZE];
};

static int dnnl_failed(struct error *err, const char *what, dnnl_status_t status)
{
    return error_set(err, status == dnnl_out_of_memory ? ERROR_MEMORY : ERROR_INTERNAL,
                     "oneDNN: %s: status %d", what, (int)status);
}

/* A CPU device is one thread; the library's threads are OpenMP's. Looked up, since only oneDNN knows which
 * OpenMP it was linked with (or that it was with none). */
static void use_one_thread(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    void (*set_threads)(int);

    if (!symbol)
        return;
    memcpy(&set_threads, &symbol, sizeof(set_threads));
    set_threads(1);
}

struct products *products_create(struct error *err)
{
    struct products *products = calloc(1, sizeof(*products));
    dnnl_status_t status;

    if (!products) {
        error_set(err, ERROR_MEMORY, "no memory for the products' state");
        return NULL;
    }
    use_one_thread();
    status = dnnl_engine_create(&products->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&products->stream, products->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
        dnnl_failed(err, "start", status);
        products_destroy(products);
        return NULL;
    }
    return products;
}

static void plan_release(struct plan *plan)
{
    dnnl_memory_destroy(plan->a);
    dnnl_memory_destroy(plan->b);
    dnnl_memory_destroy(plan->c);
    dnnl_primitive_destroy(plan->primitive);
    memset(plan, 0, sizeof(*plan));
}

static void products_clear(struct products *products)
{
    for (int i = 0; i < TABLE_SIZE; i++)
        if (products->table[i].primitive)
            plan_release(&products->table[i]);
    products->count = 0;
}

void products_destroy(struct products *products)
{
    if (!products)
        return;
    products_clear(products);
    dnnl_stream_destroy(products->stream);
    dnnl_engine_destroy(products->engine);
    free(products);
}

static dnnl_status_t describe(dnnl_memory_desc_t *description, int64_t rows, int64_t columns, bool transposed,
                              bool bf16)
{
    dnnl_dims_t sizes = {rows, columns};
    dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};

    return dnnl_memory_desc_init_by_strides(description, 2, sizes, bf16 ? dnnl_bf16 : dnnl_f32, strides);
}

/* c += product as a "sum" post-operation. */
static dnnl_status_t make_attributes(dnnl_primitive_attr_t *attributes, bool accumulate)
{
    dnnl_post_ops_t operations = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(attributes);

    if (status != dnnl_success || !accumulate)
        return status;
    status = dnnl_post_ops_create(&operations);
    if (status == dnnl_success)
        status = dnnl_post_ops_append_sum(operations, 1.0f);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*attributes, operations);
    dnnl_post_ops_destroy(operations);
    return status;
}

static int plan_init(struct plan *plan, const struct product_shape *shape, dnnl_engine_t engine,
                     struct error *err)
{
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t operation;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = describe(&a, shape->m, shape->k, shape->transpose_a, shape->bf16);

    if (status == dnnl_success)
        status = describe(&b, shape->k, shape->n, shape->transpose_b, shape->bf16);
    if (status == dnnl_success)
        status = describe(&c, shape->m, shape->n, false, shape->bf16_result);
    if (status == dnnl_success)
        status = make_attributes(&attributes, shape->accumulate);
    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&operation, &a, &b, NULL, &c);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&description, &operation, attributes, engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&plan->primitive, description);
    if (status == dnnl_success)
        status = dnnl_memory_create(&plan->a, &a, engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&plan->b, &b, engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&plan->c, &c, engine, DNNL_MEMORY_NONE);
    dnnl_primitive_desc_destroy(description);
    dnnl_primitive_attr_destroy(attributes);
    if (status != dnnl_success) {
        plan_release(plan);
        return dnnl_failed(err, "compile a product", status);
    }
    plan->shape = *shape;
    return 0;
}

static bool shape_equal(const struct product_shape *left, const struct product_shape *right)
{
    return left->m == right->m && left->n == right->n && left->k == right->k &&
           left->transpose_a == right->transpose_a && left->transpose_b == right->transpose_b &&
           left->accumulate == right->accumulate && left->bf16 == right->bf16 &&
           left->bf16_result == right->bf16_result;
}

static struct plan *products_find(struct products *products, const struct product_shape *shape,
                                  struct error *err)
{
    uint64_t hash = (uint64_t)shape->m * 0x9e3779b97f4a7c15u ^ (uint64_t)shape->n * 0xc2b2ae3d27d4eb4fu ^
                    (uint64_t)shape->k * 0x165667b19e3779f9u;

    hash += (uint64_t)(shape->transpose_a + 2 * shape->transpose_b + 4 * shape->accumulate + 8 * shape->bf16 +
                       16 * shape->bf16_result)
            << 40;
    for (uint64_t i = hash >> 40;; i++) {
        struct plan *plan = &products->table[i & (TABLE_SIZE - 1)];
        if (plan->primitive) {
            if (shape_equal(&plan->shape, shape))
                return plan;
            continue;
        }
        if (products->count == TABLE_LIMIT)
            products_clear(products);
        if (plan_init(plan, shape, products->engine, err) != 0)
            return NULL;
        products->count++;
        return plan;
    }
}

int product_run(struct products *products, const struct product_shape *shape, void *c, const void *a,
                const void *b, struct error *err)
{
    struct plan *plan = products_find(products, shape, err);
    dnnl_status_t status;

    if (!plan)
        return -1;
    dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, plan->a}, {DNNL_ARG_WEIGHTS, plan->b}, {DNNL_ARG_DST, plan->c}};
    status = dnnl_memory_set_data_handle(plan->a, (void *)a);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle(plan->b, (void *)b);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle(plan->c, c);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(plan->primitive, products->stream, 3, arguments);
    return status == dnnl_success ? 0 : dnnl_failed(err, "product", status);
}

bool products_have_bf16(void)
{
    dnnl_cpu_isa_t set = dnnl_get_effective_cpu_isa();
    return set == dnnl_cpu_isa_avx512_core_bf16 || set == dnnl_cpu_isa_avx512_core_amx;
}

const char *products_instruction_set(void)
{
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "sse41";
    case dnnl_cpu_isa_avx:
        return "avx";
    case dnnl_cpu_isa_avx2:
        return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
        return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core:
        return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
        return "avx512_core_amx";
    default:
        return "generic";
    }
}
