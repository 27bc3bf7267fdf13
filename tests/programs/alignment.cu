// The alignment of allocations: a texture may be bound to any allocation, so all are aligned as the device's textures must be, whatever
// their sizes and whatever was freed between them.
#include "program.h"

__global__ void fetch(cudaTextureObject_t texture, int* first) { *first = tex1Dfetch<int>(texture, 0); }

bool isAligned(const void* address, size_t alignment) {
  return EXPECT(reinterpret_cast<uintptr_t>(address) % alignment == 0);
}

// Reads the first element through a texture bound to the start of the allocation.
int firstByTexture(int* data, int* result) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = data;
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  resource.res.linear.sizeInBytes = sizeof(int);
  cudaTextureDesc description{};
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  fetch<<<1, 1>>>(texture, result);
  int first;
  CHECK(cudaMemcpy(&first, result, sizeof first, cudaMemcpyDeviceToHost));
  CHECK(cudaDestroyTextureObject(texture));
  return first;
}

int main() {
  int textures, pitches;
  CHECK(cudaDeviceGetAttribute(&textures, cudaDevAttrTextureAlignment, 0));
  CHECK(cudaDeviceGetAttribute(&pitches, cudaDevAttrTexturePitchAlignment, 0));
  DeviceArray<int> result(1);
  std::vector<int*> kept;
  bool ok = true;
  const size_t sizes[] = {4, 300, 512, 700, 1024, 4100, 100000};
  for (int round = 0; round < 4; ++round) {
    for (size_t bytes : sizes) {
      int *data, *between;
      CHECK(cudaMalloc(&between, 40 * round + 4));
      CHECK(round % 2 == 0 ? cudaMalloc(&data, bytes) : cudaMallocAsync(&data, bytes, cudaStreamLegacy));
      CHECK(cudaFree(between));
      const int value = static_cast<int>(kept.size()) + 1;
      CHECK(cudaMemcpy(data, &value, sizeof value, cudaMemcpyHostToDevice));
      ok &= isAligned(data, textures);
      kept.push_back(data);
    }
    if (round == 1) pausePoint();
  }
  for (size_t i = 0; i < kept.size() && ok; ++i) ok &= EXPECT(firstByTexture(kept[i], result) == static_cast<int>(i) + 1);
  for (int* data : kept) CHECK(cudaFree(data));

  for (size_t width : {1, 100, 513}) {
    void* rows;
    size_t pitch;
    CHECK(cudaMallocPitch(&rows, &pitch, width, 3));
    ok &= isAligned(rows, textures) & EXPECT(pitch >= width) & EXPECT(pitch % pitches == 0);
    CHECK(cudaFree(rows));
  }
  std::printf("alignment: %s\n", ok ? "ok" : "wrong");
  return ok ? 0 : 1;
}
