// The last error of each thread, by CUDA's rules: a call that fails (except with cudaErrorNotReady) replaces it, a call that succeeds
// leaves it, cudaGetLastError returns and clears it, cudaPeekAtLastError returns it. Sticky errors of a context need no code here: the
// driver returns them again on every call.
#pragma once
#include <driver_types.h>

namespace vgpu::runtime {

/// Records a failure as the calling thread's last error, unless it is cudaErrorNotReady; returns its argument.
cudaError_t remember(cudaError_t error);
cudaError_t takeLastError();
cudaError_t peekLastError();

}  // namespace vgpu::runtime
