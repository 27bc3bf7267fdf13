// Sparse arrays of words, whose memory the program maps.
#pragma once

#include "driver-entry.h"

constexpr uint64_t MiB = uint64_t{1} << 20, tileBytes = 65536;

inline CUmemGenericAllocationHandle makePool(size_t bytes, unsigned short usage = CU_MEM_CREATE_USAGE_TILE_POOL) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.allocFlags.usage = usage;
  CUmemGenericAllocationHandle pool;
  CALL(cuMemCreate, &pool, bytes, &properties, 0);
  return pool;
}

inline CUarray makeArray(size_t width, size_t height, size_t depth, unsigned flags) {
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR shape{width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, flags};
  CALL(cuArray3DCreate, &array, &shape);
  return array;
}

struct Box {
  unsigned level, layer, x, y, z, width, height, depth;
};

// Maps a pool's memory to a box of tiles; without a pool it unmaps them.
inline CUarrayMapInfo change(CUarray array, const Box& box, CUmemGenericAllocationHandle pool = 0, uint64_t offset = 0) {
  CUarrayMapInfo info{};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY;
  info.resource.array = array;
  info.subresource.sparseLevel = {box.level, box.layer, box.x, box.y, box.z, box.width, box.height, box.depth};
  info.memOperationType = pool != 0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
  info.memHandle.memHandle = pool;
  info.offset = offset;
  info.deviceBitMask = 1;
  return info;
}
inline CUarrayMapInfo change(CUmipmappedArray levels, const Box& box, CUmemGenericAllocationHandle pool = 0, uint64_t offset = 0) {
  CUarrayMapInfo info = change(CUarray{}, box, pool, offset);
  info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  info.resource.mipmap = levels;
  return info;
}

inline CUresult map(std::vector<CUarrayMapInfo> list) {
  return DRIVER(cuMemMapArrayAsync)(list.data(), static_cast<unsigned>(list.size()), nullptr);
}

inline CUDA_MEMCPY3D boxOf(CUarray array, size_t x, size_t y, size_t z, size_t width, size_t height, bool isUpload, uint32_t* words) {
  CUDA_MEMCPY3D copy{};
  (isUpload ? copy.dstMemoryType : copy.srcMemoryType) = CU_MEMORYTYPE_ARRAY;
  (isUpload ? copy.srcMemoryType : copy.dstMemoryType) = CU_MEMORYTYPE_HOST;
  (isUpload ? copy.dstArray : copy.srcArray) = array;
  (isUpload ? copy.dstXInBytes : copy.srcXInBytes) = x * 4;
  (isUpload ? copy.dstY : copy.srcY) = y;
  (isUpload ? copy.dstZ : copy.srcZ) = z;
  copy.srcHost = copy.dstHost = words;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = width * 4;
  copy.Height = height;
  copy.Depth = 1;
  return copy;
}

// Word i of a box, row by row, has `value` in its upper half and i in its lower one. All zero for a value of 0.
inline uint32_t wordOf(uint32_t value, size_t i) { return value == 0 ? 0 : value << 16 | (i & 0xffff); }

inline CUresult fill(CUarray array, size_t x, size_t y, size_t z, size_t width, size_t height, uint32_t value) {
  std::vector<uint32_t> words(width * height);
  for (size_t i = 0; i < words.size(); ++i) words[i] = wordOf(value, i);
  const CUDA_MEMCPY3D copy = boxOf(array, x, y, z, width, height, true, words.data());
  return DRIVER(cuMemcpy3D)(&copy);
}

inline bool holds(CUarray array, size_t x, size_t y, size_t z, size_t width, size_t height, uint32_t value) {
  std::vector<uint32_t> words(width * height, 0xdeadbeef);
  const CUDA_MEMCPY3D copy = boxOf(array, x, y, z, width, height, false, words.data());
  check(DRIVER(cuMemcpy3D)(&copy), "reading an array");
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == wordOf(value, i)) continue;
    std::fprintf(stderr, "word %zu of the %zu × %zu words at (%zu, %zu, %zu) is %#x instead of %#x\n", i, width, height, x, y, z, words[i],
                 wordOf(value, i));
    return false;
  }
  return true;
}

inline CUtexObject makeTexture(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC how{};
  how.flags = CU_TRSF_READ_AS_INTEGER;
  CUtexObject texture;
  CALL(cuTexObjectCreate, &texture, &resource, &how, nullptr);
  return texture;
}
