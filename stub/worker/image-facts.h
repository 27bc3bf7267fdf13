// Facts about a module image that the worker needs and the driver does not report. The image is not trusted. Finding them reads all of it,
// decompressed (image-parts.h), so it is done once for each image and kept with it. Machine code for other GPUs is skipped.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

#include "stub/worker/image-parts.h"

namespace vgpu::stub {

struct ImageFacts {
  // Whether kernels name `vprintf`. The driver empties a kernel's printf buffer when the host waits through the driver; our programs wait
  // for the GPU on completion words, without a driver call. So for programs that print, and only for those, the worker waits by a driver
  // call.
  bool prints = false;
  // Whether kernels name `malloc`, or the device runtime's cudaMalloc(). The device heap is the driver's: neither its address nor its
  // book-keeping can be saved.
  bool usesHeap = false;
  // Whether some of their variables are managed. For all devices that load one library, the driver has one instance of each.
  bool hasManaged = false;
  // Every name that may be a variable of the module: from the declarations of its PTX and the data symbols of its machine code. Some may be
  // no variable; the driver knows which.
  std::set<std::string> variables;
  // Why the driver must not get the image (image-parts.h); empty if it may.
  std::string problem;
  // Which part could not be read: kernels in it may print, may use the heap, and may have variables that are not listed here. Empty if all
  // parts were read.
  std::string unknown;

  // The GPUs for which machine code was read.
  Majors majors = allMajors;

  bool operator==(const ImageFacts&) const = default;
};

// Reads the facts from all readable parts. An image with a problem is never given to the driver, so no more is read of it.
ImageFacts findFacts(std::span<const std::byte> image, Majors majors = allMajors);

}  // namespace vgpu::stub
