// Copies of rows and slices between host memory, device memory and arrays: all entries cuMemcpy2D*, 3D* and *A* use one copy operation.
#include <algorithm>
#include <array>
#include <vector>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/driver/interconnect.h"
#include "stub/emulator/memory/array.h"
#include "stub/emulator/memory/copy.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t mostBytes = uint64_t{1} << 47;

// One side of a copy: `at` gives the offset of row `y` of slice `z` in the span.
struct Side {
  MemorySpan span;
  std::shared_ptr<const TileLayout> tiles;  // for an array without a span: the start of the copy, x in bytes
  std::array<uint64_t, 3> first{};
  uint64_t start = 0, pitch = 0, slicePitch = 0;
  std::shared_ptr<Array> array;
  uint64_t at(uint64_t y, uint64_t z) const { return start + z * slicePitch + y * pitch; }
  Side current() const {
    Side side = *this;
    side.span = span.current();
    return side;
  }
};

struct Place {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  uint64_t xBytes, y, z, pitch, height;
};

uint64_t product(uint64_t a, uint64_t b) {
  require(b == 0 || a <= mostBytes / b);
  return a * b;
}

Side arraySide(Context& context, const Place& place, const CUDA_MEMCPY3D& copy) {
  std::shared_ptr<Array> array = context.driver.arrays.get(place.array);
  require(array->planes.empty());
  const bool isWhole = place.xBytes % array->element == 0 && copy.WidthInBytes % array->element == 0;
  require(isWhole || !isBlock(array->format->coding));
  require(place.xBytes <= array->rowBytes && copy.WidthInBytes <= array->rowBytes - place.xBytes);
  require(place.y <= array->rows && copy.Height <= array->rows - place.y);
  require(place.z <= array->slices && copy.Depth <= array->slices - place.z);
  if (array->tiles && !array->tiling->hasMemory) refuse(CUDA_ERROR_LAUNCH_FAILED);
  if (array->tiles)
    return {.tiles = array->tiles, .first = {place.xBytes, place.y, place.z}, .array = array};
  return {.span = MemorySpan::ofDevice(context.driver.space, array->address, array->bytes(), everyDevice),
          .start = (place.z * array->rows + place.y) * array->rowBytes + place.xBytes,
          .pitch = array->rowBytes,
          .slicePitch = array->rowBytes * array->rows,
          .array = array};
}

Side linearSide(Context& context, const Place& place, const CUDA_MEMCPY3D& copy, uint64_t devices) {
  // A pitch or height of zero means rows without gaps (cuda.h).
  uint64_t pitch = place.pitch ? place.pitch : copy.WidthInBytes + place.xBytes;
  uint64_t height = place.height ? place.height : copy.Height + place.y;
  require(pitch <= mostBytes && place.xBytes <= pitch && copy.WidthInBytes <= pitch - place.xBytes);
  require(copy.Depth <= 1 || copy.Height <= height);
  uint64_t slicePitch = product(pitch, height);
  uint64_t start = product(place.z, slicePitch) + product(place.y, pitch) + place.xBytes;
  uint64_t bytes = product(copy.Depth - 1, slicePitch) + product(copy.Height - 1, pitch) + copy.WidthInBytes;
  uint64_t base = place.type == CU_MEMORYTYPE_HOST ? asNumber(place.host) : place.device;
  require(base != 0);
  const AddressSpace& space = context.driver.space;
  MemorySpan span = place.type == CU_MEMORYTYPE_DEVICE ? MemorySpan::ofDevice(space, base + start, bytes, devices)
                                                       : MemorySpan::ofEither(space, base + start, bytes, devices);
  return {.span = std::move(span), .pitch = pitch, .slicePitch = slicePitch};
}

Side sideOf(Context& context, const Place& place, const CUDA_MEMCPY3D& copy, uint64_t devices) {
  switch (place.type) {
    case CU_MEMORYTYPE_ARRAY:
      return arraySide(context, place, copy);
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return linearSide(context, place, copy, devices);
  }
  refuse(CUDA_ERROR_INVALID_VALUE);
}

// Calls each(memory, bytes) for the parts of a row; memory is nullptr for unmapped tiles of a sparse array.
template <class Each>
void forParts(const Side& side, uint64_t y, uint64_t z, uint64_t width, Each each) {
  if (!side.tiles) return side.span.forEach(side.at(y, z), width, each);
  for (uint64_t done = 0; done < width;) {
    const uint64_t x = side.first[0] + done, within = x % side.tiles->unitBytes;
    const auto run = side.tiles->runAt(x / side.tiles->unitBytes, side.first[1] + y, side.first[2] + z);
    const uint64_t bytes = std::min(run.bytes - within, width - done);
    each(run.at ? run.at + within : nullptr, bytes);
    done += bytes;
  }
}

// Unmapped tiles of a sparse array read as zeros, and ignore writes.
void copyRowOfTiles(const Side& to, const Side& from, uint64_t y, uint64_t z, uint64_t width) {
  std::vector<std::byte> row(width);
  std::byte* at = row.data();
  forParts(from, y, z, width, [&](const std::byte* memory, uint64_t bytes) {
    if (memory) std::copy_n(memory, bytes, at);
    at += bytes;
  });
  at = row.data();
  forParts(to, y, z, width, [&](std::byte* memory, uint64_t bytes) {
    if (memory) std::copy_n(at, bytes, memory);
    at += bytes;
  });
}

struct Plan {
  Operation operation;
  bool pageable = false, deviceOnly = false;
};

// `devices`: one of them must have access to the physical memory in the copy.
Plan planOf(Context& context, const CUDA_MEMCPY3D& copy, uint64_t devices) {
  require(copy.srcLOD == 0 && copy.dstLOD == 0);
  Side from = sideOf(context,
                     {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray, copy.srcXInBytes, copy.srcY,
                      copy.srcZ, copy.srcPitch, copy.srcHeight},
                     copy, devices);
  Side to = sideOf(context,
                   {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray, copy.dstXInBytes, copy.dstY,
                    copy.dstZ, copy.dstPitch, copy.dstHeight},
                   copy, devices);
  require(!to.span.isReadOnly());
  Plan plan{.pageable = from.span.pageable() || to.span.pageable(),
            .deviceOnly = (from.array || from.span.onDevice()) && (to.array || to.span.onDevice())};
  uint64_t width = copy.WidthInBytes, height = copy.Height, depth = copy.Depth;
  const uint64_t devicesOfEnds = to.span.deviceBit() | from.span.deviceBit();
  Route route(to.span, from.span);
  Weight weight = route.limited() ? Weight::heavy : weightOf(width * height * depth);
  plan.operation = {.weight = weight,
                    .action =
                        [from = std::move(from), to = std::move(to), route, width, height, depth] {
                          route.carry(width * height * depth);
                          const Side target = to.current(), source = from.current();
                          for (uint64_t z = 0; z < depth; ++z) {
                            for (uint64_t y = 0; y < height; ++y) {
                              if (target.tiles || source.tiles)
                                copyRowOfTiles(target, source, y, z, width);
                              else
                                copyBytes(target.span, target.at(y, z), source.span, source.at(y, z), width);
                            }
                          }
                          return Outcome::finished;
                        },
                    .type = CU_GRAPH_NODE_TYPE_MEMCPY,
                    .description = std::make_shared<const CUDA_MEMCPY3D>(copy),
                    .devices = devicesOfEnds};
  return plan;
}

CUresult copy3d(Waiting waiting, const CUDA_MEMCPY3D& copy, CUstream handle, bool asPeers = false) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return;
    Plan plan = planOf(context, copy, asPeers ? everyDevice : context.device.bit());
    if (waiting == Waiting::sync) refuseDuringCapture(context.driver);
    bool wait = (plan.pageable || (waiting == Waiting::sync && !plan.deviceOnly)) && !stream->capturing();
    if (wait) {
      stream->run(std::move(plan.operation));
    } else {
      stream->submit(std::move(plan.operation));
    }
  });
}

// The fields that all versions of the descriptor have.
template <class Descriptor>
CUDA_MEMCPY3D common(const Descriptor& given) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = given.srcXInBytes;
  copy.srcY = given.srcY;
  copy.srcMemoryType = given.srcMemoryType;
  copy.srcHost = given.srcHost;
  copy.srcDevice = given.srcDevice;
  copy.srcArray = given.srcArray;
  copy.srcPitch = given.srcPitch;
  copy.dstXInBytes = given.dstXInBytes;
  copy.dstY = given.dstY;
  copy.dstMemoryType = given.dstMemoryType;
  copy.dstHost = given.dstHost;
  copy.dstDevice = given.dstDevice;
  copy.dstArray = given.dstArray;
  copy.dstPitch = given.dstPitch;
  copy.WidthInBytes = given.WidthInBytes;
  copy.Height = given.Height;
  return copy;
}

CUDA_MEMCPY3D deepened(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D copy = common(flat);
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D withoutPeers(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D copy = common(peer);
  copy.srcZ = peer.srcZ;
  copy.srcLOD = peer.srcLOD;
  copy.srcHeight = peer.srcHeight;
  copy.dstZ = peer.dstZ;
  copy.dstLOD = peer.dstLOD;
  copy.dstHeight = peer.dstHeight;
  copy.Depth = peer.Depth;
  return copy;
}

// One end of a one-dimensional copy from or to an array.
struct End {
  CUmemorytype type;
  uint64_t address = 0;
  CUarray array = nullptr;
  size_t offset = 0;
};

CUresult copyRow(Waiting waiting, const End& to, const End& from, size_t bytes, CUstream stream) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from.type;
  copy.srcDevice = from.address;
  copy.srcHost = asHostPointer(from.address);
  copy.srcArray = from.array;
  copy.srcXInBytes = from.offset;
  copy.dstMemoryType = to.type;
  copy.dstDevice = to.address;
  copy.dstHost = asHostPointer(to.address);
  copy.dstArray = to.array;
  copy.dstXInBytes = to.offset;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy3d(waiting, copy, stream);
}

End inHost(const void* pointer) { return {.type = CU_MEMORYTYPE_HOST, .address = asNumber(pointer)}; }
End inDevice(CUdeviceptr address) { return {.type = CU_MEMORYTYPE_DEVICE, .address = address}; }
End inArray(CUarray array, size_t offset) { return {.type = CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset}; }

}  // namespace

Operation copy3dOperation(Context& context, const CUDA_MEMCPY3D& copy) { return planOf(context, copy, context.device.bit()).operation; }

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy ? copy3d(Waiting::sync, deepened(*copy), nullptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return cuMemcpy2D_v2(copy); }

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy ? copy3d(Waiting::async, deepened(*copy), stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copy ? copy3d(Waiting::sync, *copy, nullptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy ? copy3d(Waiting::async, *copy, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return copy ? copy3d(Waiting::sync, withoutPeers(*copy), nullptr, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copy ? copy3d(Waiting::async, withoutPeers(*copy), stream, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) {
  return copyRow(Waiting::sync, inArray(to, offset), inHost(from), bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) {
  return copyRow(Waiting::sync, inHost(to), inArray(from, offset), bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  return copyRow(Waiting::async, inArray(to, offset), inHost(from), bytes, stream);
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  return copyRow(Waiting::async, inHost(to), inArray(from, offset), bytes, stream);
}

CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return copyRow(Waiting::sync, inArray(to, offset), inDevice(from), bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return copyRow(Waiting::sync, inDevice(to), inArray(from, offset), bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray to, size_t toOffset, CUarray from, size_t fromOffset, size_t bytes) {
  return copyRow(Waiting::sync, inArray(to, toOffset), inArray(from, fromOffset), bytes, nullptr);
}
