/* Is every element of a lane's block finite? Told to the host. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/squares.cuh"

struct finite_end {
    bool *finite; // (lanes), on the device

    __device__ void operator()(int64_t lane, double sum) const
    {
        finite[lane] = isfinite(sum);
    }
};

extern "C" void cuda_finite(struct device *device, struct lanes lanes, bool *finite, const real *x,
                            int64_t count)
{
    struct cuda_device *cuda = cuda_of(device);

    if (lanes.count <= 0)
        return;
    cuda_squares(cuda, lanes, x, count, finite_end{(bool *)cuda_answers(cuda)}, "finite");
    cuda_deliver(cuda, finite, cuda_answers(cuda), (size_t)lanes.count * sizeof(bool));
}
