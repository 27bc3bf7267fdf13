// The meaning of the method numbers in a snapshot's frames: the name and the fields of each method that its recipes and pending calls use.
// A build in which one of these numbers means something else refuses the snapshot and names the method, so it never misreads a frame.
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

// Refuses, by name, a method that this build lacks or defines differently.
void requireSameMethods(const Methods& methods, const Refusal& refuse);

}  // namespace vgpu::snapshot
