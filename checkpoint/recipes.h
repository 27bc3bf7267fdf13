// Rebuilds the objects of a snapshot by executing the frames of their records.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stub/worker/execution.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

// Executes every frame of `records` in the order of their numbers, except those for which `isExecuted` is true. Reports each frame's size
// to `progress`. Throws kj::Exception that names the object and CUDA's error.
void rebuild(stub::SessionState& on, const std::vector<ObjectRecord>& records, const std::function<void(size_t bytes)>& progress,
             const std::function<bool(const RecordedFrame&)>& isExecuted = nullptr);

// The size of all frames.
uint64_t bytesOf(const std::vector<ObjectRecord>& records);

}  // namespace vgpu::checkpoint
