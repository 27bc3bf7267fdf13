// Room in the daemon's pinned memory for chunks that a live snapshot holds until they are written. Requests room for several chunks at a
// time; all of it is released when the operation ends. Used on the working thread, quiesced.
#pragma once

#include <vector>

#include "checkpoint/pinned-memory.h"
#include "vgpu/snapshot/chunk.h"

namespace vgpu::checkpoint {

class HeldPool {
 public:
  // `room`: nullptr if there is none; it must live longer.
  HeldPool(const PinnedRoom* room, const DigestKey& key) : room(room), key(key) {}

  // Room for a chunk of so many bytes; empty if there is none.
  std::span<std::byte> take(size_t bytes) {
    if (offsets.empty() && room != nullptr && !isFull) ask();
    if (offsets.empty()) return {};
    uint64_t offset = offsets.back();
    offsets.pop_back();
    return room->at(offset, bytes);
  }

 private:
  static constexpr size_t chunksAtOnce = 64;

  void ask() {
    std::vector<ChunkName> unnamed(chunksAtOnce, ChunkName{notDigested, snapshot::chunkBytes});
    for (auto& place : room->place(key, unnamed, true))
      if (place.state == PinnedPlace::State::room) offsets.push_back(place.offset);
    isFull = offsets.size() < chunksAtOnce;
  }

  const PinnedRoom* room;
  const DigestKey& key;
  std::vector<uint64_t> offsets;
  bool isFull = false;
};

}  // namespace vgpu::checkpoint
