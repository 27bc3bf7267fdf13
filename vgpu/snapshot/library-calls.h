// The library calls that a snapshot's frames contain: the signature in the frame and the function's symbol (vgpu/api/library.h). A build
// that lacks one of them, or whose function has other arguments, refuses the snapshot and names the symbol, so it never misreads a frame.
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

// Refuses, by name, a call that this build lacks or defines differently.
void requireKnownLibraryCalls(const LibraryCalls& calls, const Refusal& refuse);

}  // namespace vgpu::snapshot
