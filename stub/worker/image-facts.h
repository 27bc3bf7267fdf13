// What the worker must know of a module image that the driver does not tell. The image is not trusted. Finding it out reads
// all of it, decompressed (image-parts.h), so it is done once an image and kept with it. Machine code for other GPUs
// is left out.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

#include "stub/worker/image-parts.h"

namespace vgpu::stub {

struct ImageFacts {
  // Whether kernels name `vprintf`. The driver empties a kernel's printf buffer when the host waits through it; a program
  // of ours waits for the GPU without the driver's knowledge. So the worker waits the driver's way for programs that
  // print, and only for those.
  bool prints = false;
  // Whether they name `malloc`, or the device runtime's cudaMalloc(). The device heap is the driver's: neither its place nor its
  // book-keeping can be saved.
  bool usesHeap = false;
  // Whether some of their variables are managed. A driver has one of each for all devices of a library's modules.
  bool hasManaged = false;
  // Every name that may be a variable of the module: the declarations of its PTX, the data symbols of its machine code.
  // Some may be no variable; the driver knows which.
  std::set<std::string> variables;
  // Why the driver must not have it (image-parts.h); empty where it may.
  std::string problem;
  // Which part could not be read: kernels in it may print, may use the heap and may have variables that are not named here.
  // Empty where all were read.
  std::string unknown;

  // Of which GPUs machine code was read.
  Majors majors = allMajors;

  bool operator==(const ImageFacts&) const = default;
};

// What it finds in the parts that it can read. Of an image with a problem the driver gets nothing, so there is no more to know.
ImageFacts findFacts(std::span<const std::byte> image, Majors majors = allMajors);

}  // namespace vgpu::stub
