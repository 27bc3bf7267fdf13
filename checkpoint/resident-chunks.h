// Which parts of a session's device memory a worker already has before it restores the session, because a migration has sent them ahead.
//
// Pieces do not overlap: a new piece replaces those that it overlaps. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "checkpoint/state.h"

namespace vgpu::checkpoint {

class ResidentChunks {
 public:
  void add(unsigned device, uint64_t address, size_t bytes, const Digest& digest) {
    remove(device, address, bytes);
    devices[device].insert({address, {bytes, digest}});
  }
  // Removes all pieces that overlap the range.
  void remove(unsigned device, uint64_t address, size_t bytes) {
    auto& pieces = devices[device];
    auto next = pieces.lower_bound(address);
    if (next != pieces.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address) --next;
    while (next != pieces.end() && next->first < address + bytes) next = pieces.erase(next);
  }
  // Whether the piece is there with this digest.
  bool has(const DevicePiece& piece) const {
    auto device = devices.find(piece.device);
    if (!piece.digest || device == devices.end()) return false;
    auto found = device->second.find(piece.address);
    return found != device->second.end() && found->second.bytes == piece.bytes && found->second.digest == *piece.digest;
  }

 private:
  struct Known {
    size_t bytes;
    Digest digest;
  };
  std::map<unsigned, std::map<uint64_t, Known>> devices;  // by address
};

}  // namespace vgpu::checkpoint
