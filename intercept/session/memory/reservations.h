// The addresses that a program has reserved (cuMemAddressReserve). Kept on this side only: the worker reserves the whole range.
//
// Owned by VirtualMemory, under its lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <optional>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Reservations {
 public:
  // CUDA's results. `wanted` is a preferred address.
  CUresult reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, CUdeviceptr* address);
  CUresult free(uint64_t address, uint64_t bytes);

  struct Range {
    uint64_t address, bytes;
  };
  // The reservation that contains [address, address + bytes).
  std::optional<Range> find(uint64_t address, uint64_t bytes) const;

 private:
  std::optional<uint64_t> place(uint64_t bytes, uint64_t alignment, uint64_t wanted) const;

  std::map<uint64_t, uint64_t> ranges;  // address to bytes
};

}  // namespace vgpu::client
