// An image that is known by its address alone, as CUDA takes one: PTX text, an ELF file, or a fatbinary, with its
// wrapper or without.
#pragma once

#include <string>

#include "vgpu/image/bytes.h"

namespace vgpu::image {

// The image's bytes according to its headers: of a text with the final zero, of a fatbinary without its wrapper. Headers are
// followed as a driver does, so they must be in the caller's own memory. Nothing if they are invalid; `problem` says why.
Bytes imageAt(const void* image, std::string& problem);

}  // namespace vgpu::image
