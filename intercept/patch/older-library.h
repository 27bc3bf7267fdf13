// Libraries of CUDA 12 of which there is a face for CUDA 13 alone (face.h): cuBLAS. In the program, on our runtime, it asks for private
// tables (cudaGetExportTable), and a part of its calls fails (12.1 on an H200: dot and trsv do, axpy and ger do not); the face's functions
// are not given for its own: nobody has compared the two interfaces.
//
// Looked for by name. Under the linker's lock, or while the process has one thread.
#pragma once
#include <string>
#include <string_view>

#include "vgpu/image/elf.h"

namespace vgpu::runtime {

/// Whether a file of that path is one.
bool isOlderLibrary(std::string_view path);

/// What the program is told if it is linked with one; empty if it is not.
std::string problemOfOlderLibraries(const image::Elf& program, const std::string& path);

}  // namespace vgpu::runtime
