// Virtual handles: what a program holds in a CUstream, CUevent, CUmodule. Opaque to the program, made by the client, and unchanged as long
// as the session lives, wherever its GPU is.
//
//   63..60 0 | 59..52 kind | 51..48 device | 47..24 generation | 23..0 index
//
// Memory has no such handle: its address identifies it.
#pragma once

#include <cstdint>

#include "cuda-kinds.h"

namespace vgpu {

constexpr uint64_t handleIndexBits = 24, handleGenerationBits = 24;

constexpr uint64_t makeHandle(api::Kind kind, unsigned device, uint32_t generation, uint32_t index) {
  return static_cast<uint64_t>(kind) << 52 | static_cast<uint64_t>(device) << 48 |
         static_cast<uint64_t>(generation & ((1u << handleGenerationBits) - 1)) << handleIndexBits | index;
}
constexpr unsigned handleKind(uint64_t handle) { return static_cast<unsigned>(handle >> 52); }
constexpr unsigned handleDevice(uint64_t handle) { return static_cast<unsigned>(handle >> 48) & 0xf; }
constexpr uint32_t handleIndex(uint64_t handle) { return static_cast<uint32_t>(handle) & ((1u << handleIndexBits) - 1); }

}  // namespace vgpu
