// The bytes of arrays, whose layout is the device's own: copied row by row into the order that a program sees, element
// after element. And the numbers of texture and surface objects. Used on the working thread, quiesced.
#pragma once

#include <cstddef>
#include <vector>

#include "checkpoint/manifest.h"
#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

std::vector<SavedArray> arraysOf(const stub::Execution& on);
uint64_t bytesOf(const std::vector<SavedArray>& arrays);

// Throws kj::Exception where an array is not there or is of another size.
void requireSameArrays(const stub::Execution& on, const std::vector<SavedArray>& arrays);

// Copies [offset, offset + bytes) of an array's bytes. `out` and `in` are host memory; `in` may be nullptr for zeros.
void saveArray(stub::Execution& on, const SavedArray& array, uint64_t offset, std::byte* out, size_t bytes);
void restoreArray(stub::Execution& on, const SavedArray& array, uint64_t offset, const std::byte* in, size_t bytes);

std::vector<SavedTexture> texturesOf(const stub::Execution& on);
// Makes recipes that are executed from here on give these numbers, as far as the driver can be brought to.
void expectTextures(stub::Execution& on, const std::vector<SavedTexture>& textures);
// Throws kj::Exception, naming the object and both numbers, where one has another.
void requireSameTextures(stub::Execution& on, const std::vector<SavedTexture>& textures);

}  // namespace vgpu::checkpoint
