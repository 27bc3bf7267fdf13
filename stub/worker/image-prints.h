// Whether a module image may print: whether it names vprintf, which is what printf in a kernel calls.
//
// The driver empties a kernel's printf buffer when the host waits through it; a program of ours waits for the GPU without
// the driver's knowledge. So the worker waits the driver's way for programs that print, and only for those.
#pragma once

#include <cstddef>
#include <span>

namespace vgpu::stub {

// Looks into PTX text, ELF images and the members of a fatbinary (docs/fatbinary.md). True where it cannot tell: an image
// that nobody understands costs speed, not output. `image` is not trusted.
bool mayPrint(std::span<const std::byte> image);

}  // namespace vgpu::stub
