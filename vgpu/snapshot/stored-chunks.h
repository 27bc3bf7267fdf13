// The chunks that snapshots have in a store, or in packs of their own: listing them, and reading them with several threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "vgpu/snapshot/chunk.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::snapshot {

// The names of those chunks of the list that are in the store, each once, in the order of their first mention.
std::vector<ChunkName> storedChunksOf(std::span<const ChunkPlace> places);
// Reads the list of chunks of a snapshot. Throws kj::Exception if it cannot be read.
std::vector<ChunkPlace> readChunkList(const SnapshotReader& directory, const Header& header);

// A chunk and its place.
struct LocatedChunk {
  ChunkName name;
  StoredChunk at;
};
uint64_t bytesOf(std::span<const LocatedChunk> chunks);  // their sizes in the packs
// Finds the chunks and leases their packs. Throws kj::Exception that says what is missing.
std::vector<LocatedChunk> locate(ChunkStore& store, std::span<const ChunkName> names);

// Reads chunks in their stored form, and verifies their digests. For one thread; any number of readers may use one store.
class StoredChunkReader {
 public:
  explicit StoredChunkReader(const ChunkStore& store) : store(store), digester(store.key()) {}
  // Puts the chunk's stored bytes into `packed`. Throws kj::Exception that names the pack if they do not yield the chunk.
  void read(const LocatedChunk& chunk, std::vector<std::byte>& packed);

 private:
  const ChunkStore& store;
  const Digester digester;
  std::vector<std::byte> bytes;
};

// Verifies the chunks' digests, pack by pack, with as many threads as are worthwhile. One of the threads at a time calls `done` with the
// size of the chunk in its pack; an exception that `done` throws ends all threads. Throws kj::Exception for a chunk that does not match its
// digest.
void verifyChunks(const ChunkStore& store, std::vector<LocatedChunk> chunks, const std::function<void(uint64_t bytes)>& done);

// As verifyChunks(), for the chunks in a snapshot's own packs. Returns how many there are.
size_t verifyOwnChunks(const SnapshotReader& directory, const Header& header, const std::function<void(uint64_t bytes)>& done);

// How many threads are worthwhile for so many chunks.
unsigned threadsFor(size_t chunks);

}  // namespace vgpu::snapshot
