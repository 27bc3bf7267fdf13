// How a module image comes to the worker: from the store of the worker's node where that has it, else through the
// session's staging slabs.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "intercept/session/thread.h"

namespace vgpu::client {

// Makes `image` the worker's blob of that number. CUDA's answer; after an error the worker may have a part of it.
CUresult bringBlob(Thread& thread, uint64_t blob, std::span<const std::byte> image);

// The worker forgets it, or what it has of it.
CUresult dropBlob(Thread& thread, uint64_t blob);

}  // namespace vgpu::client
