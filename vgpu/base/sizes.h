#pragma once

#include <cstdint>

namespace vgpu {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB, TiB = 1024 * GiB;

constexpr uint64_t hostPageBytes = 4 * KiB;  // x86-64's page size

// Rounds `bytes` up to a multiple of `unit`.
constexpr uint64_t roundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace vgpu
