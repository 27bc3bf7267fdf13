// Where each state space lies among generic addresses. Device and host memory stay below 2^47, so these cannot meet
// them.
#pragma once

#include <cstdint>

namespace vgpu::emulator {

constexpr int kWindowShift = 48;
constexpr uint64_t kSharedWindow = uint64_t{0x01} << kWindowShift;
constexpr uint64_t kLocalWindow = uint64_t{0x02} << kWindowShift;
constexpr uint64_t kParamWindow = uint64_t{0x03} << kWindowShift;
constexpr uint64_t kWorkspaceWindow = uint64_t{0x04} << kWindowShift;  // what %envreg1 and %envreg2 point to

inline uint64_t windowOf(uint64_t address) { return address >> kWindowShift << kWindowShift; }
inline uint64_t offsetIn(uint64_t address) { return address & ((uint64_t{1} << kWindowShift) - 1); }

}  // namespace vgpu::emulator
