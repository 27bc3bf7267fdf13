// Refusals of parts of a call that CUDA supports and a session does not. Calls that are refused completely are rows of the tables.
#pragma once

#include <cuda.h>

namespace vgpu::client {

// Prints to stderr, once for each text, that `what` is not possible; returns CUDA_ERROR_NOT_SUPPORTED. `what` contains the reason in
// parentheses.
CUresult refuseInSession(const char* what) noexcept;

}  // namespace vgpu::client
