// Reads the files that describe a snapshot's chunks, with checks.
#pragma once

#include <kj/exception.h>

#include <memory>
#include <vector>

#include "vgpu/snapshot/chunk.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// Decodes a whole file; errors name the file.
template <typename Decode>
auto decoded(const SnapshotReader& directory, const char* name, Decode decode) {
  decltype(decode()) result;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { result = decode(); })) {
    directory.refuse(name, exception->getDescription().cStr());
  }
  return result;
}

// Reads the file `chunks`. Throws kj::Exception, naming file and check, unless it has an entry for each piece of images and state.
std::vector<ChunkPlace> loadChunks(const SnapshotReader& directory, const Manifest& manifest);

// The store that the snapshot is in; nullptr if it has packs of its own. Throws kj::Exception if it should be in a store but is not.
std::unique_ptr<ChunkStore> storeOf(const SnapshotReader& directory, const Manifest& manifest);

}  // namespace vgpu::checkpoint
