// Queries of textures and surfaces in kernels, texel offsets, and atomic operations on a surface: instructions without CUDA C++ functions.
#include "program.h"

#include <algorithm>

constexpr unsigned width = 20, height = 12;

struct Answers {
  unsigned width, height, surfaceWidth, surfaceHeight;
  float beside[4];
};

__device__ unsigned widthOf(cudaTextureObject_t texture) {
  unsigned value;
  asm volatile("txq.width.b32 %0, [%1];" : "=r"(value) : "l"(texture));
  return value;
}
__device__ unsigned heightOf(cudaTextureObject_t texture) {
  unsigned value;
  asm volatile("txq.height.b32 %0, [%1];" : "=r"(value) : "l"(texture));
  return value;
}

// The texel at an offset of some columns and rows.
template <int Columns, int Rows>
__device__ float beside(cudaTextureObject_t texture, float x, float y) {
  float value, unused[3];
  asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], {%7, %8};"
               : "=f"(value), "=f"(unused[0]), "=f"(unused[1]), "=f"(unused[2])
               : "l"(texture), "f"(x), "f"(y), "n"(Columns), "n"(Rows));
  return value;
}

__global__ void ask(cudaTextureObject_t texture, cudaSurfaceObject_t surface, Answers* answers) {
  answers->width = widthOf(texture);
  answers->height = heightOf(texture);
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(answers->surfaceWidth) : "l"(surface));
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(answers->surfaceHeight) : "l"(surface));
  answers->beside[0] = beside<2, 1>(texture, 3.5f, 4.5f);
  answers->beside[1] = beside<-3, -4>(texture, 3.5f, 4.5f);
  answers->beside[2] = beside<7, 7>(texture, 18.5f, 10.5f);  // clamped
  answers->beside[3] = beside<-8, 0>(texture, 2.5f, 0.5f);
}

// Every thread counts in its column's element, and stores the maximum thread in the row below.
__global__ void count(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x % width) * 4;
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(surface), "r"(x), "r"(0), "r"(1) : "memory");
  asm volatile("sured.b.max.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(surface), "r"(x), "r"(1), "r"(threadIdx.x) : "memory");
  asm volatile("sured.b.add.2d.u32.zero [%0, {%1, %2}], %3;" ::"l"(surface), "r"(x), "r"(-1), "r"(1) : "memory");
}

// A float array with the elements' numbers, as a texture; and one of zeros, as a surface.
struct Images {
  cudaArray_t elements = nullptr, counters = nullptr;
  cudaTextureObject_t texture = 0;
  cudaSurfaceObject_t surface = 0;
  Images() {
    std::vector<float> values(width * height);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const std::vector<unsigned> zeros(width * height);
    const cudaChannelFormatDesc ofFloats = cudaCreateChannelDesc<float>(), ofWords = cudaCreateChannelDesc<unsigned>();
    CHECK(cudaMallocArray(&elements, &ofFloats, width, height));
    CHECK(cudaMallocArray(&counters, &ofWords, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(elements, 0, 0, values.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DToArray(counters, 0, 0, zeros.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = elements;
    cudaTextureDesc sampling{};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    resource.res.array.array = counters;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
  }
  ~Images() {
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(elements));
    CHECK(cudaFreeArray(counters));
  }
};

bool answersRight(const Images& images) {
  DeviceArray<Answers> device(1);
  ask<<<1, 1>>>(images.texture, images.surface, device);
  CHECK(cudaGetLastError());
  const Answers got = device.download()[0];
  const auto element = [](unsigned x, unsigned y) { return static_cast<float>(y * width + x); };
  return EXPECT(got.width == width) & EXPECT(got.height == height) & EXPECT(got.surfaceWidth == width) &
         EXPECT(got.surfaceHeight == height) & EXPECT(got.beside[0] == element(5, 5)) & EXPECT(got.beside[1] == element(0, 0)) &
         EXPECT(got.beside[2] == element(width - 1, height - 1)) & EXPECT(got.beside[3] == element(0, 0));
}

bool countsRight(const Images& images, unsigned rounds) {
  count<<<2, 100>>>(images.surface);
  CHECK(cudaGetLastError());
  std::vector<unsigned> got(width * height), expected(width * height);
  CHECK(cudaMemcpy2DFromArray(got.data(), width * 4, images.counters, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
  for (unsigned x = 0; x < width; ++x) expected[x] = 10 * rounds, expected[width + x] = 80 + x;
  return same("counters", got, expected);
}

int main() {
  const Images images;
  bool ok = answersRight(images) & countsRight(images, 1);

  pausePoint();

  ok &= answersRight(images) & countsRight(images, 2);
  return verdict("texture-queries", ok);
}
