// The objects of a snapshot: kept as the records of the object list at the barrier, rebuilt by executing their frames.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "checkpoint/manifest.h"
#include "stub/worker/execution.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

constexpr uint64_t maxObjectsBytes = uint64_t{4} << 30;

// The file `objects`: each record's size (4 bytes), then the record as the object list keeps it.
std::vector<std::byte> encodeRecords(const std::vector<ObjectRecord>& records);
// Throws kj::Exception that says which record makes no sense, also of one whose frames are not before `barrier`.
std::vector<ObjectRecord> decodeRecords(std::span<const std::byte> bytes, uint64_t barrier);

// Executes every frame of `records` in order of position. Each frame's bytes are reported to `progress`. Throws kj::Exception
// naming the object and CUDA's answer.
void rebuild(stub::SessionState& on, const std::vector<ObjectRecord>& records,
             const std::function<void(size_t bytes)>& progress);

// Of all frames.
uint64_t bytesOf(const std::vector<ObjectRecord>& records);

}  // namespace vgpu::checkpoint
