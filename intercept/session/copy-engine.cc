#include "intercept/session/copy-engine.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"
#include "intercept/session/copy-crew.h"
#include "intercept/session/wait.h"

namespace vgpu {

namespace {

// What a copy of this many bytes costs in the frame, or in the slot on the way back, is less than a slab's round of hands.
constexpr uint64_t inlineBytes = 4 * KiB;
static_assert(inlineBytes <= answerBytes);
// Pieces on their way from the device at once: one is copied out while the next ones arrive.
constexpr unsigned piecesInFlight = 4;

// From here on a copy is long: each of several threads moves slabs of its own. A shorter one moves its slabs one after
// the other, and the threads share each.
constexpr uint64_t longBytes = 8 * MiB;
constexpr uint64_t shortPiece = 512 * KiB;

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
  Call<api::Cuda::CopyParams> frame(thread, api::Method::copy);
  frame->setDestination(destination);
  frame->setSource(source);
  frame->setBytes(bytes);
  frame.setStream(stream);
  return frame.post();
}

// How a thread moves bytes between a slab and the program's memory: by itself, or with the crew.
using Mover = void (*)(Thread& thread, std::byte* destination, const std::byte* source, uint64_t bytes);

void moveAlone(Thread&, std::byte* destination, const std::byte* source, uint64_t bytes) {
  std::memcpy(destination, source, bytes);
}

void moveTogether(Thread& thread, std::byte* destination, const std::byte* source, uint64_t bytes) {
  thread.session.copyCrew->copy(thread, destination, source, bytes);
}

CUresult copyPieceFromPageable(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, Mover move,
                               uint64_t stream) {
  Session& session = thread.session;
  auto slab = session.slabs.take(thread.firstSlab(), session.lost);
  if (!slab) return session.lossResult();
  move(thread, session.segment.slab(*slab), hostPointer(source), bytes);
  Call<api::Cuda::CopyFromSlabParams> frame(thread, api::Method::copyFromSlab);
  frame->setDestination(destination);
  frame->setSlab(*slab);
  frame->setBytes(static_cast<uint32_t>(bytes));
  frame.setStream(stream);
  session.slabs.lend(*slab, frame.device(), frame.stamp());
  return frame.post();
}

// The program's bytes are taken before this returns, as CUDA promises for pageable memory.
CUresult copyFromPageable(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream) {
  Session& session = thread.session;
  if (bytes <= inlineBytes) {
    Call<api::Cuda::CopyInlineParams> frame(thread, api::Method::copyInline, dataWords(bytes));
    frame->setDestination(destination);
    frame.setStream(stream);
    std::memcpy(frame->initData(static_cast<unsigned>(bytes)).begin(), hostPointer(source), bytes);
    return frame.post();
  }
  const bool isLong = bytes >= longBytes && CopyCrew::size() != 0;
  auto copyPiece = [&](Thread& helper, uint64_t index) {
    uint64_t done = index * slabBytes;
    return copyPieceFromPageable(helper, destination + done, source + done, std::min(slabBytes, bytes - done),
                                 isLong ? moveAlone : moveTogether, stream);
  };
  uint64_t pieces = (bytes + slabBytes - 1) / slabBytes;
  if (isLong) return session.copyCrew->share(thread, pieces, copyPiece);
  for (uint64_t index = 0; index < pieces; ++index)
    if (CUresult error = copyPiece(thread, index)) return error;
  return CUDA_SUCCESS;
}

struct Piece {
  uint32_t slab;
  uint64_t offset, bytes, stamp;
};

CUresult requestPiece(Thread& thread, Waiter& waiter, uint64_t source, uint64_t stream, Piece& piece) {
  Call<api::Cuda::CopyToSlabParams> frame(thread, api::Method::copyToSlab, 0, &waiter);
  frame->setSource(source + piece.offset);
  frame->setSlab(piece.slab);
  frame->setBytes(static_cast<uint32_t>(piece.bytes));
  frame.setStream(stream);
  piece.stamp = frame.stamp();
  return frame.send();
}

// A part of a copy, by one thread. Pieces are asked for ahead and taken in order; where slabs are scarce, one after the
// other. An error ends the copy when the pieces on their way have come or failed.
CUresult copyPartToPageable(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t pieceBytes,
                            Mover move, uint64_t stream) {
  Session& session = thread.session;
  const unsigned device = thread.deviceOf(stream);
  CancellationOff untilArrived;
  std::array<Piece, piecesInFlight> pieces;
  uint64_t asked = 0, taken = 0;  // pieces
  uint64_t count = (bytes + pieceBytes - 1) / pieceBytes;
  CUresult result = CUDA_SUCCESS;
  Waiter waiter(thread, SlotTable::forWaits);
  if (!waiter.hasSlot()) return session.lossResult();
  while (taken < count && (result == CUDA_SUCCESS || taken < asked)) {
    while (result == CUDA_SUCCESS && asked < count && asked - taken < piecesInFlight) {
      auto slab = asked == taken ? session.slabs.take(thread.firstSlab(), session.lost)
                                 : session.slabs.takeAnother(thread.firstSlab());
      if (!slab && asked == taken) return session.lossResult();
      if (!slab) break;
      Piece& piece = pieces[asked++ % piecesInFlight];
      uint64_t offset = (asked - 1) * pieceBytes;
      piece = {*slab, offset, std::min(pieceBytes, bytes - offset), 0};
      result = requestPiece(thread, waiter, source, stream, piece);
    }
    Piece& piece = pieces[taken++ % piecesInFlight];
    CUresult arrived = waiter.await(device, piece.stamp);
    if (arrived == CUDA_SUCCESS && result == CUDA_SUCCESS) {
      move(thread, hostPointer(destination + piece.offset), session.segment.slab(piece.slab), piece.bytes);
    } else if (result == CUDA_SUCCESS) {
      result = arrived;
      // The worker may have refused a piece while the GPU brings those before it: their slabs and the slot are the GPU's
      // until it has.
      synchronizeStream(thread, stream);
    }
    session.slabs.give(piece.slab);
  }
  return result != CUDA_SUCCESS ? result : session.takeError(device);
}

// A few bytes come into the waiter's slot, beside the stamp that says so.
CUresult copyThroughSlot(Thread& thread, Waiter& waiter, uint64_t destination, uint64_t source, uint64_t bytes,
                         uint64_t stream) {
  {
    Call<api::Cuda::CopyToSlotParams> frame(thread, api::Method::copyToSlot, 0, &waiter);
    frame->setSource(source);
    frame->setBytes(static_cast<uint32_t>(bytes));
    frame.setStream(stream);
    if (CUresult error = frame.signal()) return error;
  }
  std::memcpy(hostPointer(destination), waiter.answer(), bytes);
  return CUDA_SUCCESS;
}

CUresult copyToPageable(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream) {
  if (bytes <= inlineBytes) {
    if (auto slot = thread.session.slots.tryTake(SlotTable::forBytes, thread.number())) {
      Waiter waiter(thread, *slot);
      return copyThroughSlot(thread, waiter, destination, source, bytes, stream);
    }
  }
  const uint64_t threads = CopyCrew::size() + 1;
  if (bytes < longBytes || threads == 1)
    return copyPartToPageable(thread, destination, source, bytes, shortPiece, moveTogether, stream);
  // Enough parts for every thread, and each long enough that its slabs overlap.
  const uint64_t part = std::clamp(roundUp(bytes / threads, slabBytes), 2 * slabBytes, piecesInFlight * slabBytes);
  return thread.session.copyCrew->share(thread, (bytes + part - 1) / part, [&](Thread& helper, uint64_t index) {
    uint64_t done = index * part;
    return copyPartToPageable(helper, destination + done, source + done, std::min(part, bytes - done), slabBytes,
                              moveAlone, stream);
  });
}

}  // namespace

CUresult copyBytes(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream,
                   Completion completion, Ends ends) {
  Session& session = thread.session;
  if (bytes == 0) return CUDA_SUCCESS;
  Where to = locate(session, destination, bytes), from = locate(session, source, bytes);
  if (to == Where::nowhere || from == Where::nowhere) return CUDA_ERROR_INVALID_VALUE;
  if ((ends.destinationOnGpu && to == Where::pageable) || (ends.sourceOnGpu && from == Where::pageable))
    return CUDA_ERROR_INVALID_VALUE;

  if (to == Where::device && from == Where::pageable)
    return copyFromPageable(thread, destination, source, bytes, stream);
  if (to == Where::pageable && from == Where::device) return copyToPageable(thread, destination, source, bytes, stream);
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

CUresult copyRows(Thread& thread, const RowsEnd& destination, const RowsEnd& source, uint64_t width, uint64_t height,
                  uint64_t depth, uint64_t stream, Completion completion) {
  Session& session = thread.session;
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  auto extent = [&](const RowsEnd& end) { return (depth - 1) * end.slice + (height - 1) * end.pitch + width; };
  auto packed = [&](const RowsEnd& end) {
    return (height == 1 || end.pitch == width) && (depth == 1 || end.slice == height * width);
  };
  if (packed(destination) && packed(source))
    return copyBytes(thread, destination.address, source.address, width * height * depth, stream, completion);

  Where to = locate(session, destination.address, extent(destination));
  Where from = locate(session, source.address, extent(source));
  if (to == Where::nowhere || from == Where::nowhere) return CUDA_ERROR_INVALID_VALUE;
  if (to == Where::pageable || from == Where::pageable) {
    for (uint64_t z = 0; z < depth; ++z)
      for (uint64_t y = 0; y < height; ++y) {
        uint64_t into = destination.address + z * destination.slice + y * destination.pitch;
        uint64_t outOf = source.address + z * source.slice + y * source.pitch;
        if (CUresult error = copyBytes(thread, into, outOf, width, stream, completion)) return error;
      }
    return CUDA_SUCCESS;
  }
  auto set = [](api::Rect::Builder rect, const RowsEnd& end) {
    rect.setAddress(end.address);
    rect.setPitch(end.pitch);
    rect.setSlice(end.slice);
  };
  constexpr uint64_t rectWords = 3;  // sizeof(api::Rect)
  {
    Call<api::Cuda::CopyRectParams> frame(thread, api::Method::copyRect, 2 * rectWords);
    set(frame->initDestination(), destination);
    set(frame->initSource(), source);
    frame->setWidthBytes(width);
    frame->setHeight(height);
    frame->setDepth(depth);
    frame.setStream(stream);
    if (CUresult error = frame.post()) return error;
  }
  bool touchesHost = to == Where::arena || from == Where::arena;
  return completion == Completion::synchronous && touchesHost ? synchronizeStream(thread, stream) : CUDA_SUCCESS;
}

CUresult fillRows(Thread& thread, uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes,
                  uint64_t width, uint64_t height, uint64_t stream) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (destination % elementBytes != 0 || (height > 1 && pitch < width * elementBytes)) return CUDA_ERROR_INVALID_VALUE;
  Where to = locate(thread.session, destination, (height - 1) * pitch + width * elementBytes);
  if (to != Where::device && to != Where::arena) return CUDA_ERROR_INVALID_VALUE;
  Call<api::Cuda::FillParams> frame(thread, api::Method::fill);
  frame->setDestination(destination);
  frame->setPitch(pitch);
  frame->setValue(value);
  frame->setElementBytes(elementBytes);
  frame->setWidth(width);
  frame->setHeight(height);
  frame.setStream(stream);
  return frame.post();
}

}  // namespace vgpu
