// What a snapshot's files say of its chunks, checked as they are read.
#pragma once

#include <kj/exception.h>

#include <memory>
#include <vector>

#include "vgpu/snapshot/chunk.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// What a decoder says of a whole file, with the file's name.
template <typename Decode>
auto decoded(const SnapshotReader& directory, const char* name, Decode decode) {
  decltype(decode()) result;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { result = decode(); })) {
    directory.refuse(name, exception->getDescription().cStr());
  }
  return result;
}

// The file `chunks`. Throws kj::Exception, naming file and check, unless there is one for each piece of images and state.
std::vector<ChunkPlace> loadChunks(const SnapshotReader& directory, const Manifest& manifest);

// The store that the snapshot is in; nullptr if it has packs of its own. Throws kj::Exception if it should be in one and is not.
std::unique_ptr<ChunkStore> storeOf(const SnapshotReader& directory, const Manifest& manifest);

}  // namespace vgpu::checkpoint
