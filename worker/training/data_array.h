/* A plain array of numbers in a file: its elements, its shape, and the table it makes. */
#ifndef RUNG_WORKER_TRAINING_DATA_ARRAY_H
#define RUNG_WORKER_TRAINING_DATA_ARRAY_H

#include "base/error.h"
#include "worker/training/data_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum element {
    ELEMENT_UINT8,
    ELEMENT_INT8,
    ELEMENT_UINT16,
    ELEMENT_INT16,
    ELEMENT_UINT32,
    ELEMENT_INT32,
    ELEMENT_UINT64,
    ELEMENT_INT64,
    ELEMENT_FLOAT16,
    ELEMENT_FLOAT32,
    ELEMENT_FLOAT64,
    ELEMENT_BOOLEAN,
};

#define ARRAY_DIMENSIONS 32 /* as many as NumPy has */

struct array {
    const unsigned char *bytes; /* the first element; borrowed */
    enum element element;
    bool big_endian;
    bool first_fastest; /* Fortran order: the first index moves fastest in memory */
    int dimensions;
    int64_t size[ARRAY_DIMENSIONS]; /* the first is the number of rows */
};

/* IDX: 0 0 TYPE DIMENSIONS, then each size, big-endian in 32 bits, then the elements, big-endian (Y. LeCun's
 * description of the MNIST files). */
bool idx_is(const char *bytes, size_t size);
int idx_read(struct array *array, const char *bytes, size_t size, const char *label, struct error *err);

/* NPY, versions 1 to 3: magic, version, header length, a Python dict of descr, fortran_order and shape, then
 * the elements (NEP 1 of NumPy). */
bool npy_is(const char *bytes, size_t size);
int npy_read(struct array *array, const char *bytes, size_t size, const char *label, struct error *err);

/* Bytes of one element. */
size_t element_size(enum element element);
/* Checks the shape against the bytes that are there. ERROR_USAGE with both. */
int array_check(const struct array *array, size_t bytes, const char *label, struct error *err);
/* A row for each of the first dimension, the rest in C order in columns named column_0, column_1, ...
 * ERROR_MEMORY. */
int array_to_table(const struct array *array, const char *label, struct table *table, struct error *err);

#endif
