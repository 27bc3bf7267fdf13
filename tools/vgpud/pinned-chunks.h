// Which chunks of memory are in the daemon's pinned memory (pinned-pool.h), and where.
//
// A chunk is known by its content and the key of its digest. It stays while somebody holds it: an operation in progress, or a
// snapshot that is nowhere else. One that nobody holds stays until its room is needed; those go first that nobody has held for
// longest. So a session whose chunks are still here comes back from here, whatever its snapshot is kept in.
//
// Book-keeping alone: the memory is not touched. Of the event loop's thread. Does not outlive the daemon.
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

  // What one operation or snapshot holds. Its end lets all of it go: chunks with a name stay until their room is needed, room
  // that was taken and has no name is free at once. Must end before the chunks do.
  class Hold {
   public:
    explicit Hold(PinnedChunks& chunks) : chunks(chunks) {}
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Where a chunk is; held from here on.
    std::optional<uint64_t> find(const PinnedName& name);
    // Room for so many bytes; nothing if there is none even without all that nobody holds.
    std::optional<uint64_t> take(uint64_t bytes);
    // What was put into room that take() gave. False if it gave no such room, of another size, or if it has a name.
    bool name(uint64_t offset, const PinnedName& name);

    // Of all that it holds.
    uint64_t bytes() const { return heldBytes; }

   private:
    PinnedChunks& chunks;
    std::set<uint64_t> held;  // offsets
    uint64_t heldBytes = 0;
    void add(uint64_t offset);
  };

  uint64_t bytes() const { return size; }
  // Of chunks that somebody holds, and of those that nobody does.
  uint64_t heldBytes() const { return held; }
  uint64_t idleBytes() const { return idleSum; }

 private:
  static constexpr uint64_t unit = 4096;  // room begins and ends on a page

  struct Chunk {
    uint64_t bytes = 0, room = 0;  // room: with what fills its last page
    unsigned holds = 0;
    std::optional<PinnedName> name;
    std::list<uint64_t>::iterator idle;  // its place in `idle`, if nobody holds it
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
  std::map<uint64_t, uint64_t> gaps;                   // offset → bytes; never two side by side
  std::set<std::pair<uint64_t, uint64_t>> gapsBySize;  // the same: (bytes, offset)
  std::list<uint64_t> idle;                            // offsets of chunks that nobody holds, the longest so first
  uint64_t held = 0, idleSum = 0;                      // of room
};

}  // namespace vgpu::daemon
