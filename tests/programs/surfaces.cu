// Surfaces: kernels write volumes, layers and levels of arrays; textures over the same arrays read them. Objects are made and destroyed in
// between, so that their handles are reused and leave gaps; some handles are stored in device memory, where only kernels see them.
// Everything is checked again after the pause.
#include "program.h"

#include <memory>

constexpr int width = 40, height = 12, slices = 5, levels = 3;
constexpr int elements = width * height * slices;

__device__ __host__ inline int valueAt(int x, int y, int z) { return 100000 * z + 1000 * y + 7 * x - 3; }

__global__ void writeVolume(cudaSurfaceObject_t surface) {
  for (int z = 0; z < slices; ++z)
    for (int y = 0; y < height; ++y) surf3Dwrite(valueAt(threadIdx.x, y, z), surface, threadIdx.x * sizeof(int), y, z);
}

__global__ void writeLayers(cudaSurfaceObject_t surface) {
  const int y = blockIdx.x, layer = blockIdx.y;
  const int value = valueAt(threadIdx.x, y, layer);
  const short2 pair = {static_cast<short>(value), static_cast<short>(-value)};
  surf2DLayeredwrite(pair, surface, threadIdx.x * sizeof(short2), y, layer);
}

__global__ void writeLevel(cudaSurfaceObject_t surface, int level) {
  surf2Dwrite(static_cast<float>(valueAt(threadIdx.x, blockIdx.x, level)), surface, threadIdx.x * sizeof(float),
              blockIdx.x);
}

// Adds one to every element, and reads outside of the array: zeros, and the nearest element.
__global__ void changeVolume(cudaSurfaceObject_t surface, int* outside) {
  const int x = threadIdx.x * sizeof(int), y = blockIdx.x, z = blockIdx.y;
  surf3Dwrite(surf3Dread<int>(surface, x, y, z) + 1, surface, x, y, z);
  if (x != 0 || y != 0 || z != 0) return;
  outside[0] = surf3Dread<int>(surface, -4, 0, 0, cudaBoundaryModeZero);
  outside[1] = surf3Dread<int>(surface, 4 * width, 0, 2, cudaBoundaryModeZero);
  outside[2] = surf3Dread<int>(surface, 4 * width + 400, height + 3, slices, cudaBoundaryModeClamp);
  surf3Dwrite(-1, surface, 0, height, 0, cudaBoundaryModeZero);
}

// Handles in device memory, for kernels.
struct Handles {
  cudaTextureObject_t volume, layers, mipmap, bytes;
};

__global__ void readAll(const Handles* handles, int* volume, int2* layers, float* top, float2* mixed) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y, i = (z * height + y) * width + x;
  volume[i] = tex3D<int>(handles->volume, x, y, z);
  const short2 pair = tex2DLayered<short2>(handles->layers, x, y, z);
  layers[i] = {pair.x, pair.y};
  if (z != 0) return;
  const float u = (x + 0.5f) / width, v = (y + 0.5f) / height;
  top[i] = tex2DLod<float>(handles->mipmap, u, v, 1);
  mixed[i] = tex2D<float2>(handles->bytes, u, v);
}

cudaResourceDesc over(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaSurfaceObject_t surfaceOver(cudaArray_t array) {
  const cudaResourceDesc resource = over(array);
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

cudaTextureObject_t textureOver(const cudaResourceDesc& resource, bool normalized, bool fractions = false) {
  cudaTextureDesc how{};
  for (cudaTextureAddressMode& mode : how.addressMode) mode = cudaAddressModeClamp;
  how.normalizedCoords = normalized;
  how.readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  how.maxMipmapLevelClamp = levels;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  return texture;
}

template <typename T>
cudaArray_t makeArray(cudaExtent extent, unsigned flags) {
  const auto format = cudaCreateChannelDesc<T>();
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  return array;
}

struct Scene {
  cudaArray_t volume = makeArray<int>(make_cudaExtent(width, height, slices), cudaArraySurfaceLoadStore);
  cudaArray_t layers =
      makeArray<short2>(make_cudaExtent(width, height, slices), cudaArraySurfaceLoadStore | cudaArrayLayered);
  cudaArray_t bytes = makeArray<uchar2>(make_cudaExtent(width, height, 0), cudaArrayDefault);
  cudaMipmappedArray_t mipmap;
  cudaSurfaceObject_t volumeSurface, layerSurface;
  DeviceArray<Handles> handles{1};

  Scene() {
    const auto floats = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocMipmappedArray(&mipmap, &floats, make_cudaExtent(width, height, 0), levels,
                                   cudaArraySurfaceLoadStore));
    // Objects that are destroyed before the pause: later ones take their handles, or leave them free.
    const cudaTextureObject_t first = textureOver(over(volume), false), second = textureOver(over(layers), false);
    volumeSurface = surfaceOver(volume);
    const cudaSurfaceObject_t third = surfaceOver(layers);
    CHECK(cudaDestroyTextureObject(first));
    cudaResourceDesc ofMipmap{};
    ofMipmap.resType = cudaResourceTypeMipmappedArray;
    ofMipmap.res.mipmap.mipmap = mipmap;
    Handles made{};
    made.mipmap = textureOver(ofMipmap, true);
    layerSurface = surfaceOver(layers);
    CHECK(cudaDestroyTextureObject(second));
    CHECK(cudaDestroySurfaceObject(third));
    made.volume = textureOver(over(volume), false);
    made.layers = textureOver(over(layers), false);
    made.bytes = textureOver(over(bytes), true, true);
    CHECK(cudaDestroyTextureObject(made.layers));  // a gap, filled again after other objects
    const cudaTextureObject_t gap = textureOver(over(bytes), false);
    made.layers = textureOver(over(layers), false);
    CHECK(cudaDestroyTextureObject(gap));
    handles.upload({made});
  }

  void write() {
    writeVolume<<<1, width>>>(volumeSurface);
    writeLayers<<<dim3(height, slices), width>>>(layerSurface);
    for (int level = 0; level < levels; ++level) {
      cudaArray_t array;
      CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
      const cudaSurfaceObject_t surface = surfaceOver(array);
      const int rows = height >> level, columns = width >> level;
      writeLevel<<<rows, columns>>>(surface, level);
      CHECK(cudaDeviceSynchronize());
      CHECK(cudaDestroySurfaceObject(surface));
    }
    std::vector<uchar2> pairs(width * height);
    for (size_t i = 0; i < pairs.size(); ++i)
      pairs[i] = {static_cast<unsigned char>(i), static_cast<unsigned char>(5 * i)};
    CHECK(cudaMemcpy2DToArray(bytes, 0, 0, pairs.data(), width * sizeof(uchar2), width * sizeof(uchar2), height,
                              cudaMemcpyHostToDevice));
  }

  // Whether textures read what surfaces wrote, plus `added` in the volume.
  bool isRight(int added) {
    DeviceArray<int> fromVolume(elements);
    DeviceArray<int2> fromLayers(elements);
    DeviceArray<float> top(width * height);
    DeviceArray<float2> mixed(width * height);
    readAll<<<dim3(height, slices), width>>>(handles, fromVolume, fromLayers, top, mixed);
    CHECK(cudaGetLastError());
    std::vector<int> expected(elements), firsts(elements), wanted(elements);
    std::vector<float> expectedTop(width * height);
    const auto pairs = fromLayers.download();
    const auto fractions = mixed.download();
    bool ok = true;
    for (int i = 0; i < elements; ++i) {
      const int x = i % width, y = i / width % height, z = i / width / height, value = valueAt(x, y, z);
      expected[i] = value + added;
      firsts[i] = pairs[i].x * 65536 + pairs[i].y;
      wanted[i] = static_cast<short>(value) * 65536 + static_cast<short>(-value);
      if (z == 0) expectedTop[i] = static_cast<float>(valueAt(x / 2, y / 2, 1));
      if (z == 0)
        ok &= fractions[i].x == static_cast<unsigned char>(i) / 255.0f &&
              fractions[i].y == static_cast<unsigned char>(5 * i) / 255.0f;
    }
    return EXPECT(ok) & same("volume", fromVolume.download(), expected) & same("layers", firsts, wanted) &
           same("level 1", top.download(), expectedTop);
  }
};

// Arrays, whole and in part, are copied to memory, to each other and back.
bool copiesAreRight(const Scene& scene, int added) {
  std::vector<int> all(elements), part(6 * 3 * 2);
  cudaMemcpy3DParms copy{};
  copy.srcArray = scene.volume;
  copy.dstPtr = make_cudaPitchedPtr(all.data(), width * sizeof(int), width, height);
  copy.extent = make_cudaExtent(width, height, slices);
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy));
  const cudaArray_t other = makeArray<int>(make_cudaExtent(10, 6, 4), cudaArrayDefault);
  cudaMemcpy3DParms between{};
  between.srcArray = scene.volume;
  between.srcPos = make_cudaPos(30, 8, 2);
  between.dstArray = other;
  between.dstPos = make_cudaPos(1, 2, 1);
  between.extent = make_cudaExtent(6, 3, 2);
  between.kind = cudaMemcpyDeviceToDevice;
  CHECK(cudaMemcpy3D(&between));
  DeviceArray<int> packed(part.size());
  cudaMemcpy3DParms out{};
  out.srcArray = other;
  out.srcPos = make_cudaPos(1, 2, 1);
  out.dstPtr = make_cudaPitchedPtr(static_cast<int*>(packed), 6 * sizeof(int), 6, 3);
  out.extent = make_cudaExtent(6, 3, 2);
  out.kind = cudaMemcpyDeviceToDevice;
  CHECK(cudaMemcpy3D(&out));
  CHECK(cudaMemcpy(part.data(), packed, part.size() * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFreeArray(other));
  bool ok = true;
  for (int i = 0; i < elements; ++i) ok &= all[i] == valueAt(i % width, i / width % height, i / width / height) + added;
  for (int i = 0; i < 36; ++i) ok &= part[i] == valueAt(30 + i % 6, 8 + i / 6 % 3, 2 + i / 18) + added;
  return EXPECT(ok);
}

int main() {
  Scene scene;
  scene.write();
  bool ok = scene.isRight(0) && copiesAreRight(scene, 0);
  DeviceArray<int> outside(3);
  changeVolume<<<dim3(height, slices), width>>>(scene.volumeSurface, outside);
  pausePoint();
  ok &= scene.isRight(1) && copiesAreRight(scene, 1);
  const int corner = valueAt(width - 1, height - 1, slices - 1), got = outside.download()[2];
  ok &= EXPECT(got == corner || got == corner + 1) && EXPECT(outside.download()[0] == 0 && outside.download()[1] == 0);
  changeVolume<<<dim3(height, slices), width>>>(scene.volumeSurface, outside);
  // New objects get handles that no other object has.
  const cudaTextureObject_t more = textureOver(over(scene.bytes), false);
  std::vector<Handles> held(1);
  CHECK(cudaMemcpy(held.data(), scene.handles, sizeof(Handles), cudaMemcpyDeviceToHost));
  for (const cudaTextureObject_t each : {held[0].volume, held[0].layers, held[0].mipmap, held[0].bytes})
    ok &= EXPECT(more != each);
  ok &= scene.isRight(2);
  for (const cudaTextureObject_t each : {more, held[0].volume, held[0].layers, held[0].mipmap, held[0].bytes})
    CHECK(cudaDestroyTextureObject(each));
  CHECK(cudaDestroySurfaceObject(scene.volumeSurface));
  CHECK(cudaDestroySurfaceObject(scene.layerSurface));
  for (cudaArray_t array : {scene.volume, scene.layers, scene.bytes}) CHECK(cudaFreeArray(array));
  CHECK(cudaFreeMipmappedArray(scene.mipmap));
  return verdict("surfaces", ok);
}
