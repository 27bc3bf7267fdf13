// What is known of memory by an address in it. Rows of vgpu/api/cuda.table answer from it.
#pragma once

#include <optional>

#include "intercept/session/entry.h"

namespace vgpu::client {

struct PointerInfo {
  CUmemorytype type{};
  unsigned device = 0;
  uint64_t start = 0, bytes = 0;
  bool managed = false;
  uint64_t context = 0;  // 0: a pool's, which is of no context
  uint64_t id = 0;       // the same for every pointer into it, and never another one's; 0: of an allocation (Memory::idOf)
  std::optional<VirtualMemory::Mapped> mapped;  // of memory that the program has mapped itself
  std::optional<HostKind> hostKind;             // of the host's memory
  unsigned hostFlags = 0;
  bool isReached = true;  // by GPUs, at the same address; of a pool's and of what the program has mapped: by the current one
  bool isHostPointer = false;  // that cuMemHostGetDevicePointer and cuMemHostGetFlags take
  unsigned access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;  // of what the program has mapped: the current device's

  // CUDA's answer for memory that the program has mapped: what a device, or the host, may do with it.
  CUresult accessOf(const Session& session, const CUmemLocation& location, unsigned long long* flags) const;
};

// Nothing if it is not CUDA's memory.
std::optional<PointerInfo> findPointer(Thread& thread, uint64_t pointer);
CUresult pointerAttribute(Session& session, const PointerInfo& info, uint64_t pointer, CUpointer_attribute attribute, void* data);

}  // namespace vgpu::client
