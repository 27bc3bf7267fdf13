// What the numbers of a snapshot's frames mean: each method that its recipes and pending calls use, by number, with its name and
// fields. A build in which a number means anything else refuses the snapshot by name, and never misreads a frame.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vgpu/objects/record-table.h"
#include "vgpu/snapshot/pending-calls.h"
#include "vgpu/snapshot/snapshot-reader.h"

namespace vgpu::snapshot {

using Methods = std::map<uint16_t, std::string>;  // 77: "streamWaitEvent(hStream u64, hEvent u64, Flags u32)"

void addMethods(Methods& methods, const std::vector<ObjectRecord>& records);
void addMethods(Methods& methods, const PendingCalls& pending);

// Refuses a method, by name, which this build does not have, or has otherwise.
void requireSameMethods(const Methods& methods, const Refusal& refuse);

}  // namespace vgpu::snapshot
