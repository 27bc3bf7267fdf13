// Receives the chunks of a new snapshot: writes each to the snapshot's packs, unless it is all zeros or equal to an earlier chunk, and adds
// it to the list of chunks. For a snapshot in a store, chunks go to packs of the store unless the store has them already, and the list
// contains their names.
//
// Owns the packs; packs of a store are removed with this object unless they were committed. Any number of threads may call add() at the
// same time, each with a writer number of its own; all else is for one thread.
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
  // The chunks go into new packs of `store`, which must live until the snapshot has its name.
  explicit ChunkSink(ChunkStore& store);
  ~ChunkSink() noexcept;
  ChunkSink(const ChunkSink&) = delete;
  ChunkSink& operator=(const ChunkSink&) = delete;

  const DigestKey key;
  const Digester digester;

  unsigned writers() const { return static_cast<unsigned>(writing.size()); }
  // Extends the list by `count` chunks, and returns the index of the first. Call it before they are added.
  size_t reserve(size_t count);
  // The list begins here: chunks added before are not part of it, but are found as if the store had them. Call it once.
  void beginList() { listBegin = list.size(); }
  // Whether a chunk with this digest is known here or in the store. Any thread.
  bool knows(const Digest& digest, size_t bytes);
  // `chunk` must have been added.
  const Digest& digestOf(size_t chunk) const { return list[chunk].digest; }
  // Whether a chunk with this digest needs no bytes, because it is all zeros or equals an earlier one; it is in the list then. Otherwise it
  // must be added.
  bool has(size_t chunk, const Digest& digest, size_t bytes);
  // `isDigested`: has() was called for it.
  void add(unsigned writer, size_t chunk, std::span<const std::byte> bytes, bool isDigested = false);

  // Instead of add(), for a chunk that is in pinned memory. In a store the list has its name; in packs, space is reserved for it that has
  // not been written yet. `isDigested`: has() was called for it. Returns false if it needs no bytes. Not while another thread calls add().
  bool addPinned(size_t chunk, const Digest& digest, size_t bytes, bool isDigested);

  // Instead of add(), for a chunk that already lies in the device memory to which it will be restored.
  void addResident(size_t chunk, const Digest& digest);

  // Waits until a writer's bytes are on disk. The writers' threads may call this at the same time, each for its own writer.
  void finish(unsigned writer);

  // Call it after finish() of every writer.
  std::vector<ChunkPlace> places() const;
  std::vector<uint64_t> packs() const;  // their sizes; empty for a store, whose packs do not belong to the snapshot
  uint64_t writtenBytes() const;        // in packs
  uint64_t leftBytes() const { return left; }  // space reserved in packs for chunks that are in pinned memory

  // Call it after that, and before the snapshot gets its name: other users of the store find its chunks from here on. Does nothing without
  // a store.
  void commit();

 private:
  struct Writing {
    std::optional<PackWriter> pack;  // with a store: made for the writer's first chunk
    Packer packer;
    uint64_t bytes = 0;   // of the pack, once it is finished
    uint64_t number = 0;  // of the pack in the store
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
  std::vector<uint32_t> sizes;  // by chunk, for chunks in a pack
  std::vector<size_t> sameAs;   // by chunk: the index of the chunk that has its bytes, often its own
  struct Hash {
    size_t operator()(const Digest& digest) const { return digest.low; }
  };
  std::mutex mutex;  // guards the store and the members below
  std::unordered_map<Digest, size_t, Hash> first;
};

}  // namespace vgpu::snapshot
