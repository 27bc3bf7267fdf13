// A part of the host arena that the program has mapped at an address of its own too, by virtual memory management: the same memory,
// and as much access as the program has given the host (cuMemSetAccess).
//
// Its owner's to guard. It is in the program's process, where a suspend leaves it; a child of fork() has it too, as it has the arena.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "vgpu/base/memory-file.h"

namespace vgpu::client {

class SecondMapping {
 public:
  // Of the arena's `bytes` at `arenaAddress`, whole pages, at `address`, which the program may not touch yet. Nothing if something
  // else is there, or the system has no memory.
  static std::optional<SecondMapping> at(uint64_t address, uint64_t bytes, uint64_t arenaAddress, const MemoryFile& arena);
  SecondMapping(SecondMapping&& other) noexcept;
  SecondMapping& operator=(SecondMapping&&) = delete;
  ~SecondMapping();

  // What the program may do with it from now on. False if the system refuses.
  bool allow(CUmemAccess_flags flags);
  CUmemAccess_flags allowed() const { return access; }

 private:
  SecondMapping(uint64_t address, uint64_t bytes) : address(address), bytes(bytes) {}

  uint64_t address, bytes;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

}  // namespace vgpu::client
