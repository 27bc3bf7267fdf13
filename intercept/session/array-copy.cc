#include "intercept/session/array-copy.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/wait.h"

namespace vgpu {

namespace {

// A part of one slice that fits into a slab, from the copy's beginning.
struct Tile {
  uint64_t x, row, slice, width, height;
};

// Calls `copy` for each tile of the box, until one fails. `unit` divides every width and place.
template <typename Copy>
CUresult forTiles(const BoxSize& size, uint64_t unit, Copy copy) {
  uint64_t width = std::min(size.width, slabBytes / unit * unit);
  uint64_t height = std::max<uint64_t>(slabBytes / width, 1);
  for (uint64_t z = 0; z < size.depth; ++z)
    for (uint64_t y = 0; y < size.height; y += height)
      for (uint64_t x = 0; x < size.width; x += width) {
        Tile tile{x, y, z, std::min(width, size.width - x), std::min(height, size.height - y)};
        if (CUresult error = copy(tile)) return error;
      }
  return CUDA_SUCCESS;
}

std::byte* rowOf(const RowsEnd& memory, const Tile& tile, uint64_t row) {
  return fromWire<std::byte*>(memory.address + tile.slice * memory.slice + (tile.row + row) * memory.pitch + tile.x);
}

void setPlace(api::Corner::Builder corner, const BoxEnd& end, const Tile& tile) {
  corner.setX(end.x + tile.x);
  corner.setRow(end.row + tile.row);
  corner.setSlice(end.slice + tile.slice);
}

CUresult tileFromPageable(Thread& thread, const BoxEnd& destination, const RowsEnd& source, const Tile& tile,
                          uint64_t stream) {
  Session& session = thread.session;
  auto slab = session.slabs.take(thread.firstSlab(), session.lost);
  if (!slab) return session.lossResult();
  for (uint64_t row = 0; row < tile.height; ++row)
    std::memcpy(session.segment.slab(*slab) + row * tile.width, rowOf(source, tile, row), tile.width);
  Call<api::Cuda::CopyArrayFromSlabParams> frame(thread, api::Method::copyArrayFromSlab, structWords<api::Corner>);
  frame->setToArray(destination.array);
  frame->setSlab(*slab);
  setPlace(frame->initTo(), destination, tile);
  frame->setWidthBytes(tile.width);
  frame->setHeight(tile.height);
  frame.setStream(stream);
  session.slabs.lend(*slab, frame.device(), frame.stamp());
  return frame.post();
}

CUresult tileToPageable(Thread& thread, const RowsEnd& destination, const BoxEnd& source, const Tile& tile,
                        uint64_t stream) {
  Session& session = thread.session;
  auto slab = session.slabs.take(thread.firstSlab(), session.lost);
  if (!slab) return session.lossResult();
  CUresult result;
  {
    Call<api::Cuda::CopyArrayToSlabParams> frame(thread, api::Method::copyArrayToSlab, structWords<api::Corner>);
    frame->setFromArray(source.array);
    frame->setSlab(*slab);
    setPlace(frame->initFrom(), source, tile);
    frame->setWidthBytes(tile.width);
    frame->setHeight(tile.height);
    frame.setStream(stream);
    result = frame.signal();
  }
  for (uint64_t row = 0; result == CUDA_SUCCESS && row < tile.height; ++row)
    std::memcpy(rowOf(destination, tile, row), session.segment.slab(*slab) + row * tile.width, tile.width);
  session.slabs.give(*slab);
  return result;
}

void setCorner(api::Corner::Builder corner, const BoxEnd& end) {
  setPlace(corner, end, {});
  corner.setAddress(end.memory.address);
  corner.setPitch(end.memory.pitch);
  corner.setSlicePitch(end.memory.slice);
}

CUresult postBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream) {
  Call<api::Cuda::CopyArrayParams> frame(thread, api::Method::copyArray, 2 * structWords<api::Corner>);
  frame->setToArray(destination.array);
  frame->setFromArray(source.array);
  setCorner(frame->initTo(), destination);
  setCorner(frame->initFrom(), source);
  frame->setWidthBytes(size.width);
  frame->setHeight(size.height);
  frame->setDepth(size.depth);
  frame.setStream(stream);
  return frame.post();
}

// What CUDA refuses at once of an array's end; `unit` becomes the element's size.
CUresult checkArray(Session& session, const BoxEnd& end, const BoxSize& size, uint64_t& unit) {
  ObjectEntry* entry = session.handles.find(api::Kind::ARRAY, end.array);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ArrayLayout& array = *entry->array;
  auto fits = [](uint64_t at, uint64_t count, uint64_t all) { return at <= all && count <= all - at; };
  unit = array.elementBytes;
  bool inside = fits(end.x, size.width, array.rowBytes()) && fits(end.row, size.height, array.rows()) &&
                fits(end.slice, size.depth, array.slices());
  return inside && end.x % unit == 0 && size.width % unit == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Where locateRows(Session& session, const RowsEnd& rows, const BoxSize& size) {
  return locate(session, rows.address, (size.depth - 1) * rows.slice + (size.height - 1) * rows.pitch + size.width);
}

}  // namespace

CUresult copyBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion) {
  Session& session = thread.session;
  uint64_t unit = 1;
  Where to = Where::device, from = Where::device;
  if (size.width == 0 || size.height == 0 || size.depth == 0) return CUDA_SUCCESS;
  for (const BoxEnd* end : {&destination, &source})
    if (end->array != 0)
      if (CUresult bad = checkArray(session, *end, size, unit)) return bad;
  if (destination.array == 0) to = locateRows(session, destination.memory, size);
  if (source.array == 0) from = locateRows(session, source.memory, size);
  if (to == Where::nowhere || from == Where::nowhere) return CUDA_ERROR_INVALID_VALUE;
  if (from == Where::pageable)
    return forTiles(size, unit, [&](const Tile& tile) {
      return tileFromPageable(thread, destination, source.memory, tile, stream);
    });
  if (to == Where::pageable)
    return forTiles(size, unit, [&](const Tile& tile) {
      return tileToPageable(thread, destination.memory, source, tile, stream);
    });
  if (CUresult error = postBox(thread, destination, source, size, stream)) return error;
  bool touchesHost = to == Where::arena || from == Where::arena;
  return completion == Completion::synchronous && touchesHost ? synchronizeStream(thread, stream) : CUDA_SUCCESS;
}

}  // namespace vgpu
