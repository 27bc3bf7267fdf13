// Faces: libraries of ours with the soname and exports of a vendor's (intercept/libraries/). They are preloaded, so whatever needs
// the vendor's library by name gets the face, its run path notwithstanding. Only who opens the vendor's file by its path, or needs that of
// CUDA 12, gets that: it is then patched as a runtime inside an object is, each of its functions to jump to the face's.
//
// Under the linker's lock, or while the process has one thread.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "intercept/patch/linker.h"
#include "intercept/runtime/export-table.h"
#include "vgpu/image/elf.h"

namespace vgpu::runtime {

/// Whether the file is that of a face. Its functions are then known by the object's place.
bool noteFace(const image::Elf& file, const LoadedObject& object);

/// The functions of the face of a library that lies at `path`, sorted by name; none if it has no face.
std::optional<std::span<const Export>> findFace(const std::string& path);

}  // namespace vgpu::runtime
