// Names and texts of CUDA's errors in memory that every kernel can read, at errorTextWindow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu::emulator {

// Addresses of texts, terminated by zero; for an unknown error, a text that says so.
uint64_t addressOfErrorText(uint32_t error);
uint64_t addressOfErrorName(uint32_t error);
// The bytes at errorTextWindow.
std::span<const std::byte> errorTextBytes();

}  // namespace vgpu::emulator
