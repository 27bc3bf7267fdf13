// Where a thread has found addresses lately. An allocation that was found is there until one ends, so only then it is looked for
// again: a copy or fill of memory that is used again and again takes no lock (Memory::endings).
//
// The thread's own. A suspend changes nothing of it: addresses stay what they are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "intercept/session/copy/where.h"

namespace vgpu::client {

class FoundMemory {
 public:
  // Where [address, address + bytes) is, if all of it is in an allocation that was found since `endings` allocations had ended.
  std::optional<Where> find(uint64_t address, uint64_t bytes, uint64_t endings) const {
    const Found& found = known[placeOf(address)];
    const uint64_t offset = address - found.address;
    if (found.endings != endings || offset >= found.bytes || bytes > found.bytes - offset) return std::nullopt;
    return found.where;
  }
  // `endings`: as many as had ended before it was looked for.
  void add(uint64_t looked, uint64_t address, uint64_t bytes, Where where, uint64_t endings) {
    known[placeOf(looked)] = {address, bytes, endings, where};
  }

 private:
  struct Found {
    uint64_t address = 0, bytes = 0, endings = 0;
    Where where = Where::nowhere;
  };
  static constexpr size_t places = 16;
  // Small allocations are some hundred bytes apart, large ones some MiB.
  static size_t placeOf(uint64_t address) { return (address >> 9 ^ address >> 16 ^ address >> 21) % places; }

  std::array<Found, places> known{};
};

}  // namespace vgpu::client
