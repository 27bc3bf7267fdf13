// Faces: libraries of ours with the soname and exports of a vendor's (intercept/libraries/). They are preloaded, so an object that needs
// the vendor's library by name gets the face, whatever its run path. An object that opens the vendor's file by path, or needs that of CUDA
// 12, gets the vendor's: each of its functions is then patched to jump to the face's, as for a runtime inside an object.
//
// Under the dynamic linker's lock, or while the process has one thread.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "intercept/patch/linker.h"
#include "intercept/runtime/export-table.h"
#include "vgpu/image/elf.h"

namespace vgpu::runtime {

/// Whether the file is a face. If so, records where it is loaded, for its functions' addresses.
bool noteFace(const image::Elf& file, const LoadedObject& object);

/// The functions of the face for the library at `path`, sorted by name; nothing if it has no face.
std::optional<std::span<const Export>> findFace(const std::string& path);

}  // namespace vgpu::runtime
