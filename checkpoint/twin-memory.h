// Copies from GPU to GPU memory in the place of reading a snapshot's files: a session that is restored takes what a twin still
// has, which is another session that came from the same snapshot, at the same addresses of the same GPU.
//
// The twin may run meanwhile, and may have changed anything: what has been copied is digested where it is now, and a chunk whose
// digest is not the snapshot's is read from files. So nothing depends on when it was copied, or on what the twin says of it.
#pragma once

#include <vector>

#include "checkpoint/chunk-file.h"
#include "checkpoint/state.h"
#include "stub/gpu/device-leases.h"

namespace vgpu::checkpoint {

struct TwinMemory {
  CUdevice gpu = 0;  // of the node
  stub::DeviceLeases::Shown shown;
};

// A descriptor each.
constexpr size_t mostTwinMemory = 256;

// What the session has leased, the largest first. Between two frames, or quiesced.
std::vector<TwinMemory> showMemory(stub::SessionState& on);

// Copies into the leases of a session that is being restored, and marks the chunks of its state, those of `saved` from number
// `first` on, that are there now: Form::resident. Returns their bytes. Memory that cannot be mapped or copied is passed over.
uint64_t takeFromTwin(stub::SessionState& on, const std::vector<TwinMemory>& twin, SavedChunks& saved, size_t first,
                      const StateTables& state);

}  // namespace vgpu::checkpoint
