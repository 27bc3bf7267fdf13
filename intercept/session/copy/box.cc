#include "intercept/session/copy/box.h"

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"
#include "vgpu/api/corner.h"

namespace vgpu::client {

namespace {

api::Corner cornerOf(const BoxEnd& end) {
  return {end.x, end.row, end.slice, end.memory.address, end.memory.pitch, end.memory.slice};
}

CUresult postBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream) {
  Call<api::Cuda::CopyBoxParams> frame(thread.of(stream), api::Method::copyBox, 2 * dataWords(sizeof(api::Corner)));
  frame->setToArray(destination.array);
  frame->setFromArray(source.array);
  frame->setTo(cornerOf(destination));
  frame->setFrom(cornerOf(source));
  frame->setWidthBytes(size.width);
  frame->setHeight(size.height);
  frame->setDepth(size.depth);
  frame.setStream(stream);
  return frame.post();
}

// In the stream's order, by ourselves.
CUresult copyOnHost(Thread& thread, const MemoryRows& destination, const MemoryRows& source, const BoxSize& size,
                    uint64_t stream) {
  if (CUresult error = synchronizeStream(thread, stream)) return error;
  for (uint64_t slice = 0; slice < size.depth; ++slice)
    for (uint64_t row = 0; row < size.height; ++row)
      std::memmove(fromWire<void*>(destination.at(0, row, slice)), fromWire<void*>(source.at(0, row, slice)), size.width);
  return CUDA_SUCCESS;
}

// An end that has been checked. `unit`: bytes that a row may not be cut within.
struct Checked {
  Where where = Where::device;
  uint64_t unit = 1;
};

// What CUDA refuses at once of an array's end.
CUresult checkArray(Session& session, const BoxEnd& end, const BoxSize& size, Checked& checked) {
  ObjectEntry* entry = session.handles.find(api::Kind::ARRAY, end.array);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ArrayLayout& array = *entry->array;
  auto fits = [](uint64_t at, uint64_t count, uint64_t all) { return at <= all && count <= all - at; };
  checked.unit = array.elementBytes;
  bool inside = fits(end.x, size.width, array.rowBytes()) && fits(end.row, size.height, array.rows()) &&
                fits(end.slice, size.depth, array.slices());
  return inside && end.x % checked.unit == 0 && size.width % checked.unit == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult checkMemory(Session& session, const MemoryRows& rows, const BoxSize& size, Checked& checked) {
  using Wide = unsigned __int128;  // two numbers of the program's multiply to this at most
  constexpr uint64_t most = UINT64_MAX >> 2;
  Wide slices = Wide{size.depth - 1} * rows.slice, inSlice = Wide{size.height - 1} * rows.pitch;
  if (slices > most || inSlice > most || size.width > most) return CUDA_ERROR_INVALID_VALUE;
  checked.where = locate(session, rows.address, static_cast<uint64_t>(slices + inSlice) + size.width);
  return checked.where == Where::nowhere ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult check(Session& session, const BoxEnd& end, const BoxSize& size, Checked& checked) {
  return end.array != 0 ? checkArray(session, end, size, checked) : checkMemory(session, end.memory, size, checked);
}

bool isPacked(const BoxEnd& end, const BoxSize& size) { return end.array == 0 && end.memory.isPacked(size); }

uint32_t devicesOf(Session& session, const BoxEnd& end) {
  return end.array != 0 ? 1u << handleDevice(end.array) : devicesOf(session, end.memory.address, 0);
}

CUresult copyChecked(Thread& thread, const BoxEnd& destination, const Checked& to, const BoxEnd& source, const Checked& from,
                     const BoxSize& size, uint64_t stream, Completion completion) {
  if (to.where == Where::device && from.where == Where::pageable)
    return copyFromPageable(thread, destination, source.memory, size, to.unit, stream);
  if (to.where == Where::pageable && from.where == Where::device)
    return copyToPageable(thread, destination.memory, source, size, from.unit, stream);
  if (to.where == Where::pageable || from.where == Where::pageable)
    return copyOnHost(thread, destination.memory, source.memory, size, stream);
  if (CUresult error = postBox(thread, destination, source, size, stream)) return error;
  bool touchesHost = to.where == Where::arena || from.where == Where::arena;
  return completion == Completion::synchronous && touchesHost ? synchronizeStream(thread, stream) : CUDA_SUCCESS;
}

}  // namespace

CUresult copyBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion) {
  if (size.width == 0 || size.height == 0 || size.depth == 0) return CUDA_SUCCESS;
  Session& session = thread.session;
  Checked to, from;
  if (CUresult bad = check(session, destination, size, to)) return bad;
  if (CUresult bad = check(session, source, size, from)) return bad;
  if (isPacked(destination, size) && isPacked(source, size))
    return copyBytes(thread, destination.memory.address, source.memory.address, size.bytes(), stream, completion);
  return acrossRings(thread, thread.deviceOf(stream), devicesOf(session, destination) | devicesOf(session, source),
                     [&] { return copyChecked(thread, destination, to, source, from, size, stream, completion); });
}

}  // namespace vgpu::client
