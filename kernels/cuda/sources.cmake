# The CUDA backend: compiled by nvcc for GPUs, and as C++ for the emulated one. Each file takes nvcc a while for each
# architecture, so they are many and small.
set(cuda_sources
  activation.cu activation_backward.cu bias.cu device.cu dropout.cu embedding.cu error.cu
  gather.cu loss_binary.cu loss_softmax.cu loss_squared.cu measure.cu memory.cu norm_batch.cu norm_batch_apply.cu
  norm_layer.cu plugin.cu product.cu product_linear.cu product_plain.cu product_plan.cu record.cu step.cu store.cu
  transfer.cu update.cu update_trust.cu)
list(TRANSFORM cuda_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
