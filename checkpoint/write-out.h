// Writes a snapshot from pinned memory to its store: the remaining part of a suspend to memory. Runs in a worker process without a driver,
// because it reads a store's index.
#pragma once

#include <string>

#include "checkpoint/pinned-memory.h"
#include "checkpoint/snapshot.h"

namespace vgpu::checkpoint {

// Writes the chunks that `room` has to the store around `directory`, verifies their digests, and then replaces the manifest by one that
// says that everything is in files. Throws kj::Exception; the snapshot is in memory as before then. The report has the number of bytes
// written.
Report writeOut(const std::string& directory, const PinnedRoom& room);

}  // namespace vgpu::checkpoint
