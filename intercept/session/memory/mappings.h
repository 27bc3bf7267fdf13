// Which physical memory a program has mapped where (cuMemMap), and who may access it.
//
// Owned by VirtualMemory, under its lock. Stays in the program's process over a suspend, as the addresses do.
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
  uint64_t bytes, physical;                  // the physical memory's handle
  std::array<uint8_t, maxDevices> access{};  // CUmemAccess_flags
  std::optional<SecondMapping> host{};       // if it is host memory
  uint64_t id = 0;                           // unique, never reused

  Where where() const;
};

class Mappings {
 public:
  using Entry = std::pair<const uint64_t, MemoryMapping>;  // by address

  void add(uint64_t address, MemoryMapping&& mapping) { entries.emplace(address, std::move(mapping)).first->second.id = ++lastId; }
  void remove(uint64_t address) { entries.erase(address); }
  MemoryMapping& at(uint64_t address) { return entries.at(address); }

  bool isFree(uint64_t address, uint64_t bytes) const;
  const Entry* holding(uint64_t address) const;  // the mapping that contains the address; null: none
  // Where [address, address + bytes) is, if mappings of the same kind cover it: on a device, whichever may access it; as pinned memory if
  // it is host memory that devices may access too.
  Where locate(uint64_t address, uint64_t bytes) const;

  // exactly(): the mappings that cover exactly that range; empty if there is a gap. within(): those inside the range; nothing if one
  // extends out of it. ofDevice(): those of a device's memory; host memory is the first device's. All by address.
  std::vector<uint64_t> exactly(uint64_t address, uint64_t bytes) const;
  std::optional<std::vector<uint64_t>> within(uint64_t address, uint64_t bytes) const;
  std::vector<uint64_t> ofDevice(unsigned device) const;

 private:
  std::map<uint64_t, MemoryMapping> entries;
  uint64_t lastId = uint64_t{1} << 40;  // greater than any allocation's id (Memory::idOf), less than any variable's
};

}  // namespace vgpu::client
