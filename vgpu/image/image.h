// An image of which only the address is known, as in CUDA's module calls: PTX text, an ELF file, or a fatbinary with or without its
// wrapper.
#pragma once

#include <string>

#include "vgpu/image/bytes.h"

namespace vgpu::image {

// The image's bytes according to its headers: a text with its final zero, a fatbinary without its wrapper. Headers are trusted as a driver
// trusts them, so they must be in the caller's own memory. Empty if they are invalid; `problem` says why.
Bytes imageAt(const void* image, std::string& problem);

}  // namespace vgpu::image
