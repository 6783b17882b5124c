/* Optimizers that give each tensor a rate of its own (update_trust.cu). */
#ifndef RUNG_KERNELS_CUDA_UPDATE_TRUST_CUH
#define RUNG_KERNELS_CUDA_UPDATE_TRUST_CUH

#include "kernels/cuda/update.cuh"

/* One step of lamb or lars. */
void cuda_update_trusted(struct cuda_device *cuda, struct lanes lanes, enum device_optimizer optimizer,
                         cuda_update_tensors all, const struct device_parameters *parameters,
                         const struct lane_state *state);

#endif
