// Where the chunks of a new snapshot go: into its packs, unless they are zeros or like an earlier one, and into its list. Of a snapshot in a
// store, into packs of the store, unless the store has them already; its list has their names.
//
// Owns the packs; those of a store are removed with it unless they were committed. add() is for any number of threads at once, of which each
// has a writer of its own; the rest is one thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "vgpu/snapshot/chunk.h"
#include "vgpu/snapshot/packer.h"
#include "vgpu/snapshot/snapshot-writer.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::snapshot {

class ChunkSink {
 public:
  ChunkSink(std::vector<PackWriter> packs, const DigestKey& key);
  // Into new packs of `store`, which must live until the snapshot has its name.
  explicit ChunkSink(ChunkStore& store);
  ~ChunkSink() noexcept;
  ChunkSink(const ChunkSink&) = delete;
  ChunkSink& operator=(const ChunkSink&) = delete;

  const DigestKey key;
  const Digester digester;

  unsigned writers() const { return static_cast<unsigned>(writing.size()); }
  // Room for `count` more in the list: the number of the first. Before they are added.
  size_t reserve(size_t count);
  // What was added so far is no part of the list, which begins here: it is there to be found, as what the store has. Once.
  void beginList() { listBegin = list.size(); }
  // Whether a chunk with this digest is known here or in the store. Any thread.
  bool knows(const Digest& digest, size_t bytes);
  // Of a chunk that was added.
  const Digest& digestOf(size_t chunk) const { return list[chunk].digest; }
  // Whether a chunk with this digest needs no bytes, because it is of zeros or is the same as an earlier one; it is in the list then. If not,
  // it must be added.
  bool has(size_t chunk, const Digest& digest, size_t bytes);
  // `isDigested`: after has().
  void add(unsigned writer, size_t chunk, std::span<const std::byte> bytes, bool isDigested = false);

  // In the place of add(): a chunk that is in pinned memory. In a store it is in the list by its name; in packs it has its place,
  // to which nobody has written yet. `isDigested`: after has(). False if it needs no bytes. While nobody adds.
  bool addPinned(size_t chunk, const Digest& digest, size_t bytes, bool isDigested);

  // Likewise: a chunk that is where it will be restored to.
  void addResident(size_t chunk, const Digest& digest);

  // Waits until the disk has what a writer wrote. Each writer's at the same time, if its thread calls this.
  void finish(unsigned writer);

  // After finish() of each.
  std::vector<ChunkPlace> places() const;
  std::vector<uint64_t> packs() const;  // their sizes; those of a store are not the snapshot's
  uint64_t writtenBytes() const;        // in packs
  uint64_t leftBytes() const { return left; }  // room in packs for chunks that are in pinned memory

  // After that, and before the snapshot gets its name: whoever reads the store finds its chunks from here on. Nothing to do without one.
  void commit();

 private:
  struct Writing {
    std::optional<PackWriter> pack;  // of a store: made for the first chunk
    Packer packer;
    uint64_t bytes = 0;   // of the pack, once it is finished
    uint64_t number = 0;  // in the store
  };
  bool isFirst(const Digest& digest, size_t chunk, size_t bytes);
  PackWriter& packOf(Writing& writer);

  const Digest zeroChunk;
  std::vector<Writing> writing;
  ChunkStore* store = nullptr;
  bool isCommitted = false;
  size_t listBegin = 0;
  size_t nextPinned = 0;
  uint64_t left = 0;
  std::vector<ChunkPlace> list;
  std::vector<uint32_t> sizes;  // by chunk, of those that are in a pack
  std::vector<size_t> sameAs;   // by chunk: the one that has its bytes, often itself
  struct Hash {
    size_t operator()(const Digest& digest) const { return digest.low; }
  };
  std::mutex mutex;  // guards the store and what follows
  std::unordered_map<Digest, size_t, Hash> first;
};

}  // namespace vgpu::snapshot
