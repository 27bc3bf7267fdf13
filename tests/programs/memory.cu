// Device and pinned memory of many sizes: allocated, freed, filled, and copied in every direction and shape, with contents kept over the
// pause point.
#include "program.h"

#include <cstring>
#include <memory>

__global__ void addOne(unsigned char* bytes, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) bytes[i] += 1;
}

using Bytes = std::vector<unsigned char>;

Bytes pattern(size_t count, unsigned seed) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    bytes[i] = seed >> 24;
  }
  return bytes;
}

bool sameBytes(const char* what, const Bytes& got, const Bytes& want) {
  const bool ok = got.size() == want.size() && std::memcmp(got.data(), want.data(), got.size()) == 0;
  if (!ok) std::fprintf(stderr, "%s: the bytes differ\n", what);
  return ok;
}

// Blocks of many sizes, every second one freed and allocated again, none overlapping another.
bool blocksKeepApart() {
  std::vector<std::unique_ptr<DeviceArray<unsigned char>>> blocks;
  std::vector<size_t> sizes;
  for (size_t size = 1; size <= (4u << 20); size = size * 2 + size % 7) sizes.push_back(size);
  for (size_t size : sizes) blocks.push_back(std::make_unique<DeviceArray<unsigned char>>(size));
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i] = nullptr;
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i] = std::make_unique<DeviceArray<unsigned char>>(sizes[i]);
  for (size_t i = 0; i < blocks.size(); ++i) CHECK(cudaMemset(*blocks[i], int(i + 1), sizes[i]));
  bool ok = true;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ok &= EXPECT(reinterpret_cast<uintptr_t>(static_cast<unsigned char*>(*blocks[i])) % 256 == 0) &
          sameBytes("filled block", blocks[i]->download(), Bytes(sizes[i], i + 1));
  }
  return ok;
}

// Blocks whose sizes are not whole megabytes: each crosses a boundary between two pieces of device memory.
class CrossingBlocks {
 public:
  CrossingBlocks() {
    for (unsigned char*& block : blocks) CHECK(cudaMalloc(&block, bytes));
    CHECK(cudaFree(blocks.front()));
    blocks.erase(blocks.begin());
    for (size_t i = 0; i < blocks.size(); ++i) CHECK(cudaMemset(blocks[i], int(i + 1), bytes));
  }
  ~CrossingBlocks() {
    for (unsigned char* block : blocks) CHECK(cudaFree(block));
  }
  bool areHeld() const {
    bool ok = true;
    Bytes back(bytes);
    for (size_t i = 0; i < blocks.size(); ++i) {
      CHECK(cudaMemcpy(back.data(), blocks[i], bytes, cudaMemcpyDeviceToHost));
      ok &= sameBytes("crossing block", back, Bytes(bytes, i + 1));
    }
    return ok;
  }

 private:
  static constexpr size_t bytes = 3000000;
  std::vector<unsigned char*> blocks = std::vector<unsigned char*>(24);
};

bool everyKindCopies() {
  const Bytes bytes = pattern(10007, 1);
  DeviceArray<unsigned char> a(bytes.size()), b(bytes.size());
  Bytes back(bytes.size()), again(bytes.size());
  CHECK(cudaMemcpy(a, bytes.data(), bytes.size(), cudaMemcpyDefault));
  CHECK(cudaMemcpy(b, a, bytes.size(), cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy(back.data(), b, bytes.size(), cudaMemcpyDefault));
  CHECK(cudaMemcpy(again.data(), back.data(), bytes.size(), cudaMemcpyHostToHost));
  CHECK(cudaMemcpy(b + 1, bytes.data(), 3, cudaMemcpyHostToDevice));  // unaligned, and shorter than a word
  return sameBytes("copied back", again, bytes) & EXPECT(b.download()[3] == bytes[2]) &
         EXPECT(b.download()[4] == bytes[4]);
}

bool rectanglesCopy() {
  const size_t width = 301, height = 77, hostPitch = 320;
  const Bytes source = pattern(hostPitch * height, 2);
  unsigned char* device;
  size_t pitch;
  CHECK(cudaMallocPitch(&device, &pitch, width, height));
  CHECK(cudaMemset2D(device, pitch, 0xee, width, height));
  CHECK(cudaMemcpy2D(device + pitch, pitch, source.data(), hostPitch, width, height - 1, cudaMemcpyHostToDevice));
  Bytes back(hostPitch * height, 0x11), want(hostPitch * height, 0x11);
  CHECK(cudaMemcpy2D(back.data(), hostPitch, device, pitch, width, height, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));
  std::memset(want.data(), 0xee, width);
  for (size_t row = 1; row < height; ++row) {
    std::memcpy(&want[row * hostPitch], &source[(row - 1) * hostPitch], width);
  }
  return EXPECT(pitch >= width) & sameBytes("rectangle", back, want);
}

// 72 MiB of pageable memory, both ways.
bool largeCopies() {
  const Bytes source = pattern(72 << 20, 3);
  DeviceArray<unsigned char> device(source);
  return sameBytes("large copy", device.download(), source);
}

int main() {
  const Bytes kept = pattern(5 << 20, 4);
  DeviceArray<unsigned char> device(kept);
  const CrossingBlocks crossing;
  unsigned char *pinned, *mapped, *mappedOnDevice;
  const size_t pinnedBytes = 1 << 20;
  CHECK(cudaHostAlloc(&pinned, pinnedBytes, cudaHostAllocDefault));
  CHECK(cudaHostAlloc(&mapped, pinnedBytes, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&mappedOnDevice, mapped, 0));
  const Bytes start = pattern(pinnedBytes, 5);
  std::memcpy(mapped, start.data(), pinnedBytes);
  addOne<<<blocksFor(pinnedBytes, 512), 512>>>(mappedOnDevice, pinnedBytes);
  CHECK(cudaMemcpyAsync(pinned, device, pinnedBytes, cudaMemcpyDeviceToHost));
  bool ok = blocksKeepApart() & everyKindCopies() & rectanglesCopy();
  pausePoint();
  ok &= largeCopies() & sameBytes("held over the pause", device.download(), kept) & crossing.areHeld();
  addOne<<<blocksFor(pinnedBytes, 512), 512>>>(mappedOnDevice, pinnedBytes);
  CHECK(cudaDeviceSynchronize());

  Bytes wantMapped = start;
  for (unsigned char& byte : wantMapped) byte += 2;
  ok &= sameBytes("pinned", {pinned, pinned + pinnedBytes}, {kept.begin(), kept.begin() + pinnedBytes}) &
        sameBytes("mapped", {mapped, mapped + pinnedBytes}, wantMapped);
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFreeHost(mapped));
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  return verdict("memory", ok & EXPECT(free <= total));
}
