// The range of generic addresses of each state space. Device and host memory stay below 2^47, so these ranges do not overlap them.
#pragma once

#include <cstdint>

namespace vgpu::emulator {

constexpr int windowShift = 48;
constexpr uint64_t sharedWindow = uint64_t{0x01} << windowShift;
constexpr uint64_t localWindow = uint64_t{0x02} << windowShift;
constexpr uint64_t paramWindow = uint64_t{0x03} << windowShift;
constexpr uint64_t workspaceWindow = uint64_t{0x04} << windowShift;  // to which %envreg1 and %envreg2 point
constexpr uint64_t parameterBufferWindow = uint64_t{0x05} << windowShift;  // for launches by kernels
constexpr uint64_t errorTextWindow = uint64_t{0x06} << windowShift;        // texts returned by a kernel's cudaGetErrorString()

inline uint64_t windowOf(uint64_t address) { return address >> windowShift << windowShift; }
inline uint64_t offsetIn(uint64_t address) { return address & ((uint64_t{1} << windowShift) - 1); }

}  // namespace vgpu::emulator
