// The machine code in a fatbinary that the driver would choose for its GPU, unpacked by the worker.
//
// A driver unpacks the code each time an image is loaded, which is more than half of the loading time (docs/facts.md). So the worker gives
// it the unpacked code instead of the image, and the image store keeps that code. An image that is not fully understood, or whose code the
// driver refuses, is given unchanged, so CUDA's result is the one for the image itself.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stub/driver/driver.h"

namespace vgpu::stub {

// A device's compute capability as one number: 90 for 9.0.
unsigned computeCapability(const Driver& driver, unsigned device);
// Likewise, or 0 if the driver loads no machine code for the device: it is emulated, or the environment makes the driver compile everything
// (CUDA_FORCE_PTX_JIT, CUDA_FORCE_JIT).
unsigned codeArchitecture(const Driver& driver, unsigned device);

// The code for that architecture, an ELF file: among the members for its major number, the one with the highest minor number that is not
// above its own (CUDA C++ Programming Guide, "Binary Compatibility"). Empty if it is not compressed, if several members fit equally well,
// if some are for exactly one architecture, or if a member is of an unknown kind. `image` has been read (image-parts.h) and has no problem.
std::string unpackedCode(std::span<const std::byte> image, unsigned architecture);

}  // namespace vgpu::stub
