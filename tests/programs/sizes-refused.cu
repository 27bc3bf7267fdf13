// Sizes and offsets beyond the address space: allocations, fills and copies with them are refused at the call, even if their products
// overflow to valid values, and nothing is written.
#include <cstdint>

#include "driver-entry.h"

namespace {

constexpr size_t all = SIZE_MAX, half = size_t{1} << 63;
char* memory = nullptr;

bool allocationsAreRefused() {
  void* place = nullptr;
  size_t pitch = 0;
  cudaPitchedPtr box{};
  bool ok = true;
  for (size_t width : {all, all - 100, half, half + 1}) {
    ok &= EXPECT(cudaMallocPitch(&place, &pitch, width, 1) != cudaSuccess);
    ok &= EXPECT(cudaMalloc3D(&box, make_cudaExtent(width, 1, 1)) != cudaSuccess);
  }
  ok &= EXPECT(cudaMallocPitch(&place, &pitch, 512, all / 256) != cudaSuccess);
  ok &= EXPECT(cudaMalloc3D(&box, make_cudaExtent(64, size_t{1} << 40, size_t{1} << 40)) != cudaSuccess);
  cudaGetLastError();
  return ok;
}

bool fillsAreRefused() {
  bool ok = EXPECT_ERROR(cudaMemset2D(memory, half, 1, 1, 3), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMemset2D(memory, size_t{1} << 33, 1, 1, (size_t{1} << 31) + 1), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMemset2D(memory, 64, 1, 1, half), cudaErrorInvalidValue);
  for (size_t pitch : {size_t{1} << 40, size_t{1} << 32}) {
    const cudaPitchedPtr box = make_cudaPitchedPtr(memory, pitch, 1, pitch);
    ok &= EXPECT_ERROR(cudaMemset3D(box, 1, make_cudaExtent(1, pitch, pitch)), cudaErrorInvalidValue);
    ok &= EXPECT_ERROR(cudaMemset3D(box, 1, make_cudaExtent(1, 1, 4)), cudaErrorInvalidValue);
  }
  cudaGetLastError();
  return ok;
}

cudaMemcpy3DParms copyOf(size_t y, size_t z, size_t height, size_t depth) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = copy.dstPtr = make_cudaPitchedPtr(memory, 64, 64, height);
  copy.dstPtr.ptr = memory + 2048;
  copy.srcPos = make_cudaPos(0, y, z);
  copy.extent = make_cudaExtent(4, 2, depth);
  copy.kind = cudaMemcpyDeviceToDevice;
  return copy;
}

bool copiesAreRefused() {
  bool ok = true;
  const cudaMemcpy3DParms wrong[] = {copyOf(size_t{1} << 42, 0, 4, 1), copyOf(0, size_t{1} << 40, 4, 1), copyOf(size_t{1} << 58, 0, 4, 1), copyOf(all, 0, 4, 1),
                                     copyOf(0, size_t{1} << 56, 4, 1), copyOf(0, 0, half, 2),       copyOf(0, 0, 1, 2)};
  for (auto& copy : wrong) ok &= EXPECT_ERROR(cudaMemcpy3D(&copy), cudaErrorInvalidValue);
  char pageable[64] = "";
  ok &= EXPECT_ERROR(cudaMemcpy2D(memory, 64, pageable, 64, 4, 1, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  cudaGetLastError();
  return ok;
}

}  // namespace

int main() {
  CHECK(cudaMalloc(&memory, 4096));
  CHECK(cudaMemset(memory, 7, 4096));
  bool ok = allocationsAreRefused() & fillsAreRefused() & copiesAreRefused();
  std::vector<char> now(4096);
  CHECK(cudaMemcpy(now.data(), memory, now.size(), cudaMemcpyDeviceToHost));
  for (char each : now) ok &= each == 7;
  return verdict("sizes-refused", ok & EXPECT(cudaDeviceSynchronize() == cudaSuccess));
}
