// Arrays, with the textures and surfaces through which kernels use them.
#pragma once

#include "../tiles.h"
#include "place.h"

namespace families {

__global__ void fetch(cudaTextureObject_t texture, uint32_t* data, int width, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = tex2D<uint32_t>(texture, i % width, i / width);
}

// Adds `value` to all elements of a volume and of a level of another array.
__global__ void addIn(cudaSurfaceObject_t volume, cudaSurfaceObject_t level, uint32_t value) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y, at = x * sizeof(uint32_t);
  surf3Dwrite(surf3Dread<uint32_t>(volume, at, y, z) + value, volume, at, y, z);
  if (z == 0) surf2Dwrite(surf2Dread<uint32_t>(level, at, y) + value, level, at, y);
}

inline bool textures(const Place& place) {
  const int width = 16, height = place.count() / width + 1;
  Numbers texels(width * height);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = place.seed + static_cast<uint32_t>(i) * 3;
  DeviceArray<uint32_t> data(place.count());
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uint32_t>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, width, height));
  CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, texels.data(), width * sizeof(uint32_t), width * sizeof(uint32_t), height,
                                 cudaMemcpyHostToDevice, place.stream));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc reading{};
  reading.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &reading, nullptr));
  fetch<<<place.blocks(), 128, 0, place.stream>>>(texture, data, width, place.count());
  const bool ok = place.holds("textures", data, 0);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  return ok;
}

inline cudaSurfaceObject_t surfaceOver(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

// A volume and a level of a mipmapped array, both changed by a kernel.
inline bool surfaces(const Place& place) {
  constexpr int width = 8, height = 4, slices = 3, all = width * height * slices;
  Numbers values(all), got(all), level(width * height), gotLevel(width * height);
  for (int i = 0; i < all; ++i) values[i] = place.seed + static_cast<uint32_t>(i) * 5;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uint32_t>();
  const cudaExtent extent = make_cudaExtent(width, height, slices);
  cudaArray_t volume, second;
  cudaMipmappedArray_t levels;
  CHECK(cudaMalloc3DArray(&volume, &format, extent, cudaArraySurfaceLoadStore));
  CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(2 * width, 2 * height, 0), 2, cudaArraySurfaceLoadStore));
  CHECK(cudaGetMipmappedArrayLevel(&second, levels, 1));
  cudaMemcpy3DParms in{};
  in.srcPtr = make_cudaPitchedPtr(values.data(), width * sizeof(uint32_t), width, height);
  in.dstArray = volume;
  in.extent = extent;
  in.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3DAsync(&in, place.stream));
  const size_t row = width * sizeof(uint32_t);
  CHECK(cudaMemcpy2DToArrayAsync(second, 0, 0, values.data(), row, row, height, cudaMemcpyHostToDevice, place.stream));
  const cudaSurfaceObject_t ofVolume = surfaceOver(volume), ofLevel = surfaceOver(second);
  addIn<<<dim3(height, slices), width, 0, place.stream>>>(ofVolume, ofLevel, 7);
  CHECK(cudaGetLastError());
  cudaMemcpy3DParms out{};
  out.srcArray = volume;
  out.dstPtr = make_cudaPitchedPtr(got.data(), width * sizeof(uint32_t), width, height);
  out.extent = extent;
  out.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3DAsync(&out, place.stream));
  CHECK(cudaMemcpy2DFromArrayAsync(gotLevel.data(), row, second, 0, 0, row, height, cudaMemcpyDeviceToHost, place.stream));
  place.wait();
  for (uint32_t& value : values) value += 7;
  std::copy(values.begin(), values.begin() + width * height, level.begin());
  const bool ok = same("volume", got, values) & same("level", gotLevel, level);
  CHECK(cudaDestroySurfaceObject(ofVolume));
  CHECK(cudaDestroySurfaceObject(ofLevel));
  CHECK(cudaFreeMipmappedArray(levels));
  CHECK(cudaFreeArray(volume));
  return ok;
}

// A sparse array: one tile gets memory of the program, is written and read, and loses it; another tile never has any.
inline bool sparseArrays(const Place& place) {
  constexpr unsigned tile = 128;  // elements of 4 bytes, in both directions
  static Few few;                 // the smallest pool for tiles has two megabytes
  const Few::Entered entered(few);
  const CUmemGenericAllocationHandle memory = makePool(2 * MiB);
  const CUarray array = makeArray(2 * tile, tile, 0, CUDA_ARRAY3D_SPARSE);
  const Numbers values(2 * tile * tile, place.seed), none(values.size());
  Numbers left = values;  // data written to the tile without memory is lost
  for (size_t i = 0; i < left.size(); ++i)
    if (i % (2 * tile) >= tile) left[i] = 0;
  auto mapTile = [&](CUmemGenericAllocationHandle to) {
    CUarrayMapInfo info = change(array, {0, 0, 0, 0, 0, tile, tile, 1}, to);
    CALL(cuMemMapArrayAsync, &info, 1, place.stream);
  };
  auto move = [&](Numbers& words, bool isUpload) {
    const CUDA_MEMCPY3D copy = boxOf(array, 0, 0, 0, 2 * tile, tile, isUpload, words.data());
    CALL(cuMemcpy3DAsync, &copy, place.stream);
    place.wait();
  };
  Numbers words = values;
  mapTile(memory);
  move(words, true);
  move(words, false);
  bool ok = same("sparse array", words, left);
  mapTile(0);
  move(words, false);
  ok &= same("sparse array without memory", words, none);
  CALL(cuArrayDestroy, array);
  CALL(cuMemRelease, memory);
  return ok;
}

}  // namespace families
