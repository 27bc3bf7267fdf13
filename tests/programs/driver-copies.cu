// The driver's copies and fills, called by name: between contexts, from and to arrays, of unaligned rows, and fills of each width, with and
// without a stream.
#include "exported-entry.h"
#include "in-session.h"

#include <algorithm>
#include <numeric>

namespace {

constexpr size_t width = 24, height = 6, count = width * height;
using Bytes = std::vector<uint8_t>;

Bytes pattern(uint8_t first) {
  Bytes values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

struct Device {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
};

// With only one GPU both devices are the same.
Device onDevice(int number) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaSetDevice(number % devices));
  CHECK(cudaFree(nullptr));
  Device made;
  const bool ok = WORKS(cuCtxGetCurrent, &made.context) && WORKS(cuMemAlloc_v2, &made.memory, count);
  return ok ? made : Device{};
}

// A copy or fill without a stream must complete before the stream, which does not wait for it, uses the result.
bool over() { return WORKS(cuStreamSynchronize, nullptr); }

bool holds(CUdeviceptr memory, const Bytes& wanted) {
  Bytes found(wanted.size());
  return WORKS(cuMemcpyDtoH_v2, found.data(), memory, found.size()) && EXPECT(found == wanted);
}

CUDA_MEMCPY3D_PEER box(const Device& to, const Device& from) {
  CUDA_MEMCPY3D_PEER copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcContext = from.context;
  copy.srcDevice = from.memory;
  copy.dstContext = to.context;
  copy.dstDevice = to.memory;
  copy.srcPitch = copy.dstPitch = width;
  copy.srcHeight = copy.dstHeight = height / 2;
  copy.WidthInBytes = width;
  copy.Height = height / 2;
  copy.Depth = 2;
  return copy;
}

bool betweenContexts(const Device& one, const Device& other, CUstream stream) {
  const Bytes first = pattern(1), second = pattern(60);
  bool ok = WORKS(cuMemcpyHtoD_v2, one.memory, first.data(), count);
  ok &= WORKS(cuMemcpyPeer, other.memory, other.context, one.memory, one.context, count) && holds(other.memory, first);
  ok &= WORKS(cuMemcpyHtoD_v2, other.memory, second.data(), count) && over();
  ok &= WORKS(cuMemcpyPeerAsync, one.memory, one.context, other.memory, other.context, count, stream);
  ok &= WORKS(cuStreamSynchronize, stream) && holds(one.memory, second);
  CUDA_MEMCPY3D_PEER copy = box(other, one);
  ok &= WORKS(cuMemcpyHtoD_v2, one.memory, first.data(), count) && WORKS(cuMemcpy3DPeer, &copy) && holds(other.memory, first);
  copy = box(one, other);
  ok &= WORKS(cuMemcpyHtoD_v2, other.memory, second.data(), count) && over() && WORKS(cuMemcpy3DPeerAsync, &copy, stream);
  ok &= WORKS(cuStreamSynchronize, stream) && holds(one.memory, second);
  // Contexts are validated although the addresses determine the device.
  if (inSession) {  // a driver dereferences the invalid handle
    const auto none = reinterpret_cast<CUcontext>(0x10);
    ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer, other.memory, nullptr, one.memory, one.context, count);
    ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer, other.memory, other.context, one.memory, none, count);
    ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeerAsync, other.memory, none, one.memory, one.context, count, stream);
  }
  return ok & GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer, 0x10, one.context, other.memory, other.context, count);
}

bool throughArrays(CUdeviceptr memory) {
  CUDA_ARRAY_DESCRIPTOR shape{width, height, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray array = nullptr;
  const Bytes values = pattern(9);
  Bytes row(values.begin(), values.begin() + width);
  bool ok = WORKS(cuArrayCreate_v2, &array, &shape) && WORKS(cuMemcpyHtoD_v2, memory, values.data(), count);
  ok &= WORKS(cuMemcpyDtoA_v2, array, 0, memory, width) && WORKS(cuMemsetD8_v2, memory, 0, count);
  ok &= WORKS(cuMemcpyAtoD_v2, memory, array, 0, width) && holds(memory, row);
  return ok & WORKS(cuArrayDestroy, array);
}

// 5 bytes of each row, from the third on.
bool ofRows(CUdeviceptr memory, CUstream stream) {
  const Bytes values = pattern(30);
  Bytes wanted(count);
  for (size_t at = 0; at < count; at += width) std::copy_n(values.begin() + at + 3, 5, wanted.begin() + at + 3);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = values.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.srcPitch = copy.dstPitch = width;
  copy.srcXInBytes = copy.dstXInBytes = 3;
  copy.WidthInBytes = 5;
  copy.Height = height;
  bool ok = WORKS(cuMemsetD8_v2, memory, 0, count) && WORKS(cuMemcpy2DUnaligned_v2, &copy) && holds(memory, wanted);
  ok &= WORKS(cuMemsetD8_v2, memory, 0, count) && over() && WORKS(cuMemcpy2DAsync_v2, &copy, stream) && WORKS(cuStreamSynchronize, stream);
  ok &= holds(memory, wanted);
  for (size_t rows : {height, size_t{1}})
    for (size_t pitch : {4, 7}) {  // less than the offset of 3 and the width of 5 bytes
      copy.Height = rows;
      copy.srcPitch = pitch;
      ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned_v2, &copy) & GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2, &copy) &
            GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2, &copy, stream);
    }
  copy.srcPitch = 8;
  ok &= WORKS(cuMemcpy2DUnaligned_v2, &copy);
  copy.WidthInBytes = 0;
  copy.srcPitch = 2;
  return ok & WORKS(cuMemcpy2DUnaligned_v2, &copy);
}

// Without a pitch rows are contiguous, and without a height slices are; 3 and 5 bytes of each of 2 rows, behind another row, in 2 slices.
bool withoutGaps(CUdeviceptr memory) {
  const Bytes values = pattern(50);
  Bytes wanted(count);
  for (size_t slice = 0; slice < 2; ++slice)
    for (size_t row = 0; row < 2; ++row)
      std::copy_n(values.begin() + static_cast<ptrdiff_t>((slice * 3 + 1 + row) * 8 + 3), 5,
                  wanted.begin() + static_cast<ptrdiff_t>((slice * 2 + row) * width));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = values.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = width;
  copy.srcXInBytes = 3;
  copy.srcY = 1;
  copy.WidthInBytes = 5;
  copy.Height = copy.Depth = 2;
  return WORKS(cuMemsetD8_v2, memory, 0, count) && WORKS(cuMemcpy3D_v2, &copy) && holds(memory, wanted);
}

// `elements` of `bytes` each in each of 4 rows of `pitch` bytes; the rest is 0.
Bytes filled(size_t pitch, size_t elements, size_t bytes, uint32_t value) {
  Bytes wanted(count);
  for (size_t row = 0; row < 4; ++row)
    for (size_t i = 0; i < elements * bytes; ++i) wanted[row * pitch + i] = static_cast<uint8_t>(value >> i % bytes * 8);
  return wanted;
}

bool fills(CUdeviceptr memory, CUstream stream) {
  bool ok = true;
  auto fresh = [&] { return WORKS(cuMemsetD8_v2, memory, 0, count) && over(); };
  auto waited = [&](const Bytes& wanted) { return WORKS(cuStreamSynchronize, stream) && holds(memory, wanted); };
  Bytes words(count);
  for (size_t i = 0; i < count; ++i) words[i] = i % 2 == 0 ? 0x34 : 0x12;
  ok &= fresh() && WORKS(cuMemsetD16_v2, memory, 0x1234, count / 2) && holds(memory, words);
  ok &= fresh() && WORKS(cuMemsetD16Async, memory, 0x1234, count / 2, stream) && waited(words);
  ok &= fresh() && WORKS(cuMemsetD2D8_v2, memory, width, 0x77, 5, 4) && holds(memory, filled(width, 5, 1, 0x77));
  ok &= fresh() && WORKS(cuMemsetD2D8Async, memory, width, 0x78, 5, 4, stream) && waited(filled(width, 5, 1, 0x78));
  ok &= fresh() && WORKS(cuMemsetD2D16_v2, memory, width, 0x4321, 5, 4) && holds(memory, filled(width, 5, 2, 0x4321));
  ok &= fresh() && WORKS(cuMemsetD2D16Async, memory, width, 0x4322, 5, 4, stream) && waited(filled(width, 5, 2, 0x4322));
  ok &= fresh() && WORKS(cuMemsetD2D32_v2, memory, width, 0x87654321, 5, 4) && holds(memory, filled(width, 5, 4, 0x87654321));
  ok &= fresh() && WORKS(cuMemsetD2D32Async, memory, width, 0x87654322, 5, 4, stream) && waited(filled(width, 5, 4, 0x87654322));
  return ok & GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2, memory + 1, 1, 4) &
         GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32_v2, memory, width, 1, 7, 4);
}

}  // namespace

int main() {
  const Device other = onDevice(1), one = onDevice(0);
  CUstream stream = nullptr;
  bool ok = WORKS(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  ok &= betweenContexts(one, other, stream) & throughArrays(one.memory);
  pausePoint();
  ok &= betweenContexts(other, one, stream) & throughArrays(one.memory) & ofRows(one.memory, stream);
  ok &= withoutGaps(one.memory) & fills(one.memory, stream);
  ok &= WORKS(cuMemFree_v2, other.memory) & WORKS(cuMemFree_v2, one.memory) & WORKS(cuStreamDestroy_v2, stream);
  return verdict("driver-copies", ok);
}
