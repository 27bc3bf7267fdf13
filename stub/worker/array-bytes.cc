#include "stub/worker/array-bytes.h"

#include <algorithm>
#include <vector>

namespace vgpu::stub {

namespace {

// A rectangular part of an array within one slice, and the offset of its bytes in the order of the file.
struct Part {
  uint64_t x, row, slice, width, rows, done;
};

// Calls `copy` for the parts of [offset, offset + bytes), in order: the rest of a row, whole rows, the start of a row.
template <typename Copy>
void forParts(const ArrayInfo& array, uint64_t offset, uint64_t bytes, Copy copy) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t at = offset + done, left = bytes - done, row = at / array.rowBytes;
    Part part{at % array.rowBytes, row % array.rows, row / array.rows, 0, 1, done};
    bool whole = part.x == 0 && left >= array.rowBytes;
    part.rows = whole ? std::min(left / array.rowBytes, array.rows - part.row) : 1;
    part.width = whole ? array.rowBytes : std::min(left, array.rowBytes - part.x);
    copy(part);
    done += part.width * part.rows;
  }
}

CUDA_MEMCPY3D boxOf(const Part& part) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = part.width;
  copy.Height = part.rows;
  copy.Depth = 1;
  return copy;
}

void begin(Execution& on, const CUDA_MEMCPY3D& copy) {
  require(on.driver, on.driver.cuMemcpy3DAsync_v2(&copy, on.gpu.progress.ownStream()), "copying an array");
}

}  // namespace

void readArray(Execution& on, CUarray array, const ArrayInfo& info, uint64_t offset, std::byte* out, size_t bytes) {
  forParts(info, offset, bytes, [&](const Part& part) {
    CUDA_MEMCPY3D copy = boxOf(part);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.srcXInBytes = part.x;
    copy.srcY = part.row;
    copy.srcZ = part.slice;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = out + part.done;
    copy.dstPitch = part.width;
    begin(on, copy);
  });
}

void writeArray(Execution& on, CUarray array, const ArrayInfo& info, uint64_t offset, const std::byte* in, size_t bytes) {
  std::vector<std::byte> zeros(in == nullptr ? bytes : 0);
  forParts(info, offset, bytes, [&](const Part& part) {
    CUDA_MEMCPY3D copy = boxOf(part);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = (in == nullptr ? zeros.data() : in) + part.done;
    copy.srcPitch = part.width;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.dstXInBytes = part.x;
    copy.dstY = part.row;
    copy.dstZ = part.slice;
    begin(on, copy);
  });
  if (in == nullptr) require(on.driver, on.driver.cuStreamSynchronize(on.gpu.progress.ownStream()), "copying an array");
}

}  // namespace vgpu::stub
