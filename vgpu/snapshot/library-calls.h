// Which calls of libraries a snapshot's frames are, by the signature that a frame has and the symbol (vgpu/api/library.h). A build that
// does not know one, or has it with other arguments, refuses the snapshot by the symbol, and never misreads a frame.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vgpu/objects/record-table.h"
#include "vgpu/snapshot/pending-calls.h"
#include "vgpu/snapshot/snapshot-reader.h"

namespace vgpu::snapshot {

using LibraryCalls = std::map<uint64_t, std::string>;  // by signature: "cublasSgemm_v2"

void addLibraryCalls(LibraryCalls& calls, const std::vector<ObjectRecord>& records);
void addLibraryCalls(LibraryCalls& calls, const PendingCalls& pending);

// Refuses a call, by name, which this build does not have, or has otherwise.
void requireKnownLibraryCalls(const LibraryCalls& calls, const Refusal& refuse);

}  // namespace vgpu::snapshot
