/* The CUDA runtime as host code: a subset with the real names, types and numbers. README.md says which. */
#ifndef EMULATED_GPU_CUDA_RUNTIME_H
#define EMULATED_GPU_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
#include "emulated/device_code.h"
#include "emulated/device_functions.h"
#include "emulated/launch.h"
#include "emulated/runtime_templates.h"
#endif

#endif
