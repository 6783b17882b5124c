/* Matrix products as the tensor cores do them: inputs rounded to the format, sums in fp32. */
#ifndef EMULATED_GPU_PRODUCT_H
#define EMULATED_GPU_PRODUCT_H

#include <cstddef>
#include <cstdint>

#include "library_types.h"

namespace emulated
{
enum rounding { ROUND_NOT, ROUND_TF32, ROUND_BF16, ROUND_FP16 };

/* A matrix anywhere: element (i, j) of batch b at data + b * batch_step + i * row_step + j * column_step, in
 * elements. */
struct matrix {
    void *data;
    cudaDataType type;
    int64_t rows, columns, row_step, column_step, batch_step;
    matrix transposed() const;
    matrix of_batch(int64_t batch) const;
    /* Bytes from its first element to behind its last, over `batches`. */
    size_t extent(int64_t batches) const;
};
size_t type_bytes(cudaDataType type); /* 0: none that is emulated */
/* One row or column, of bias, say. */
float element_get(const void *data, cudaDataType type, int64_t index);
void element_set(void *data, cudaDataType type, int64_t index, float value);
float matrix_get(const matrix &from, int64_t row, int64_t column);
void matrix_set(const matrix &to, int64_t row, int64_t column, float value);

/* sums (a.rows x b.columns, column after column) = a b. The order of a sum depends on a.columns only. */
void product_sums(float *sums, const matrix &a, const matrix &b, rounding inputs);
float round_to(float x, rounding format);
} // namespace emulated

#endif
