// What the vendor's headers say of each driver API entry, from vgpu/api/cuda.table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace vgpu::api {

struct DriverEntry {
  std::string_view symbol;  // as exported: cuMemAlloc_v2
  unsigned since;           // the CUDA version that introduced it: 3020 is 3.2
  bool hasPerThread;        // there is a variant whose null stream is the calling thread's own
};

// The name that is passed to cuGetProcAddress: without the _v2, _v3, … that cuda.h's macros add.
constexpr std::string_view baseNameOf(std::string_view symbol) {
  size_t suffix = symbol.rfind("_v");
  return suffix != std::string_view::npos && suffix + 3 == symbol.size() ? symbol.substr(0, suffix) : symbol;
}

}  // namespace vgpu::api

#include "driver-entries.inc"

namespace vgpu::api {

// Fails to compile if the driver API has no such symbol.
consteval const DriverEntry& entryOf(std::string_view symbol) {
  auto found = std::lower_bound(std::begin(driverEntries), std::end(driverEntries), symbol,
                                [](const DriverEntry& entry, std::string_view wanted) { return entry.symbol < wanted; });
  if (found == std::end(driverEntries) || found->symbol != symbol) throw "the driver API has no such entry";
  return *found;
}

}  // namespace vgpu::api
