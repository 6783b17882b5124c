#include "product.h"

#include <cstring>
#include <vector>

#include "emulated/narrow_float.h"

namespace emulated
{
size_t type_bytes(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 0;
}

float element_get(const void *data, cudaDataType type, int64_t index)
{
    if (type == CUDA_R_32F)
        return ((const float *)data)[index];
    uint16_t bits = ((const uint16_t *)data)[index];
    return type == CUDA_R_16F ? fp16_to_float(bits) : bf16_to_float(bits);
}

void element_set(void *data, cudaDataType type, int64_t index, float value)
{
    if (type == CUDA_R_32F)
        ((float *)data)[index] = value;
    else
        ((uint16_t *)data)[index] = type == CUDA_R_16F ? float_to_fp16(value) : float_to_bf16(value);
}

float matrix_get(const matrix &from, int64_t row, int64_t column)
{
    return element_get(from.data, from.type, row * from.row_step + column * from.column_step);
}

void matrix_set(const matrix &to, int64_t row, int64_t column, float value)
{
    element_set(to.data, to.type, row * to.row_step + column * to.column_step, value);
}

matrix matrix::transposed() const
{
    return {data, type, columns, rows, column_step, row_step, batch_step};
}

matrix matrix::of_batch(int64_t batch) const
{
    matrix one = *this;
    one.data = (char *)data + batch * batch_step * (int64_t)type_bytes(type);
    return one;
}

size_t matrix::extent(int64_t batches) const
{
    if (rows == 0 || columns == 0 || batches == 0)
        return 0;
    int64_t last = (rows - 1) * row_step + (columns - 1) * column_step + (batches - 1) * batch_step;
    return (size_t)(last + 1) * type_bytes(type);
}

float round_to(float x, rounding format)
{
    switch (format) {
    case ROUND_TF32:
        return float_to_tf32(x);
    case ROUND_BF16:
        return bf16_to_float(float_to_bf16(x));
    case ROUND_FP16:
        return fp16_to_float(float_to_fp16(x));
    default:
        return x;
    }
}

/* A tile of TILE_ROWS x TILE_COLUMNS sums stays in registers over a block of DEPTH. */
constexpr int64_t TILE_ROWS = 16, TILE_COLUMNS = 4, DEPTH = 256;

/* packed[l][i] = source(first_row + i, first + l) for i < width, 0 beyond the last row. */
static void pack(float *packed, const matrix &source, int64_t first_row, int64_t width, int64_t first,
                 int64_t depth, rounding format)
{
    int64_t rows = source.rows - first_row < width ? source.rows - first_row : width;
    for (int64_t l = 0; l < depth; l++) {
        for (int64_t i = 0; i < rows; i++)
            packed[l * width + i] = round_to(matrix_get(source, first_row + i, first + l), format);
        for (int64_t i = rows; i < width; i++)
            packed[l * width + i] = 0;
    }
}

typedef float eight __attribute__((vector_size(32), aligned(4)));

__attribute__((always_inline)) static inline void tile(float *sums, const float *a, const float *b,
                                                       int64_t depth)
{
    eight low[TILE_COLUMNS] = {}, high[TILE_COLUMNS] = {};
    for (int64_t l = 0; l < depth; l++) {
        eight first, second;
        std::memcpy(&first, a + l * TILE_ROWS, sizeof first);
        std::memcpy(&second, a + l * TILE_ROWS + 8, sizeof second);
        for (int j = 0; j < TILE_COLUMNS; j++) {
            low[j] += first * b[l * TILE_COLUMNS + j];
            high[j] += second * b[l * TILE_COLUMNS + j];
        }
    }
    for (int j = 0; j < TILE_COLUMNS; j++) {
        std::memcpy(sums + j * TILE_ROWS, &low[j], sizeof(eight));
        std::memcpy(sums + j * TILE_ROWS + 8, &high[j], sizeof(eight));
    }
}

static void tile_plain(float *sums, const float *a, const float *b, int64_t depth)
{
    tile(sums, a, b, depth);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void tile_avx2(float *sums, const float *a, const float *b,
                                                          int64_t depth)
{
    tile(sums, a, b, depth);
}

static bool has_avx2()
{
    static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has;
}
#else
#define tile_avx2 tile_plain
static bool has_avx2()
{
    return false;
}
#endif

static void add_tile(float *sums, int64_t row, int64_t column, const float *of, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < TILE_COLUMNS && column + j < columns; j++)
        for (int64_t i = 0; i < TILE_ROWS && row + i < rows; i++)
            sums[(column + j) * rows + row + i] += of[j * TILE_ROWS + i];
}

void product_sums(float *sums, const matrix &a, const matrix &b, rounding inputs)
{
    int64_t rows = a.rows, columns = b.columns, inner = a.columns;
    matrix bt = b.transposed();
    int64_t strips = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    std::vector<float> strip((size_t)(TILE_ROWS * DEPTH)), packed_b((size_t)(strips * TILE_COLUMNS * DEPTH));
    auto run = has_avx2() ? tile_avx2 : tile_plain;
    std::memset(sums, 0, (size_t)(rows * columns) * sizeof *sums);
    for (int64_t first = 0; first < inner; first += DEPTH) {
        int64_t depth = inner - first < DEPTH ? inner - first : DEPTH;
        for (int64_t s = 0; s < strips; s++)
            pack(&packed_b[(size_t)(s * TILE_COLUMNS * depth)], bt, s * TILE_COLUMNS, TILE_COLUMNS, first,
                 depth, inputs);
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            pack(strip.data(), a, row, TILE_ROWS, first, depth, inputs);
            for (int64_t s = 0; s < strips; s++) {
                float result[TILE_ROWS * TILE_COLUMNS];
                run(result, strip.data(), &packed_b[(size_t)(s * TILE_COLUMNS * depth)], depth);
                add_tile(sums, row, s * TILE_COLUMNS, result, rows, columns);
            }
        }
    }
}
} // namespace emulated
