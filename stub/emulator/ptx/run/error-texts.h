// Names and texts of CUDA's errors in memory that every kernel can read, at errorTextWindow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu::emulator {

// Addresses of texts that end with a zero; of an error that CUDA does not have, one that says so.
uint64_t addressOfErrorText(uint32_t error);
uint64_t addressOfErrorName(uint32_t error);
// The bytes at errorTextWindow.
std::span<const std::byte> errorTextBytes();

}  // namespace vgpu::emulator
