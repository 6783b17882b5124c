/* Names of errors. The texts are this emulation's own. */
#include <cctype>
#include <map>
#include <string>

#include "cuda_runtime_api.h"

#define NAME(error) {error, #error},
static const struct error_name {
    cudaError_t error;
    const char *name;
} error_names[] = {
    /* clang-format off */
    NAME(cudaSuccess)
    NAME(cudaErrorInvalidValue)
    NAME(cudaErrorMemoryAllocation)
    NAME(cudaErrorInitializationError)
    NAME(cudaErrorCudartUnloading)
    NAME(cudaErrorInvalidConfiguration)
    NAME(cudaErrorInvalidDevicePointer)
    NAME(cudaErrorInvalidMemcpyDirection)
    NAME(cudaErrorSynchronizationError)
    NAME(cudaErrorNotYetImplemented)
    NAME(cudaErrorInsufficientDriver)
    NAME(cudaErrorDevicesUnavailable)
    NAME(cudaErrorMissingConfiguration)
    NAME(cudaErrorPriorLaunchFailure)
    NAME(cudaErrorInvalidDeviceFunction)
    NAME(cudaErrorNoDevice)
    NAME(cudaErrorInvalidDevice)
    NAME(cudaErrorStartupFailure)
    NAME(cudaErrorInvalidKernelImage)
    NAME(cudaErrorDeviceUninitialized)
    NAME(cudaErrorNoKernelImageForDevice)
    NAME(cudaErrorAlreadyAcquired)
    NAME(cudaErrorECCUncorrectable)
    NAME(cudaErrorUnsupportedLimit)
    NAME(cudaErrorDeviceAlreadyInUse)
    NAME(cudaErrorPeerAccessUnsupported)
    NAME(cudaErrorNvlinkUncorrectable)
    NAME(cudaErrorContained)
    NAME(cudaErrorOperatingSystem)
    NAME(cudaErrorInvalidResourceHandle)
    NAME(cudaErrorIllegalState)
    NAME(cudaErrorNotReady)
    NAME(cudaErrorIllegalAddress)
    NAME(cudaErrorLaunchOutOfResources)
    NAME(cudaErrorLaunchTimeout)
    NAME(cudaErrorPeerAccessAlreadyEnabled)
    NAME(cudaErrorPeerAccessNotEnabled)
    NAME(cudaErrorContextIsDestroyed)
    NAME(cudaErrorAssert)
    NAME(cudaErrorHostMemoryAlreadyRegistered)
    NAME(cudaErrorHostMemoryNotRegistered)
    NAME(cudaErrorHardwareStackError)
    NAME(cudaErrorIllegalInstruction)
    NAME(cudaErrorMisalignedAddress)
    NAME(cudaErrorInvalidAddressSpace)
    NAME(cudaErrorInvalidPc)
    NAME(cudaErrorLaunchFailure)
    NAME(cudaErrorTensorMemoryLeak)
    NAME(cudaErrorNotPermitted)
    NAME(cudaErrorNotSupported)
    NAME(cudaErrorSystemNotReady)
    NAME(cudaErrorSystemDriverMismatch)
    NAME(cudaErrorMpsClientTerminated)
    NAME(cudaErrorStreamCaptureUnsupported)
    NAME(cudaErrorStreamCaptureInvalidated)
    NAME(cudaErrorStreamCaptureMerge)
    NAME(cudaErrorStreamCaptureUnmatched)
    NAME(cudaErrorStreamCaptureUnjoined)
    NAME(cudaErrorStreamCaptureIsolation)
    NAME(cudaErrorStreamCaptureImplicit)
    NAME(cudaErrorCapturedEvent)
    NAME(cudaErrorStreamCaptureWrongThread)
    NAME(cudaErrorTimeout)
    NAME(cudaErrorGraphExecUpdateFailure)
    NAME(cudaErrorExternalDevice)
    NAME(cudaErrorUnknown)
    /* clang-format on */
};
#undef NAME

/* "cudaErrorIllegalAddress" -> "illegal address" */
static std::string words_of(const std::string &name)
{
    std::string words;
    for (char each : name.substr(name.rfind("cudaError", 0) == 0 ? 9 : 4)) {
        if (isupper((unsigned char)each) && !words.empty())
            words += ' ';
        words += (char)tolower((unsigned char)each);
    }
    return words;
}

static const std::map<cudaError_t, std::string> &texts()
{
    static const auto *made = [] {
        auto *map = new std::map<cudaError_t, std::string>();
        for (const error_name &each : error_names)
            (*map)[each.error] = words_of(each.name);
        return map;
    }();
    return *made;
}

extern "C" {
const char *cudaGetErrorName(cudaError_t error)
{
    for (const error_name &each : error_names)
        if (each.error == error)
            return each.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    auto found = texts().find(error);
    return found == texts().end() ? "unrecognized error code" : found->second.c_str();
}
}
