/* CUDA's codes as errors of ours. */
#include "kernels/cuda/core.cuh"

#include <stdarg.h>
#include <stdio.h>

bool cuda_is_lost(cudaError_t code)
{
    switch (code) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
        return true;
    default:
        return false;
    }
}

/* Wrong arguments and calls in the wrong place are bugs of ours; the rest comes from the machine. */
static enum error_code kind_of(cudaError_t code)
{
    switch (code) {
    case cudaErrorMemoryAllocation:
        return ERROR_MEMORY;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureImplicit:
        return ERROR_INTERNAL;
    default:
        return ERROR_RESOURCE;
    }
}

int cuda_error(struct error *err, int number, cudaError_t code, const char *what)
{
    (void)cudaGetLastError(); /* told here, so not to the next one who asks */
    return error_set(err, kind_of(code), CUDA_KIND ":%d: %s: %s: %s%s", number, what, cudaGetErrorName(code),
                     cudaGetErrorString(code),
                     cuda_is_lost(code) ? "; the device can no longer be used by this process" : "");
}

void cuda_note(struct cuda_device *cuda, cudaError_t code, const char *what)
{
    struct error failure;

    if (code == cudaSuccess)
        return;
    cuda_error(&failure, cuda->number, code, what);
    /* What is lost explains everything else, whichever was seen first. */
    if (cuda->failure.code == ERROR_NONE || (cuda_is_lost(code) && !cuda->unusable))
        cuda->failure = failure;
    cuda->unusable |= cuda_is_lost(code);
}

void cuda_fail(struct cuda_device *cuda, enum error_code code, const char *format, ...)
{
    char message[sizeof cuda->failure.message];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (cuda->failure.code == ERROR_NONE)
        error_set(&cuda->failure, code, CUDA_KIND ":%d: %s", cuda->number, message);
}
