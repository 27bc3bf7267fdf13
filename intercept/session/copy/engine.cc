#include "intercept/session/copy/engine.h"

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/copy/staged-copy.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

// A copy of at most so many bytes costs less in the frame, or in the slot on the way back, than acquiring, filling and
// releasing a slab.
constexpr uint64_t inlineBytes = 4 * KiB;
static_assert(inlineBytes <= replyBytes);

}  // namespace

Where locate(Session& session, uint64_t address, uint64_t bytes) {
  auto holds = [&](uint64_t start, uint64_t size) { return bytes <= size - (address - start); };
  if (inDeviceArenas(address)) {
    auto found = session.memory.findDevice(address);
    return found && holds(found->address, found->bytes) ? Where::device : Where::nowhere;
  }
  if (inHostArena(address)) {
    auto found = session.memory.findHost(address);
    return found && holds(found->address, roundUp(found->bytes, allocationAlignment)) ? Where::arena : Where::nowhere;
  }
  if (auto variable = session.variables.at(address))
    return holds(variable->address, variable->bytes) ? Where::device : Where::nowhere;
  if (auto adopted = session.memory.findRegistered(address, true); adopted && holds(adopted->address, adopted->bytes))
    return Where::arena;
  return address < 4 * KiB ? Where::nowhere : Where::pageable;  // no program has memory at null
}

namespace {

std::byte* hostPointer(uint64_t address) { return fromWire<std::byte*>(address); }

CUresult postCopy(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream) {
  Call<api::Cuda::CopyParams> frame(thread.of(stream), api::Method::copy);
  frame->setDestination(destination);
  frame->setSource(source);
  frame->setBytes(bytes);
  frame.setStream(stream);
  return frame.post();
}

CUresult copyInFrame(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream) {
  Call<api::Cuda::CopyInlineParams> frame(thread.of(stream), api::Method::copyInline, dataWords(bytes));
  frame->setDestination(destination);
  frame.setStream(stream);
  std::memcpy(frame->initData(static_cast<unsigned>(bytes)).begin(), hostPointer(source), bytes);
  return frame.post();
}

// A few bytes come into the waiter's slot, beside the sequence number that says so.
CUresult copyThroughSlot(Thread& thread, Waiter& waiter, uint64_t destination, uint64_t source, uint64_t bytes,
                         uint64_t stream) {
  {
    Call<api::Cuda::CopyToSlotParams> frame(thread.of(stream), api::Method::copyToSlot, 0, &waiter);
    frame->setSource(source);
    frame->setBytes(static_cast<uint32_t>(bytes));
    frame.setStream(stream);
    if (CUresult error = frame.signal()) return error;
  }
  std::memcpy(hostPointer(destination), waiter.answer(), bytes);
  return CUDA_SUCCESS;
}

CUresult copyIn(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream) {
  if (bytes <= inlineBytes) return copyInFrame(thread, destination, source, bytes, stream);
  return copyFromPageable(thread, {.memory = {destination}}, {source}, {bytes, 1, 1}, 1, stream);
}

CUresult copyOut(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream) {
  if (bytes <= inlineBytes) {
    if (auto slot = thread.session.slots.tryTake(SlotTable::forBytes, thread.number())) {
      Waiter waiter(thread, *slot);
      return copyThroughSlot(thread, waiter, destination, source, bytes, stream);
    }
  }
  return copyToPageable(thread, {destination}, {.memory = {source}}, {bytes, 1, 1}, 1, stream);
}

}  // namespace

namespace {

CUresult copyInOrder(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream,
                     Completion completion, Ends ends) {
  Session& session = thread.session;
  Where to = locate(session, destination, bytes), from = locate(session, source, bytes);
  if (to == Where::nowhere || from == Where::nowhere) return CUDA_ERROR_INVALID_VALUE;
  if ((ends.destinationOnGpu && to == Where::pageable) || (ends.sourceOnGpu && from == Where::pageable))
    return CUDA_ERROR_INVALID_VALUE;

  if (to == Where::device && from == Where::pageable) return copyIn(thread, destination, source, bytes, stream);
  if (to == Where::pageable && from == Where::device) return copyOut(thread, destination, source, bytes, stream);
  if (to == Where::pageable || from == Where::pageable) {
    // Host to host: in the stream's order, by ourselves.
    if (CUresult error = synchronizeStream(thread, stream)) return error;
    std::memmove(hostPointer(destination), hostPointer(source), bytes);
    return CUDA_SUCCESS;
  }
  if (CUresult error = postCopy(thread, destination, source, bytes, stream)) return error;
  bool touchesHost = to == Where::arena || from == Where::arena;
  return completion == Completion::synchronous && touchesHost ? synchronizeStream(thread, stream) : CUDA_SUCCESS;
}

}  // namespace

CUresult copyBytes(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream,
                   Completion completion, Ends ends) {
  if (bytes == 0) return CUDA_SUCCESS;
  return acrossRings(thread, thread.deviceOf(stream), devicesOf(thread.session, destination, source),
                     [&] { return copyInOrder(thread, destination, source, bytes, stream, completion, ends); });
}

CUresult fillRows(Thread& thread, uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes,
                  uint64_t width, uint64_t height, uint64_t stream) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (destination % elementBytes != 0 || (height > 1 && pitch < width * elementBytes)) return CUDA_ERROR_INVALID_VALUE;
  Where to = locate(thread.session, destination, (height - 1) * pitch + width * elementBytes);
  if (to != Where::device && to != Where::arena) return CUDA_ERROR_INVALID_VALUE;
  return acrossRings(thread, thread.deviceOf(stream), devicesOf(thread.session, destination, 0), [&] {
    Call<api::Cuda::FillParams> frame(thread.of(stream), api::Method::fill);
    frame->setDestination(destination);
    frame->setPitch(pitch);
    frame->setValue(value);
    frame->setElementBytes(elementBytes);
    frame->setWidth(width);
    frame->setHeight(height);
    frame.setStream(stream);
    return frame.post();
  });
}

}  // namespace vgpu::client
