// The file `objects`: the records of the object list at the barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vgpu/objects/object-list.h"

namespace vgpu::snapshot {

constexpr uint64_t maxObjectsBytes = uint64_t{4} << 30;

// Each record's size (4 bytes), then the record as the object list keeps it.
std::vector<std::byte> encodeRecords(const std::vector<ObjectRecord>& records);
// Throws kj::Exception that says which record is invalid, also if it has frames that are not before `barrier`.
std::vector<ObjectRecord> decodeRecords(std::span<const std::byte> bytes, const RingCut& barrier);

}  // namespace vgpu::snapshot
