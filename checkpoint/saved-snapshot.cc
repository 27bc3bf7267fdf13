#include "checkpoint/saved-snapshot.h"

#include <fmt/format.h>

#include "checkpoint/chunk-file.h"
#include "checkpoint/state.h"

namespace vgpu::checkpoint {

std::vector<ChunkPlace> loadChunks(const SnapshotReader& directory, const Manifest& manifest) {
  auto bytes = directory.readWhole(chunksFile, manifest.files.at(chunksFile), maxChunkListBytes);
  auto places = decoded(directory, chunksFile, [&] { return decodeChunks(bytes, manifest.packs); });
  size_t expected = planOf(manifest.blobs).count() + planOf(manifest.state).count();
  if (places.size() != expected)
    directory.refuse(chunksFile, fmt::format("count: {} chunks are expected, {} are found", expected, places.size()));
  return places;
}

std::unique_ptr<ChunkStore> storeOf(const SnapshotReader& directory, const Manifest& manifest) {
  if (!manifest.packs.empty()) return nullptr;
  auto folder = ChunkStore::around(directory.where());
  if (!folder) directory.refuse(manifestFile, "packs: its chunks are in a store of snapshots, but its directory is not in a store");
  auto store = std::make_unique<ChunkStore>(*folder);
  if (store->key() != manifest.digestKey) directory.refuse(manifestFile, "digestKey: it belongs to another store of snapshots");
  return store;
}

}  // namespace vgpu::checkpoint
