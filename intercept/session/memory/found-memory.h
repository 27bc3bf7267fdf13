// Allocations that a thread has looked up recently. A found allocation exists until some allocation ends, so it is looked up again only
// after that: a copy or fill of memory that is used repeatedly takes no lock (Memory::endings).
//
// Owned by the thread. A suspend does not affect it: addresses stay valid.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "intercept/session/copy/where.h"

namespace vgpu::client {

class FoundMemory {
 public:
  // Where [address, address + bytes) is, if it lies in an allocation that was found when Memory::endings() was `endings`.
  std::optional<Where> find(uint64_t address, uint64_t bytes, uint64_t endings) const {
    const Found& found = known[placeOf(address)];
    const uint64_t offset = address - found.address;
    if (found.endings != endings || offset >= found.bytes || bytes > found.bytes - offset) return std::nullopt;
    return found.where;
  }
  // `endings`: the value of Memory::endings() before the lookup.
  void add(uint64_t looked, uint64_t address, uint64_t bytes, Where where, uint64_t endings) {
    known[placeOf(looked)] = {address, bytes, endings, where};
  }

 private:
  struct Found {
    uint64_t address = 0, bytes = 0, endings = 0;
    Where where = Where::nowhere;
  };
  static constexpr size_t places = 16;
  // Hashes for allocations some hundred bytes apart as well as some MiB apart.
  static size_t placeOf(uint64_t address) { return (address >> 9 ^ address >> 16 ^ address >> 21) % places; }

  std::array<Found, places> known{};
};

}  // namespace vgpu::client
