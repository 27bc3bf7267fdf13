// Which physical memory a program has mapped where (cuMemMap), and who may use it.
//
// VirtualMemory's, under its lock. Stays in the program's process over a suspend, as the addresses do.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "intercept/session/copy/where.h"
#include "intercept/session/memory/second-mapping.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

struct MemoryMapping {
  uint64_t bytes, physical;                  // the handle
  std::array<uint8_t, maxDevices> access{};  // CUmemAccess_flags
  std::optional<SecondMapping> host{};       // of the host's memory
  uint64_t id = 0;                           // no other one has had it

  Where where() const;
};

class Mappings {
 public:
  using Entry = std::pair<const uint64_t, MemoryMapping>;  // by address

  void add(uint64_t address, MemoryMapping&& mapping) { entries.emplace(address, std::move(mapping)).first->second.id = ++lastId; }
  void remove(uint64_t address) { entries.erase(address); }
  MemoryMapping& at(uint64_t address) { return entries.at(address); }

  bool isFree(uint64_t address, uint64_t bytes) const;
  const Entry* holding(uint64_t address) const;  // null: nothing is mapped there
  // Where [address, address + bytes) is, if mappings that are used alike cover it: on a device, whose may use it; of the host's memory
  // as pinned memory is if devices may use it too.
  Where locate(uint64_t address, uint64_t bytes) const;

  // The addresses of the mappings that make up exactly that range, and are none if there is a gap; of those in it, and none if one
  // reaches out of it; and of a device's, the host's with the first one's.
  std::vector<uint64_t> exactly(uint64_t address, uint64_t bytes) const;
  std::optional<std::vector<uint64_t>> within(uint64_t address, uint64_t bytes) const;
  std::vector<uint64_t> ofDevice(unsigned device) const;

 private:
  std::map<uint64_t, MemoryMapping> entries;
  uint64_t lastId = uint64_t{1} << 40;  // no allocation has so large a one (Memory::idOf), and no variable so small a one
};

}  // namespace vgpu::client
