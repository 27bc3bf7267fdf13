// Facts about memory, looked up by an address in it. Rows of vgpu/api/cuda.table answer from them.
#pragma once

#include <optional>

#include "intercept/session/entry.h"

namespace vgpu::client {

struct PointerInfo {
  CUmemorytype type{};
  unsigned device = 0;
  uint64_t start = 0, bytes = 0;
  bool managed = false;
  uint64_t context = 0;  // 0: memory of a pool, which belongs to no context
  uint64_t id = 0;       // unique, the same for every pointer into the memory; 0: an allocation's is Memory::idOf
  std::optional<VirtualMemory::Mapped> mapped;  // set for memory that the program has mapped itself
  std::optional<HostKind> hostKind;             // set for host memory
  unsigned hostFlags = 0;
  bool isReached = true;  // by GPUs at the same address; for pool and program-mapped memory: by the current device
  bool isHostPointer = false;  // whether cuMemHostGetDevicePointer and cuMemHostGetFlags accept it
  unsigned access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;  // of program-mapped memory: the current device's

  // CUDA's result of cuMemGetAccess for memory that the program has mapped.
  CUresult accessOf(const Session& session, const CUmemLocation& location, unsigned long long* flags) const;
};

// Nothing if the address is not in CUDA's memory.
std::optional<PointerInfo> findPointer(Thread& thread, uint64_t pointer);
CUresult pointerAttribute(Session& session, const PointerInfo& info, uint64_t pointer, CUpointer_attribute attribute, void* data);

}  // namespace vgpu::client
