// Transfers a module image to the worker: from the image store of the worker's node if that has it, else through the session's staging
// slabs.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "intercept/session/thread.h"

namespace vgpu::client {

// Makes `image` the worker's blob with that number. CUDA's result; after an error the worker may have part of it.
CUresult bringBlob(Thread& thread, uint64_t blob, std::span<const std::byte> image);

// Makes the worker drop the blob, or the part of it that it has.
CUresult dropBlob(Thread& thread, uint64_t blob);

}  // namespace vgpu::client
