// Reads a module image: PTX text, an ELF file, or a fatbinary of these (docs/fatbinary.md).
//
// An image is what a program has sent, and the driver takes one by its address alone: it goes as far as the sizes lead
// that it finds in there. So the driver is given an image only after it was read here, and found to end where its bytes
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace vgpu::stub {

// Of which GPUs machine code is read: a bit for each major number of a compute capability. A driver takes no other code for its
// GPU (CUDA C++ Programming Guide, "Binary Compatibility"), and unpacking all of what a framework carries takes a tenth of a
// second.
using Majors = uint64_t;
constexpr Majors allMajors = ~Majors{0};
constexpr Majors majorOf(unsigned architecture) { return Majors{1} << (architecture / 10 % 64); }

struct ImageReading {
  std::string problem;  // why the driver must not have it, as a size that leads out of it; empty where it may
  std::string unknown;  // which part could not be read, so that nobody knows what is in it; empty where all were
};

// Calls `visit` with each part, decompressed: a whole PTX text or ELF file, without machine code of fatbinaries for other GPUs.
// What is visited before a problem is found is sound. `image` has a zero byte behind it, where a PTX text ends that has none of
// its own.
ImageReading readImage(std::span<const std::byte> image, const std::function<void(std::string_view part)>& visit,
                       Majors majors = allMajors);

}  // namespace vgpu::stub
