// Where the chunks of a new snapshot go: into its packs, unless they are zeros or like an earlier one, and into its list.
//
// Owns the packs. add() is for any number of threads at once, of which each has a writer of its own; the rest is one thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "vgpu/snapshot/chunk.h"
#include "vgpu/snapshot/packer.h"
#include "vgpu/snapshot/snapshot-writer.h"

namespace vgpu::snapshot {

class ChunkSink {
 public:
  ChunkSink(std::vector<PackWriter> packs, const DigestKey& key);

  const Digester digester;

  unsigned writers() const { return static_cast<unsigned>(writing.size()); }
  // Room for `count` more in the list: the number of the first. Before they are added.
  size_t reserve(size_t count);
  // Whether a chunk with this digest needs no bytes, because it is of zeros or is the same as an earlier one; it is in the list then. If not,
  // it must be added.
  bool has(size_t chunk, const Digest& digest, size_t bytes);
  // `isDigested`: after has().
  void add(unsigned writer, size_t chunk, std::span<const std::byte> bytes, bool isDigested = false);

  // Waits until the disk has what a writer wrote. Each writer's at the same time, if its thread calls this.
  void finish(unsigned writer);

  // After finish().
  std::vector<ChunkPlace> places() const;
  std::vector<uint64_t> packs() const;

 private:
  struct Writing {
    PackWriter pack;
    Packer packer;
    uint64_t bytes = 0;  // of the pack, once it is finished
  };
  bool isFirst(const Digest& digest, size_t chunk);

  const Digest zeroChunk;
  std::vector<Writing> writing;
  std::vector<ChunkPlace> list;
  std::vector<size_t> sameAs;  // by chunk: the one that has its bytes, often itself
  std::mutex mutex;            // guards what follows
  std::map<Digest, size_t> first;
};

}  // namespace vgpu::snapshot
