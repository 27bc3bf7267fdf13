#include "checkpoint/arrays.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "vgpu/base/fail.h"


namespace vgpu::checkpoint {

namespace {

// A part of an array that is a rectangle of one slice, and where its bytes lie in the order of the file.
struct Part {
  uint64_t x, row, slice, width, rows, done;
};

// Calls `copy` for the parts of [offset, offset + bytes), in order: the rest of a row, whole rows, the start of a row.
template <typename Copy>
void forParts(const stub::ArrayInfo& array, uint64_t offset, uint64_t bytes, Copy copy) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t at = offset + done, left = bytes - done, row = at / array.rowBytes;
    Part part{at % array.rowBytes, row % array.rows, row / array.rows, 0, 1, done};
    bool whole = part.x == 0 && left >= array.rowBytes;
    part.rows = whole ? std::min(left / array.rowBytes, array.rows - part.row) : 1;
    part.width = whole ? array.rowBytes : std::min(left, array.rowBytes - part.x);
    copy(part);
    done += part.width * part.rows;
  }
}

CUDA_MEMCPY3D boxOf(const Part& part) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = part.width;
  copy.Height = part.rows;
  copy.Depth = 1;
  return copy;
}

void run(stub::Execution& on, const CUDA_MEMCPY3D& copy) {
  stub::require(on.driver, on.driver.cuMemcpy3D_v2(&copy), "copying an array");
}

CUarray realOf(const stub::Execution& on, const SavedArray& array) {
  return fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, array.handle));
}

const char* nameOf(bool surface) { return surface ? "surface" : "texture"; }

}  // namespace

std::vector<SavedArray> arraysOf(const stub::Execution& on) {
  std::vector<SavedArray> arrays;
  for (auto& [handle, array] : on.arrays) arrays.push_back({handle, array.bytes()});
  std::sort(arrays.begin(), arrays.end(), [](auto& a, auto& b) { return a.handle < b.handle; });
  return arrays;
}

uint64_t bytesOf(const std::vector<SavedArray>& arrays) {
  uint64_t bytes = 0;
  for (auto& array : arrays) bytes += array.bytes;
  return bytes;
}

void requireSameArrays(const stub::Execution& on, const std::vector<SavedArray>& arrays) {
  for (auto& saved : arrays) {
    auto found = on.arrays.find(saved.handle);
    if (found == on.arrays.end() || found->second.bytes() != saved.bytes)
      fail(fmt::format("the snapshot keeps {} bytes of the array {:#x}, and its objects make {}", saved.bytes, saved.handle,
                       found == on.arrays.end() ? "no such array" : fmt::format("one of {}", found->second.bytes())));
  }
}

void saveArray(stub::Execution& on, const SavedArray& array, uint64_t offset, std::byte* out, size_t bytes) {
  auto& info = on.arrays.at(array.handle);
  on.select(info.device);
  forParts(info, offset, bytes, [&](const Part& part) {
    CUDA_MEMCPY3D copy = boxOf(part);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = realOf(on, array);
    copy.srcXInBytes = part.x;
    copy.srcY = part.row;
    copy.srcZ = part.slice;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = out + part.done;
    copy.dstPitch = part.width;
    run(on, copy);
  });
}

void restoreArray(stub::Execution& on, const SavedArray& array, uint64_t offset, const std::byte* in, size_t bytes) {
  std::vector<std::byte> zeros(in == nullptr ? bytes : 0);
  auto& info = on.arrays.at(array.handle);
  on.select(info.device);
  forParts(info, offset, bytes, [&](const Part& part) {
    CUDA_MEMCPY3D copy = boxOf(part);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = (in == nullptr ? zeros.data() : in) + part.done;
    copy.srcPitch = part.width;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = realOf(on, array);
    copy.dstXInBytes = part.x;
    copy.dstY = part.row;
    copy.dstZ = part.slice;
    run(on, copy);
  });
}

std::vector<SavedTexture> texturesOf(const stub::Execution& on) {
  std::vector<SavedTexture> textures;
  for (auto& [handle, object] : on.textures.live())
    textures.push_back({handle, object.device, object.value, object.surface});
  std::sort(textures.begin(), textures.end(), [](auto& a, auto& b) { return a.handle < b.handle; });
  return textures;
}

void expectTextures(stub::Execution& on, const std::vector<SavedTexture>& textures) {
  std::unordered_map<uint64_t, stub::TextureHandle> wanted;
  for (auto& saved : textures)
    wanted[saved.handle] = {saved.surface, static_cast<unsigned>(saved.device), saved.value};
  on.textures.expect(std::move(wanted));
}

void requireSameTextures(stub::Execution& on, const std::vector<SavedTexture>& textures) {
  on.textures.finishRestore([&](unsigned device) { on.select(device); });
  for (auto& saved : textures) {
    auto found = on.textures.live().find(saved.handle);
    if (found == on.textures.live().end())
      fail(fmt::format("the snapshot keeps the {} {:#x}, which no object of it makes", nameOf(saved.surface), saved.handle));
    if (found->second.value != saved.value)
      fail(fmt::format("the {} {:#x} has the number {} on this device, and the program knows it by {}: the driver gives "
                       "numbers in another order, so this snapshot cannot be resumed here",
                       nameOf(saved.surface), saved.handle, found->second.value, saved.value));
  }
}

}  // namespace vgpu::checkpoint
