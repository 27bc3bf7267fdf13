// A snapshot in pinned memory, written to its store: what is left of a suspend that went to memory first. In a worker process
// that has no driver, because the index of a store is read.
#pragma once

#include <string>

#include "checkpoint/pinned-memory.h"
#include "checkpoint/snapshot.h"

namespace vgpu::checkpoint {

// Writes the chunks that `room` has to the store around `directory`, compares what it writes with their digests, and then has the
// manifest say that all is in files. Throws kj::Exception; the snapshot is in memory as before then. How many bytes it has
// written.
Report writeOut(const std::string& directory, const PinnedRoom& room);

}  // namespace vgpu::checkpoint
