// The machine code that a driver takes out of a fatbinary for its GPU, unpacked before the driver has it.
//
// A driver unpacks it each time an image is loaded, which is more than half of what loading takes (docs/facts.md). So a worker gives
// it what is unpacked in the place of the image, and the image store keeps it. An image of which not all is understood, or whose
// code the driver refuses, is given as it is: what CUDA answers then is of the image.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stub/driver/driver.h"

namespace vgpu::stub {

// A device's compute capability as one number: 90 for 9.0.
unsigned computeCapability(const Driver& driver, unsigned device);
// The same, or 0 if the driver takes no machine code for the device: it is emulated, or the environment tells the driver to compile
// all (CUDA_FORCE_PTX_JIT, CUDA_FORCE_JIT).
unsigned codeArchitecture(const Driver& driver, unsigned device);

// The code for that architecture, an ELF file: of members for that major number the one for the highest minor number that is not
// above (CUDA C++ Programming Guide, "Binary Compatibility"). Empty where it is not compressed, where several are as good or some
// are for this architecture alone, and where some member is of an unknown kind. `image` has been read (image-parts.h) and has no
// problem.
std::string unpackedCode(std::span<const std::byte> image, unsigned architecture);

}  // namespace vgpu::stub
