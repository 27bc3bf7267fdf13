// An image that is known by its address alone, as CUDA takes one: PTX text, an ELF file, or a fatbinary, with its
// wrapper or without.
#pragma once

#include <string>

#include "vgpu/image/bytes.h"

namespace vgpu::image {

// The bytes that the image claims to have: a text's with its final zero, a fatbinary's without its wrapper. What the
// headers say is followed, as a driver does, so they must be the caller's own. Nothing where they claim what cannot be;
// `problem` says what.
Bytes imageAt(const void* image, std::string& problem);

}  // namespace vgpu::image
