// Arrays of several shapes, with surfaces and textures over them whose handles are stored in device memory.
#pragma once

#include "memory.h"

namespace history {

enum class Shape { line, image, volume, layers };
struct Extent {
  Shape shape;
  int width, height, depth;  // at least 1 each
  __host__ __device__ int elements() const { return width * height * depth; }
};

__global__ void turnElements(const cudaSurfaceObject_t* surface, Extent extent, uint32_t by) {
  for (int i = threadIdx.x; i < extent.elements(); i += blockDim.x) {
    const int x = i % extent.width * 4, y = i / extent.width % extent.height, z = i / extent.width / extent.height;
    switch (extent.shape) {
      case Shape::line: surf1Dwrite(surf1Dread<uint32_t>(*surface, x) * by + i, *surface, x); break;
      case Shape::image: surf2Dwrite(surf2Dread<uint32_t>(*surface, x, y) * by + i, *surface, x, y); break;
      case Shape::volume: surf3Dwrite(surf3Dread<uint32_t>(*surface, x, y, z) * by + i, *surface, x, y, z); break;
      case Shape::layers: surf2DLayeredwrite(surf2DLayeredread<uint32_t>(*surface, x, y, z) * by + i, *surface, x, y, z); break;
    }
  }
}

__global__ void readElements(const cudaTextureObject_t* texture, Extent extent, uint32_t* out) {
  for (int i = threadIdx.x; i < extent.elements(); i += blockDim.x) {
    const int x = i % extent.width, y = i / extent.width % extent.height, z = i / extent.width / extent.height;
    switch (extent.shape) {
      case Shape::line: out[i] = tex1D<uint32_t>(*texture, x); break;
      case Shape::image: out[i] = tex2D<uint32_t>(*texture, x, y); break;
      case Shape::volume: out[i] = tex3D<uint32_t>(*texture, x, y, z); break;
      case Shape::layers: out[i] = tex2DLayered<uint32_t>(*texture, x, y, z); break;
    }
  }
}

class Array : public Object {
 public:
  // An array of its own, or a level of a mipmapped one.
  Array(World& world, int device, Extent extent, cudaArray_t level = nullptr)
      : world(world), device(device), extent(extent), isOwner(level == nullptr), array(level), slot(world.pickSlot(device)),
        wanted(extent.elements()) {
    world.enter(slot);
    const auto format = cudaCreateChannelDesc<uint32_t>();
    const unsigned flags = cudaArraySurfaceLoadStore | (extent.shape == Shape::layers ? cudaArrayLayered : 0);
    if (isOwner) CHECK(cudaMalloc3DArray(&array, &format, asMade(), flags));
    handles = makeDeviceMemory(world, device, 2 * sizeof(uint64_t));
    read = makeDeviceMemory(world, device, extent.elements() * sizeof(uint32_t));
    upload();
  }
  ~Array() override {
    world.wait(slot);
    if (texture != 0) CHECK(cudaDestroyTextureObject(texture));
    if (surface != 0) CHECK(cudaDestroySurfaceObject(surface));
    if (isOwner) CHECK(cudaFreeArray(array));
  }

  void act() override {
    const int inSlot = world.pickSlot(device);
    switch (world.pick(5)) {
      case 0: return upload();
      case 1: return remake();
      case 2: return readBack(inSlot);
      default: return turn(inSlot, world.pick(1000));
    }
  }

  bool isRight(Digest& digest) override {
    std::vector<uint32_t> got(wanted.size());
    cudaStream_t stream = use(slot);
    copy(got, false, stream);
    world.wait(slot);
    digest.add(got.data(), got.size() * sizeof(uint32_t));
    return same("array", got, wanted) && (texture == 0 || (readBack(slot), read->isRight(digest)));
  }

 private:
  cudaStream_t use(int inSlot) {
    world.order(slot, inSlot);
    slot = inSlot;
    return world.enter(inSlot);
  }
  // CUDA expects 0 for dimensions that a shape lacks.
  cudaExtent asMade() const {
    return make_cudaExtent(extent.width, extent.shape == Shape::line ? 0 : extent.height,
                           extent.depth > 1 ? extent.depth : extent.shape >= Shape::volume);
  }
  void copy(std::vector<uint32_t>& host, bool isUpload, cudaStream_t stream) {
    cudaMemcpy3DParms how{};
    how.extent = make_cudaExtent(extent.width, extent.height, extent.depth);
    const auto pointer = make_cudaPitchedPtr(host.data(), extent.width * sizeof(uint32_t), extent.width, extent.height);
    (isUpload ? how.srcPtr : how.dstPtr) = pointer;
    (isUpload ? how.dstArray : how.srcArray) = array;
    how.kind = isUpload ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3DAsync(&how, stream));
  }
  void upload() {
    cudaStream_t stream = use(slot);
    for (auto& word : wanted) word = world.pick(UINT32_MAX);
    copy(wanted, true, stream);
    world.wait(slot);
  }
  cudaResourceDesc resource() const {
    cudaResourceDesc over{};
    over.resType = cudaResourceTypeArray;
    over.res.array.array = array;
    return over;
  }
  // Destroys one of its two objects, and makes another one or none. The freed handle may be given to other objects meanwhile.
  void remake() {
    world.wait(slot);
    const cudaResourceDesc over = resource();
    if (world.oneIn(2)) {
      if (surface != 0) CHECK(cudaDestroySurfaceObject(surface));
      surface = 0;
      if (world.oneIn(2)) CHECK(cudaCreateSurfaceObject(&surface, &over));
    } else {
      if (texture != 0) CHECK(cudaDestroyTextureObject(texture));
      texture = 0;
      cudaTextureDesc how{};
      how.readMode = cudaReadModeElementType;
      if (world.oneIn(2)) CHECK(cudaCreateTextureObject(&texture, &over, &how, nullptr));
    }
    write();
  }
  void write() {
    const uint64_t both[2] = {surface, texture};
    char* target = handles->use(slot);
    CHECK(cudaMemcpyAsync(target, both, sizeof both, cudaMemcpyHostToDevice, world.enter(slot)));
  }
  void turn(int inSlot, uint32_t by) {
    cudaStream_t stream = use(inSlot);
    if (surface == 0) {
      const cudaResourceDesc over = resource();
      CHECK(cudaCreateSurfaceObject(&surface, &over));
      write();
    }
    auto* place = reinterpret_cast<cudaSurfaceObject_t*>(handles->use(inSlot));
    turnElements<<<1, 64, 0, stream>>>(place, extent, by);
    CHECK(cudaGetLastError());
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] * by + static_cast<uint32_t>(i);
  }
  void readBack(int inSlot) {
    if (texture == 0) return;
    cudaStream_t stream = use(inSlot);
    auto* place = reinterpret_cast<cudaTextureObject_t*>(handles->use(inSlot)) + 1;
    auto* out = reinterpret_cast<uint32_t*>(read->use(inSlot));
    readElements<<<1, 64, 0, stream>>>(place, extent, out);
    CHECK(cudaGetLastError());
    for (size_t i = 0; i < wanted.size(); ++i) read->setWord(i, wanted[i]);
  }

  World& world;
  const int device;
  const Extent extent;
  const bool isOwner;
  cudaArray_t array;
  int slot;
  std::vector<uint32_t> wanted;
  cudaSurfaceObject_t surface = 0;
  cudaTextureObject_t texture = 0;
  std::shared_ptr<Memory> handles, read;
};

class Mipmapped : public Object {
 public:
  Mipmapped(World& world, int device) : world(world) {
    const Extent extent{Shape::image, 4 << world.pick(3), 4 << world.pick(3), 1};
    const unsigned count = 1 + world.pick(3);
    const auto format = cudaCreateChannelDesc<uint32_t>();
    world.enter(world.pickSlot(device));
    CHECK(cudaMallocMipmappedArray(&array, &format, make_cudaExtent(extent.width, extent.height, 0), count,
                                   cudaArraySurfaceLoadStore));
    for (unsigned i = 0; i < count; ++i) {
      cudaArray_t level;
      CHECK(cudaGetMipmappedArrayLevel(&level, array, i));
      levels.push_back(
          std::make_unique<Array>(world, device, Extent{Shape::image, extent.width >> i, extent.height >> i, 1}, level));
    }
  }
  ~Mipmapped() override {
    levels.clear();
    CHECK(cudaFreeMipmappedArray(array));
  }
  void act() override { levels[world.pick(levels.size())]->act(); }
  bool isRight(Digest& digest) override {
    bool ok = true;
    for (auto& level : levels) ok &= level->isRight(digest);
    return ok;
  }

 private:
  World& world;
  cudaMipmappedArray_t array = nullptr;
  std::vector<std::unique_ptr<Array>> levels;
};

inline std::shared_ptr<Object> makeArray(World& world) {
  const int device = world.pickDevice();
  if (world.oneIn(4)) return std::make_shared<Mipmapped>(world, device);
  Extent extent{static_cast<Shape>(world.pick(4)), 1 + static_cast<int>(world.pick(40)), 1, 1};
  if (extent.shape != Shape::line) extent.height = 1 + world.pick(20);
  if (extent.shape >= Shape::volume) extent.depth = 1 + world.pick(6);
  return std::make_shared<Array>(world, device, extent);
}

}  // namespace history
