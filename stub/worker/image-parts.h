// Reads a module image: PTX text, an ELF file, or a fatbinary of these (docs/fatbinary.md).
//
// An image is what a program has sent, and the driver takes one by its address alone: it goes as far as the sizes lead
// that it finds in there. So the driver is given an image only after it was read here, and found to end where its bytes
// end.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace vgpu::stub {

struct ImageReading {
  std::string problem;  // why the driver must not have it, as a size that leads out of it; empty where it may
  std::string unknown;  // which part could not be read, so that nobody knows what is in it; empty where all were
};

// Calls `visit` with each part, decompressed: a whole PTX text or ELF file. What is visited before a problem is found
// is sound. `image` has a zero byte behind it, where a PTX text ends that has none of its own.
ImageReading readImage(std::span<const std::byte> image, const std::function<void(std::string_view part)>& visit);

}  // namespace vgpu::stub
