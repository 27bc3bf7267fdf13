// The chunks that snapshots have in a store, or in packs of their own: which they are, and reading them by several threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "vgpu/snapshot/chunk.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::snapshot {

// Of a list of chunks those that are in the store, each once, in the order in which it first names them.
std::vector<ChunkName> storedChunksOf(std::span<const ChunkPlace> places);
// The list of a snapshot. Throws kj::Exception if it cannot be read.
std::vector<ChunkPlace> readChunkList(const SnapshotReader& directory, const Header& header);

// A chunk and where it is.
struct LocatedChunk {
  ChunkName name;
  StoredChunk at;
};
uint64_t bytesOf(std::span<const LocatedChunk> chunks);  // in their packs
// Leases their packs. Throws kj::Exception that says what is missing.
std::vector<LocatedChunk> locate(ChunkStore& store, std::span<const ChunkName> names);

// Reads chunks as they are kept, and compares them with their digests. Of one thread; any number of them for one store.
class StoredChunkReader {
 public:
  explicit StoredChunkReader(const ChunkStore& store) : store(store), digester(store.key()) {}
  // What its pack has of it, in `packed`. Throws kj::Exception that names the pack if that does not make the chunk.
  void read(const LocatedChunk& chunk, std::vector<std::byte>& packed);

 private:
  const ChunkStore& store;
  const Digester digester;
  std::vector<std::byte> bytes;
};

// Compares chunks with their digests, in as many threads as pay, pack after pack. `done` is called for each by any of these, one
// at a time, with its bytes there; what it throws ends all. Throws kj::Exception for one that is not what it was.
void verifyChunks(const ChunkStore& store, std::vector<LocatedChunk> chunks, const std::function<void(uint64_t bytes)>& done);

// The same of those that a snapshot has in packs of its own. How many these are.
size_t verifyOwnChunks(const SnapshotReader& directory, const Header& header, const std::function<void(uint64_t bytes)>& done);

// How many threads pay for so many chunks.
unsigned threadsFor(size_t chunks);

}  // namespace vgpu::snapshot
