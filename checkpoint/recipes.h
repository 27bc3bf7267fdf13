// The objects of a snapshot, rebuilt by executing the frames of their records.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stub/worker/execution.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

// Executes every frame of `records` in the order of their numbers, but those that were executed ahead. Each frame's bytes are
// reported to `progress`. Throws kj::Exception naming the object and CUDA's answer.
void rebuild(stub::SessionState& on, const std::vector<ObjectRecord>& records, const std::function<void(size_t bytes)>& progress,
             const std::function<bool(const RecordedFrame&)>& isExecuted = nullptr);

// Of all frames.
uint64_t bytesOf(const std::vector<ObjectRecord>& records);

}  // namespace vgpu::checkpoint
