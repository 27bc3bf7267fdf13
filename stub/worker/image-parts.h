// Reads a module image: PTX text, an ELF file, or a fatbinary of these (docs/fatbinary.md).
//
// A program sends the image, and the driver takes it by its address alone: how far the driver reads is decided by the sizes inside the
// image. So the driver gets an image only after it was read here and found to end where its bytes end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace vgpu::stub {

// The GPUs for which machine code is read: a bit for each major number of a compute capability. A driver accepts only code of its GPU's
// major number (CUDA C++ Programming Guide, "Binary Compatibility"), and unpacking all of a framework's code takes a tenth of a second.
using Majors = uint64_t;
constexpr Majors allMajors = ~Majors{0};
constexpr Majors majorOf(unsigned architecture) { return Majors{1} << (architecture / 10 % 64); }

struct ImageReading {
  std::string problem;  // why the driver must not get it, such as a size that leads out of the image; empty if it may
  std::string unknown;  // which part could not be read, so that its content is unknown; empty if all were read
};

// Calls `visit` with each part, decompressed: a whole PTX text or ELF file, without machine code of fatbinaries for other GPUs. Parts
// visited before a problem is found are valid. A zero byte must follow `image`: it ends a PTX text that has no terminator of its own.
ImageReading readImage(std::span<const std::byte> image, const std::function<void(std::string_view part)>& visit,
                       Majors majors = allMajors);

}  // namespace vgpu::stub
