/* One product with its epilogue as queued work: what cuBLAS and cuBLASLt have in common. */
#ifndef EMULATED_GPU_MATMUL_H
#define EMULATED_GPU_MATMUL_H

#include "cublasLt.h"
#include "product.h"
#include "world.h"

namespace emulated
{
struct matmul {
    matrix a, b, c, d; /* a (m x k), b (k x n): as they are multiplied, transposed already */
    int64_t batches;
    float alpha, beta;
    rounding inputs;
    int epilogue; /* cublasLtEpilogue_t */
    void *bias;
    cudaDataType bias_type;
    int64_t bias_batch_step;
    void *aux;
    cudaDataType aux_type;
    int64_t aux_ld, aux_batch_step;
    void *workspace;
    size_t workspace_bytes; /* what is scribbled over */
};
/* How inputs of a type are rounded under a compute type; false: not a pair that is emulated. */
bool matmul_rounding(cudaDataType type, cublasComputeType_t compute, bool tf32_allowed, rounding *inputs);
/* Queues it. */
cublasStatus_t matmul_queue(const matmul &product, cudaStream_t stream, const char *name);
} // namespace emulated

#endif
