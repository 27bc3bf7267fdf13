#include "intercept/session/memory/second-mapping.h"

#include <sys/mman.h>

#include <utility>

#include "vgpu/api/wire-value.h"

namespace vgpu::client {

std::optional<SecondMapping> SecondMapping::at(uint64_t address, uint64_t bytes, int file, uint64_t place) {
  void* mapped = mmap(fromWire<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file,
                      static_cast<off_t>(place));
  if (mapped == MAP_FAILED) return std::nullopt;
  return SecondMapping(address, bytes);
}

SecondMapping::SecondMapping(SecondMapping&& other) noexcept
    : address(other.address), bytes(std::exchange(other.bytes, 0)), access(other.access) {}

SecondMapping::~SecondMapping() {
  if (bytes != 0) munmap(fromWire<void*>(address), bytes);
}

bool SecondMapping::allow(CUmemAccess_flags flags) {
  const int protection = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                         : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                     : PROT_NONE;
  if (mprotect(fromWire<void*>(address), bytes, protection) != 0) return false;
  access = flags;
  return true;
}

}  // namespace vgpu::client
