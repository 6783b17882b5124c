/* A matrix that tests multiply, on the device and as float64, and how far a product may be off. */
#ifndef TESTS_EMULATED_GPU_SHEET_H
#define TESTS_EMULATED_GPU_SHEET_H

#include "fixture.h"

#include <cmath>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/emulated_gpu/random.h"

/* A matrix on both sides. Column major unless `by_rows`. */
struct sheet {
    int64_t rows, columns, batches;
    cudaDataType type;
    bool by_rows;
    std::vector<double> values; /* as stored */
    char *device = nullptr;
    size_t bytes() const
    {
        return values.size() * (type == CUDA_R_32F ? 4 : 2);
    }
    double &at(int64_t batch, int64_t i, int64_t j)
    {
        int64_t place = by_rows ? i * columns + j : j * rows + i;
        return values[(size_t)(batch * rows * columns + place)];
    }
    sheet(int64_t r, int64_t c, int64_t n, cudaDataType t, bool rowwise, emulated::random &dice)
        : rows(r), columns(c), batches(n), type(t), by_rows(rowwise), values((size_t)(r * c * n))
    {
        for (double &each : values)
            each = stored((float)((double)dice.below(20001) / 10000 - 1));
        assert_cuda(cudaMalloc(&device, bytes()));
        send();
    }
    sheet(const sheet &) = delete;
    ~sheet()
    {
        cudaFree(device);
    }
    float stored(float x) const
    {
        return type == CUDA_R_32F ? x : type == CUDA_R_16F ? (float)__half(x) : (float)__nv_bfloat16(x);
    }
    void send()
    {
        std::vector<char> raw(bytes());
        for (size_t i = 0; i < values.size(); i++) {
            float x = (float)values[i];
            __half half(x);
            __nv_bfloat16 brain(x);
            if (type == CUDA_R_32F)
                memcpy(&raw[i * 4], &x, 4);
            else
                memcpy(&raw[i * 2], type == CUDA_R_16F ? (void *)&half : (void *)&brain, 2);
        }
        assert_cuda(cudaMemcpy(device, raw.data(), bytes(), cudaMemcpyHostToDevice));
    }
    void receive()
    {
        std::vector<char> raw(bytes());
        assert_cuda(cudaMemcpy(raw.data(), device, bytes(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < values.size(); i++) {
            float x;
            unsigned short bits;
            if (type == CUDA_R_32F) {
                memcpy(&x, &raw[i * 4], 4);
            } else {
                memcpy(&bits, &raw[i * 2], 2);
                x = type == CUDA_R_16F ? (float)__ushort_as_half(bits) : (float)__ushort_as_bfloat16(bits);
            }
            values[i] = (double)x;
        }
    }
};

/* Of the inputs' format: how far a product may be off, as a share of sum |a| |b|. */
static inline double unit_of(cublasComputeType_t compute)
{
    switch (compute) {
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_FAST_16F:
        return 0x1p-11;
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        return 0x1p-8;
    default:
        return 0;
    }
}
static inline double stored_unit(cudaDataType type)
{
    return type == CUDA_R_32F ? 0x1p-24 : type == CUDA_R_16F ? 0x1p-11 : 0x1p-8;
}

struct bounded {
    double value, slack;
};
static inline bounded product_of(sheet &a, bool ta, sheet &b, bool tb, int64_t batch, int64_t i, int64_t j,
                                 cublasComputeType_t compute)
{
    int64_t inner = ta ? a.rows : a.columns;
    bounded sum = {0, 0};
    for (int64_t l = 0; l < inner; l++) {
        double x =
            (ta ? a.at(batch, l, i) : a.at(batch, i, l)) * (tb ? b.at(batch, j, l) : b.at(batch, l, j));
        sum.value += x;
        sum.slack += fabs(x);
    }
    sum.slack *= (double)inner * 0x1p-24 + 4 * unit_of(compute);
    return sum;
}

static inline void assert_near(double got, bounded expected, cudaDataType type, const char *what, int64_t i,
                               int64_t j)
{
    double slack = expected.slack + 2 * stored_unit(type) * (fabs(expected.value) + expected.slack) + 1e-7;
    if (!(fabs(got - expected.value) <= slack))
        fail_msg("%s: (%ld, %ld) is %.9g, expected %.9g within %.3g", what, (long)i, (long)j, got,
                 expected.value, slack);
}

#endif
