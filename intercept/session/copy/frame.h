// The frames of copies, each only as long as its ends require: 64 bytes for a row between addresses, slabs and a slot, and for a few bytes
// in the frame; 128 for a box in memory, 192 for a box with an array end.
#pragma once

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/copy/copy-end.h"

namespace vgpu::client {

// Prefixes of the fields of copy3d (vgpu/api/cuda.table): up to `stream` and the data, up to `width`, up to `fromSlice`, and all.
using InlineCopy = api::FramePart<api::Cuda::Copy3dParams, 2, 1>;
using RowCopy = api::FramePart<api::Cuda::Copy3dParams, 4, 0>;
using MemoryBoxCopy = api::FramePart<api::Cuda::Copy3dParams, 10, 0>;
using BoxCopy = api::FramePart<api::Cuda::Copy3dParams, 16, 0>;

template <typename Part>
using CopyCall = Call<api::Cuda::Copy3dParams, Part>;

template <typename Frame>
void setEnds(Frame& frame, const CopyEnd& to, const CopyEnd& from, uint64_t width, uint64_t stream) {
  frame->setTo(to.place.number());
  frame->setFrom(from.place.number());
  frame->setWidth(width);
  frame.setStream(stream);
}

// Makes the frame of a copy, to be posted if `waiter` is null and waited for otherwise, and calls `send` with it. An end of type CALL is
// the waiter's slot. Returns the result of `send`.
template <typename Send>
CUresult withCopy(Thread& thread, const CopyEnd& to, const CopyEnd& from, const BoxSize& size, uint64_t stream, Waiter* waiter,
                  Send&& send) {
  UsesManaged use(thread, thread.session.managed.isUsedIn(stream, to.place.number(), from.place.number()));
  const api::Method method = waiter == nullptr ? api::Method::copy3d : api::Method::copy3dBack;
  if (to.isPacked(size) && from.isPacked(size)) {
    CopyCall<RowCopy> frame(thread.of(stream), method, 0, waiter);
    setEnds(frame, to, from, size.bytes(), stream);
    return send(frame);
  }
  if (!to.isArray() && !from.isArray()) {
    CopyCall<MemoryBoxCopy> frame(thread.of(stream), method, 0, waiter);
    setEnds(frame, to, from, size.width, stream);
    setBoxInMemory(frame, to, from, size);
    return send(frame);
  }
  CopyCall<BoxCopy> frame(thread.of(stream), method, 0, waiter);
  setEnds(frame, to, from, size.width, stream);
  setBox(frame, to, from, size);
  return send(frame);
}

// Posts a copy to the device whose bytes are in the frame itself. `destination` is packed memory.
inline CUresult copyInFrame(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t stream) {
  UsesManaged use(thread, thread.session.managed.isUsedIn(stream, destination.place.number()));
  CopyCall<InlineCopy> frame(thread.of(stream), api::Method::copy3d, dataWords(size.bytes()));
  frame->setTo(destination.place.number());
  frame.setStream(stream);
  auto data = frame->initData(size.bytes());
  forRuns(source, size, [&](const std::byte* memory, uint64_t offset, uint64_t bytes) {
    std::memcpy(data.begin() + offset, memory, bytes);
  });
  return frame.post(size.bytes());
}

}  // namespace vgpu::client
