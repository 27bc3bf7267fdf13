// The last error of each thread, by CUDA's rules: a call that fails (not one that is "not ready") replaces it, one that
// succeeds leaves it, cudaGetLastError takes it, cudaPeekAtLastError only looks. Errors of a broken context need
// nothing here: the driver returns them again on every call.
#pragma once
#include <driver_types.h>

namespace vgpu::runtime {

/// Records a failure as the calling thread's last error, unless it is cudaErrorNotReady; returns its argument.
cudaError_t remember(cudaError_t error);
cudaError_t takeLastError();
cudaError_t peekLastError();

}  // namespace vgpu::runtime
