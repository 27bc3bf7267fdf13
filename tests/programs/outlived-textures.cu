// Textures and surfaces that outlive their resources: arrays are destroyed and memory is freed before the objects, which can then only be
// destroyed, as CUDA allows. Over the pause each keeps its handle, and so do objects made after it, which are used.
#include "program.h"

#include <numeric>

constexpr int width = 32, height = 8, elements = width * height;

__global__ void readAll(const cudaTextureObject_t* textures, int* array, int* row) {
  const int x = threadIdx.x, y = blockIdx.x;
  array[y * width + x] = tex2D<int>(textures[0], x, y);
  row[y * width + x] = tex1Dfetch<int>(textures[1], y * width + x);
}

cudaTextureObject_t textureOver(const cudaResourceDesc& resource) {
  cudaTextureDesc how{};
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  return texture;
}

cudaResourceDesc over(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaResourceDesc over(cudaMipmappedArray_t mipmap) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmap;
  return resource;
}

cudaResourceDesc overRow(int* memory) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  resource.res.linear.sizeInBytes = elements * sizeof(int);
  return resource;
}

cudaResourceDesc overRows(int* memory, size_t pitch) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {memory, cudaCreateChannelDesc<int>(), width, height, pitch};
  return resource;
}

cudaArray_t makeArray() {
  const auto format = cudaCreateChannelDesc<int>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
  return array;
}

std::vector<int> valuesFrom(int first) {
  std::vector<int> values(elements);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Objects whose resources have been destroyed.
struct Outlived {
  cudaTextureObject_t array, mipmap, level, row, rows;
  cudaSurfaceObject_t surface;

  Outlived() {
    const auto format = cudaCreateChannelDesc<int>();
    const cudaArray_t whole = makeArray();
    cudaMipmappedArray_t levels;
    CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(width, height, 0), 2));
    cudaArray_t second;
    CHECK(cudaGetMipmappedArrayLevel(&second, levels, 1));
    int *memory, *pitched;
    size_t pitch;
    CHECK(cudaMalloc(&memory, elements * sizeof(int)));
    CHECK(cudaMallocPitch(&pitched, &pitch, width * sizeof(int), height));
    array = textureOver(over(whole));
    mipmap = textureOver(over(levels));
    level = textureOver(over(second));
    row = textureOver(overRow(memory));
    rows = textureOver(overRows(pitched, pitch));
    const cudaResourceDesc resource = over(whole);
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    CHECK(cudaFreeArray(whole));
    CHECK(cudaFreeMipmappedArray(levels));
    CHECK(cudaFree(memory));
    CHECK(cudaFree(pitched));
  }

  void destroy() {
    for (const cudaTextureObject_t texture : {array, mipmap, level, row, rows}) CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
  }
};

// An array and memory with values, and the textures over them that kernels use.
struct Scene {
  cudaArray_t array = makeArray();
  DeviceArray<int> memory{elements};
  std::vector<cudaTextureObject_t> made;
  DeviceArray<cudaTextureObject_t> textures{2};

  explicit Scene(int first) : first(first) {
    memory.upload(valuesFrom(-first));
    const auto values = valuesFrom(first);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values.data(), width * sizeof(int), width * sizeof(int), height, cudaMemcpyHostToDevice));
    made = {textureOver(over(array)), textureOver(overRow(memory))};
    textures.upload(made);
  }
  ~Scene() {
    for (const cudaTextureObject_t texture : made) CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
  }
  bool isRight() const {
    DeviceArray<int> fromArray(elements), fromRow(elements);
    readAll<<<height, width>>>(textures, fromArray, fromRow);
    CHECK(cudaGetLastError());
    return same("array", fromArray.download(), valuesFrom(first)) & same("row", fromRow.download(), valuesFrom(-first));
  }

 private:
  const int first;
};

int main() {
  Outlived outlived;
  // The memory under them is returned to the device, so that it is unmapped.
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemPoolTrimTo(pool, 0));
  Scene scene(1000);
  bool ok = scene.isRight();
  pausePoint();
  ok &= scene.isRight();
  outlived.destroy();
  Scene another(5000);
  ok &= another.isRight() & scene.isRight();
  for (const cudaTextureObject_t each : another.made) ok &= EXPECT(each != scene.made[0] && each != scene.made[1]);
  return verdict("outlived-textures", ok);
}
