// Host memory that the program has mapped at an address of its own by virtual memory management: a second mapping of part of the host
// arena, or a mapping of a file shared with other processes, with the access that the program has given the host (cuMemSetAccess).
//
// Its owner synchronizes access. It stays in the program's process over a suspend; a child of fork() inherits it, as it does the arena.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

class SecondMapping {
 public:
  // Maps `bytes` (whole pages) at offset `place` of the file at `address`, at first without access. Nothing if something else is mapped
  // there, or the system has no memory.
  static std::optional<SecondMapping> at(uint64_t address, uint64_t bytes, int file, uint64_t place);
  SecondMapping(SecondMapping&& other) noexcept;
  SecondMapping& operator=(SecondMapping&&) = delete;
  ~SecondMapping();

  // Sets the program's access. False if the system refuses.
  bool allow(CUmemAccess_flags flags);
  CUmemAccess_flags allowed() const { return access; }

 private:
  SecondMapping(uint64_t address, uint64_t bytes) : address(address), bytes(bytes) {}

  uint64_t address, bytes;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

}  // namespace vgpu::client
