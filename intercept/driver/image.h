// How long a module image is: CUDA takes a bare pointer, the ring needs the bytes.
#pragma once

#include <cstddef>
#include <span>

namespace vgpu {

// Longest name of a function or variable that a frame carries.
constexpr size_t maxNameBytes = 32 * 1024;

// The bytes of a fatbinary (its wrapper or its container), an ELF image, or PTX text with its final zero. Empty where it
// is none of these. It reads what the program vouches for, as the driver does.
std::span<const std::byte> imageOf(const void* image);

}  // namespace vgpu
