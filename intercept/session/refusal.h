// What a call asks for that a session does not have, although CUDA does. Calls that are refused whole are rows of the tables.
#pragma once

#include <cuda.h>

namespace vgpu::client {

// Prints on stderr, once for each text, that `what` is not possible; CUDA_ERROR_NOT_SUPPORTED. `what` has the reason in
// parentheses.
CUresult refuseInSession(const char* what) noexcept;

}  // namespace vgpu::client
