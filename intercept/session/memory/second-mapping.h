// Memory of the host that the program has mapped at an address of its own, by virtual memory management: a part of the host arena once
// more, or of a file that other processes have too; and as much access as the program has given the host (cuMemSetAccess).
//
// Its owner's to guard. It is in the program's process, where a suspend leaves it; a child of fork() has it too, as it has the arena.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

class SecondMapping {
 public:
  // Of the file's `bytes` at `place`, whole pages, at `address`, which the program may not touch yet. Nothing if something else is
  // there, or the system has no memory.
  static std::optional<SecondMapping> at(uint64_t address, uint64_t bytes, int file, uint64_t place);
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
