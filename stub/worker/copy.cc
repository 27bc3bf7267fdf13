#include "stub/worker/copy.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "vgpu/api/place.h"

namespace vgpu::stub {

namespace {

using Wide = unsigned __int128;  // holds the product of a box's three sides

struct Box {
  uint64_t width, height, depth;  // bytes, rows, slices

  bool isRow() const { return height == 1 && depth == 1; }
  Wide bytes() const { return Wide{width} * height * depth; }
};

// One end as the frame describes it; both ends have the same fields.
struct Corner {
  api::Place place;
  uint64_t pitch, slice;  // memory: from row to row, from slice to slice
  uint64_t x, row, z;     // in an array; x in bytes
};

// A checked end, in the driver's terms.
struct End {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;  // HOST: in the worker's own memory
  uint64_t address = 0;
  CUarray array = nullptr;
  uint64_t x = 0, row = 0, z = 0, pitch = 0, height = 0;  // height: rows from slice to slice
};

template <typename Frame>
CUresult readBox(const Frame& p, uint64_t inFrame, Box& box) {
  box = {p.getWidth(), std::max<uint64_t>(p.getHeight(), 1), std::max<uint64_t>(p.getDepth(), 1)};
  if (box.width == 0 && box.isRow()) box.width = inFrame;
  auto isUsual = [](uint64_t side) { return side != 0 && side <= deviceArenaBytes; };
  return isUsual(box.width) && isUsual(box.height) && isUsual(box.depth) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult checkMemory(Execution& on, const Corner& corner, const Box& box, End& end) {
  uint64_t pitch = box.isRow() ? box.width : corner.pitch, slice = box.depth > 1 ? corner.slice : pitch;
  if (pitch < box.width || pitch > deviceArenaBytes) return CUDA_ERROR_INVALID_VALUE;
  if (slice > deviceArenaBytes || slice % pitch != 0) return CUDA_ERROR_INVALID_VALUE;
  Wide bytes = Wide{box.depth - 1} * slice + Wide{box.height - 1} * pitch + box.width;
  if (bytes > deviceArenaBytes || !on.ownsMemory(corner.place.value(), static_cast<uint64_t>(bytes)))
    return CUDA_ERROR_INVALID_VALUE;
  end.address = corner.place.value();
  end.pitch = pitch;
  end.height = box.depth > 1 ? slice / pitch : box.height;
  return CUDA_SUCCESS;
}

CUresult checkArray(Execution& on, const Corner& corner, const Box& box, End& end) {
  uint64_t handle = corner.place.value();
  end.array = fromWire<CUarray>(on.handles.get(api::Kind::ARRAY, handle));
  auto info = on.session.of(handleDevice(handle)).arrays.find(handle);
  auto fits = [](uint64_t at, uint64_t count, uint64_t all) { return at <= all && count <= all - at; };
  if (!info || !fits(corner.x, box.width, info->rowBytes) || !fits(corner.row, box.height, info->rows) ||
      !fits(corner.z, box.depth, info->slices))
    return CUDA_ERROR_INVALID_VALUE;
  end.type = CU_MEMORYTYPE_ARRAY;
  end.x = corner.x;
  end.row = corner.row;
  end.z = corner.z;
  return CUDA_SUCCESS;
}

// A range of the worker's own memory, which a box fills without gaps.
struct Room {
  uint64_t address = 0, bytes = 0;
};

CUresult checkPacked(const Room& room, const Box& box, End& end) {
  if (box.bytes() > room.bytes) return CUDA_ERROR_INVALID_VALUE;
  end.type = CU_MEMORYTYPE_HOST;
  end.address = room.address;
  end.pitch = box.width;
  end.height = box.height;
  return CUDA_SUCCESS;
}

// `own`: the bytes of the call itself at this end, if any.
CUresult check(Execution& on, const Corner& corner, const Room& own, const Box& box, End& end) {
  switch (corner.place.type()) {
    case api::PlaceType::ADDRESS: return checkMemory(on, corner, box, end);
    case api::PlaceType::ARRAY: return checkArray(on, corner, box, end);
    case api::PlaceType::CALL: return checkPacked(own, box, end);
    case api::PlaceType::SLAB:
      if (corner.place.value() >= slabCount) return CUDA_ERROR_INVALID_VALUE;
      if (CUresult error = on.session.registerSlab(static_cast<uint32_t>(corner.place.value()))) return error;
      return checkPacked({toWire(on.shared().slab(corner.place.value())), slabBytes}, box, end);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// The reply in the slot of the waiting call.
Room replyOf(Execution& on) {
  if (!on.isSignalled() || on.slotIndex() >= replyCount) return {};
  return {toWire(on.shared().reply(on.slotIndex())), replyBytes};
}

// The contexts of the two GPUs between whose memory is copied, if one of them is not the stream's. The stream's GPU may have no access to
// the other's memory: a driver then copies only by a peer copy, if necessary through the host (docs/facts.md).
struct Peers {
  CUcontext to = nullptr, from = nullptr;
};
std::optional<Peers> peersOf(const Execution& on, const End& to, const End& from) {
  const bool areAddresses = to.type == CU_MEMORYTYPE_UNIFIED && from.type == CU_MEMORYTYPE_UNIFIED;
  if (on.session.deviceCount() == 1 || !areAddresses) return std::nullopt;
  auto target = on.session.deviceAt(to.address), source = on.session.deviceAt(from.address);
  if (!target || !source || (*target == on.device() && *source == on.device())) return std::nullopt;
  return Peers{on.session.of(*target).gpu.context.get(), on.session.of(*source).gpu.context.get()};
}

CUresult copyRow(const Execution& on, const End& to, const End& from, uint64_t bytes, CUstream stream) {
  const Driver& driver = on.driver;
  if (auto peers = peersOf(on, to, from))
    return driver.cuMemcpyPeerAsync(to.address, peers->to, from.address, peers->from, bytes, stream);
  if (from.type == CU_MEMORYTYPE_HOST)
    return driver.cuMemcpyHtoDAsync_v2(to.address, fromWire<const void*>(from.address), bytes, stream);
  if (to.type == CU_MEMORYTYPE_HOST)
    return driver.cuMemcpyDtoHAsync_v2(fromWire<void*>(to.address), from.address, bytes, stream);
  return driver.cuMemcpyAsync(to.address, from.address, bytes, stream);
}

// The driver reads only the members that belong to each end's type.
CUDA_MEMCPY3D describe(const End& to, const End& from, const Box& box) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = from.x;
  copy.srcY = from.row;
  copy.srcZ = from.z;
  copy.srcMemoryType = from.type;
  copy.srcHost = fromWire<const void*>(from.address);
  copy.srcDevice = from.address;
  copy.srcArray = from.array;
  copy.srcPitch = from.pitch;
  copy.srcHeight = from.height;
  copy.dstXInBytes = to.x;
  copy.dstY = to.row;
  copy.dstZ = to.z;
  copy.dstMemoryType = to.type;
  copy.dstHost = fromWire<void*>(to.address);
  copy.dstDevice = to.address;
  copy.dstArray = to.array;
  copy.dstPitch = to.pitch;
  copy.dstHeight = to.height;
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.Depth = box.depth;
  return copy;
}

CUresult copyBox(const Execution& on, const End& to, const End& from, const Box& box, CUstream stream) {
  CUDA_MEMCPY3D copy = describe(to, from, box);
  auto peers = peersOf(on, to, from);
  if (!peers) return on.driver.cuMemcpy3DAsync_v2(&copy, stream);
  auto between = std::bit_cast<CUDA_MEMCPY3D_PEER>(copy);  // same layout; the contexts are in members that CUDA_MEMCPY3D reserves
  between.dstContext = peers->to;
  between.srcContext = peers->from;
  return on.driver.cuMemcpy3DPeerAsync(&between, stream);
}

// Reads and checks the two ends of a frame. `data`: bytes in the frame itself.
template <typename Frame>
CUresult readEnds(Execution& on, const Frame& p, kj::ArrayPtr<const kj::byte> data, Box& box, End& to, End& from) {
  Corner target{api::Place(p.getTo()), p.getToPitch(), p.getToSlice(), p.getToX(), p.getToRow(), p.getToZ()};
  Corner source{api::Place(p.getFrom()), p.getFromPitch(), p.getFromSlice(), p.getFromX(), p.getFromRow(), p.getFromZ()};
  if (CUresult bad = readBox(p, data.size(), box)) return bad;
  if (CUresult bad = check(on, target, replyOf(on), box, to)) return bad;
  if (CUresult bad = check(on, source, {toWire(data.begin()), data.size()}, box, from)) return bad;
  return to.type == CU_MEMORYTYPE_HOST && from.type == CU_MEMORYTYPE_HOST ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

// Slabs and the call's own bytes are refused: they are no longer valid when the graph is launched.
CUresult describeCopy(Execution& on, const CopyNodeFrame& p, CUDA_MEMCPY3D& copy) {
  Box box;
  End to, from;
  if (CUresult bad = readEnds(on, p, nullptr, box, to, from)) return bad;
  if (to.type == CU_MEMORYTYPE_HOST || from.type == CU_MEMORYTYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
  copy = describe(to, from, box);
  return CUDA_SUCCESS;
}

CUresult checkFill(Execution& on, uint64_t destination, uint64_t pitch, uint64_t elementBytes, uint64_t width, uint64_t height) {
  if (width > deviceArenaBytes || height > deviceArenaBytes || pitch > deviceArenaBytes || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Wide bytes = Wide{height - 1} * pitch + Wide{width} * elementBytes;
  return bytes <= deviceArenaBytes && on.ownsMemory(destination, static_cast<uint64_t>(bytes)) ? CUDA_SUCCESS
                                                                                               : CUDA_ERROR_INVALID_VALUE;
}

CUresult issueCopy(Execution& on, const CopyFrame& p, CUstream stream) {
  Box box;
  End to, from;
  if (CUresult bad = readEnds(on, p, p.getData(), box, to, from)) return bad;
  bool hasArray = to.array != nullptr || from.array != nullptr;
  if (box.isRow() && !hasArray) return copyRow(on, to, from, box.width, stream);
  return copyBox(on, to, from, box, stream);
}

}  // namespace vgpu::stub
