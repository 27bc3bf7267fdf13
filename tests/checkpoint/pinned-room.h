// The daemon's pinned memory, for tests of its users.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "checkpoint/pinned-memory.h"
#include "vgpu/base/sizes.h"

namespace vgpu::test {

using checkpoint::PinnedRoom;

// The daemon's side, in memory that all workers of a test share: hands out room from the start and never takes it back.
class Room {
 public:
  explicit Room(uint64_t bytes)
      : file(MemoryFile::create("vgpu-test-pinned", tableBytes + bytes)),
        mapping(file),
        table(new (mapping.data()) Table),
        bytes(bytes) {}

  PinnedRoom room() {
    return {memory(), "pool-of-the-test",
            [this](const DigestKey&, std::span<const ChunkName> names, bool makesRoom) { return place(names, makesRoom); },
            [this](const DigestKey&, std::span<const ChunkName> names, std::span<const uint64_t> offsets) {
              for (size_t i = 0; i < names.size(); ++i) table->entries.at(table->count++) = {names[i], offsets[i]};
            }};
  }
  std::span<std::byte> memory() { return {mapping.data() + tableBytes, bytes}; }
  size_t chunks() const { return table->count; }
  uint64_t usedBytes() const { return table->used; }
  uint64_t offsetOf(size_t chunk) const { return table->entries.at(chunk).offset; }
  void forget() { table->count = 0; }

 private:
  struct Entry {
    ChunkName name;
    uint64_t offset = 0;
  };
  struct Table {
    std::array<Entry, 256> entries;
    size_t count = 0;
    uint64_t used = 0;
  };
  static constexpr uint64_t tableBytes = 64 * KiB;
  static_assert(sizeof(Table) <= tableBytes);

  std::vector<PinnedPlace> place(std::span<const ChunkName> names, bool makesRoom) {
    std::vector<PinnedPlace> places(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      for (size_t known = 0; known < table->count; ++known)
        if (table->entries[known].name == names[i]) places[i] = {table->entries[known].offset, PinnedPlace::State::there};
      if (places[i].state == PinnedPlace::State::there || !makesRoom || names[i].bytes > bytes - table->used) continue;
      places[i] = {table->used, PinnedPlace::State::room};
      table->used += names[i].bytes;
    }
    return places;
  }

  MemoryFile file;
  Mapping mapping;
  Table* table;
  uint64_t bytes;
};

}  // namespace vgpu::test
