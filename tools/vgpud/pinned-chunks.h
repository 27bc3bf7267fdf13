// Tracks which chunks of memory are in the daemon's pinned memory (pinned-pool.h), and where.
//
// A chunk is identified by its content and the key of its digest. It stays while a hold contains it: that of an operation in progress, or
// of a snapshot that is nowhere else. An unheld chunk stays until its room is needed; least recently held chunks go first. So a session
// whose chunks are still here is restored from here, wherever its snapshot is kept.
//
// Only book-keeping: it does not access the memory. Used by the event loop's thread. Must not outlive the daemon.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>

#include "vgpu/store/chunk-index.h"

namespace vgpu::daemon {

struct PinnedName {
  DigestKey key;
  ChunkName chunk;
  auto operator<=>(const PinnedName& other) const {
    if (auto order = chunk <=> other.chunk; order != 0) return order;
    return key.bytes <=> other.key.bytes;
  }
  bool operator==(const PinnedName&) const = default;
};

class PinnedChunks {
 public:
  explicit PinnedChunks(uint64_t bytes);
  PinnedChunks(const PinnedChunks&) = delete;
  PinnedChunks& operator=(const PinnedChunks&) = delete;

  // The chunks and room that one operation or snapshot holds. Destroying it releases them: chunks with a name stay until their room is
  // needed, room without a name is free at once. Must be destroyed before the PinnedChunks object.
  class Hold {
   public:
    explicit Hold(PinnedChunks& chunks) : chunks(chunks) {}
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // The offset of a chunk, which is held from here on.
    std::optional<uint64_t> find(const PinnedName& name);
    // Allocates room for so many bytes; nothing if there is not enough even after dropping all unheld chunks.
    std::optional<uint64_t> take(uint64_t bytes);
    // Names the chunk that was written into room from take(). Returns false if take() did not return such room, if its size differs, or if
    // it has a name already.
    bool name(uint64_t offset, const PinnedName& name);

    // Bytes of everything that it holds.
    uint64_t bytes() const { return heldBytes; }

   private:
    PinnedChunks& chunks;
    std::set<uint64_t> held;  // offsets
    uint64_t heldBytes = 0;
    void add(uint64_t offset);
  };

  uint64_t bytes() const { return size; }
  // Bytes of held chunks, and of unheld ones.
  uint64_t heldBytes() const { return held; }
  uint64_t idleBytes() const { return idleSum; }

 private:
  static constexpr uint64_t unit = 4096;  // room is allocated in whole pages

  struct Chunk {
    uint64_t bytes = 0, room = 0;  // room: bytes, rounded up to whole pages
    unsigned holds = 0;
    std::optional<PinnedName> name;
    std::list<uint64_t>::iterator idle;  // its position in `idle`, if it is unheld
  };
  std::optional<uint64_t> allocate(uint64_t room);
  void hold(uint64_t offset);
  void release(uint64_t offset);
  void remove(std::map<uint64_t, Chunk>::iterator chunk);
  void addGap(uint64_t offset, uint64_t bytes);
  void removeGap(std::map<uint64_t, uint64_t>::iterator gap);

  const uint64_t size;
  std::map<uint64_t, Chunk> chunks;                    // by offset
  std::map<PinnedName, uint64_t> named;                // to offsets
  std::map<uint64_t, uint64_t> gaps;                   // offset → bytes; adjacent gaps are merged
  std::set<std::pair<uint64_t, uint64_t>> gapsBySize;  // the same gaps: (bytes, offset)
  std::list<uint64_t> idle;                            // offsets of unheld chunks, least recently held first
  uint64_t held = 0, idleSum = 0;                      // sums of `room`
};

}  // namespace vgpu::daemon
