// Conversion of the driver's error codes into the runtime's: the same numbers with other names, except for a few.
#pragma once
#include <cuda.h>
#include <driver_types.h>

namespace vgpu::runtime {

/// Both enumerations use the same number for the same error under two names (some pairs are checked below). Only the two CUresult values
/// tested here have no counterpart.
constexpr cudaError_t answer(CUresult result) {
  bool onlyTheDrivers = result == CUDA_ERROR_CONTEXT_ALREADY_CURRENT || result == CUDA_ERROR_KEY_ROTATION;
  return onlyTheDrivers ? cudaErrorUnknown : static_cast<cudaError_t>(static_cast<int>(result));
}
constexpr cudaError_t answer(cudaError_t error) { return error; }

#define SAME(driver, runtime) static_assert(answer(driver) == runtime)
SAME(CUDA_SUCCESS, cudaSuccess);
SAME(CUDA_ERROR_INVALID_VALUE, cudaErrorInvalidValue);
SAME(CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
SAME(CUDA_ERROR_NOT_INITIALIZED, cudaErrorInitializationError);
SAME(CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading);
SAME(CUDA_ERROR_NO_DEVICE, cudaErrorNoDevice);
SAME(CUDA_ERROR_INVALID_DEVICE, cudaErrorInvalidDevice);
SAME(CUDA_ERROR_INVALID_IMAGE, cudaErrorInvalidKernelImage);
SAME(CUDA_ERROR_INVALID_CONTEXT, cudaErrorDeviceUninitialized);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU, cudaErrorNoKernelImageForDevice);
SAME(CUDA_ERROR_INVALID_PTX, cudaErrorInvalidPtx);
SAME(CUDA_ERROR_INVALID_HANDLE, cudaErrorInvalidResourceHandle);
SAME(CUDA_ERROR_NOT_FOUND, cudaErrorSymbolNotFound);
SAME(CUDA_ERROR_NOT_READY, cudaErrorNotReady);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS, cudaErrorIllegalAddress);
SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cudaErrorLaunchOutOfResources);
SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED, cudaErrorContextIsDestroyed);
SAME(CUDA_ERROR_ASSERT, cudaErrorAssert);
SAME(CUDA_ERROR_LAUNCH_FAILED, cudaErrorLaunchFailure);
SAME(CUDA_ERROR_NOT_SUPPORTED, cudaErrorNotSupported);
SAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cudaErrorStreamCaptureUnsupported);
SAME(CUDA_ERROR_UNKNOWN, cudaErrorUnknown);
#undef SAME

}  // namespace vgpu::runtime
