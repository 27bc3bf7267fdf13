// GPU-to-GPU copies instead of reading a snapshot's files: a restoring session copies memory of a twin, another session that came from the
// same snapshot, at the same addresses of the same GPU.
//
// The twin may be running, and may have changed anything: copied memory is digested at its destination, and chunks whose digests are not
// the snapshot's are read from files. So correctness depends neither on the time of the copy nor on what the twin reports.
#pragma once

#include <vector>

#include "checkpoint/chunk-file.h"
#include "checkpoint/state.h"
#include "stub/gpu/device-leases.h"

namespace vgpu::checkpoint {

struct TwinMemory {
  CUdevice gpu = 0;  // the node's number
  stub::DeviceLeases::Shown shown;
};

// Each needs a descriptor.
constexpr size_t mostTwinMemory = 256;

// The session's leases, the largest first. Between two frames, or quiesced.
std::vector<TwinMemory> showMemory(stub::SessionState& on);

// Copies into the leases of a session that is being restored, and marks those chunks of its state (chunks of `saved` from index `first` on)
// that are correct now as Form::resident. Returns their bytes. Skips memory that cannot be mapped or copied.
uint64_t takeFromTwin(stub::SessionState& on, const std::vector<TwinMemory>& twin, SavedChunks& saved, size_t first,
                      const StateTables& state);

}  // namespace vgpu::checkpoint
