#include "intercept/session/copy/engine.h"

#include <cstring>
#include <optional>

#include "intercept/session/copy/frame.h"
#include "intercept/session/copy/registered-copy.h"
#include "intercept/session/copy/staged-copy.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

// For an address in an arena whose allocations Memory manages.
Where locateAllocated(Session& session, uint64_t address, uint64_t bytes) {
  FoundMemory& known = Thread::current(session).foundMemory;
  const uint64_t endings = session.memory.endings();
  if (auto where = known.find(address, bytes, endings)) [[likely]] return *where;
  Where where = Where::device;
  uint64_t start, size;
  if (inHostArena(address)) {
    auto found = session.memory.findHost(address);
    if (!found) return Where::nowhere;
    start = found->address, size = roundUp(found->bytes, allocationAlignment);
    where = found->kind == HostKind::pooled ? Where::pooled : Where::arena;
  } else {
    auto found = session.memory.findDevice(address);
    if (!found) return Where::nowhere;
    start = found->address, size = found->bytes;
  }
  known.add(address, start, size, where, endings);
  return known.find(address, bytes, endings).value_or(Where::nowhere);
}

}  // namespace

Where locate(Session& session, uint64_t address, uint64_t bytes) {
  auto holds = [&](uint64_t start, uint64_t size) { return bytes <= size - (address - start); };
  if (inDeviceArenas(address) || inHostArena(address)) return locateAllocated(session, address, bytes);
  if (inMappedArena(address)) return session.virtualMemory.locate(address, bytes);
  if (auto variable = session.variables.at(address))
    return holds(variable->address, variable->bytes) ? Where::device : Where::nowhere;
  if (auto adopted = session.memory.findRegistered(address, true); adopted && holds(adopted->address, adopted->bytes))
    return Where::arena;
  return address < 4 * KiB ? Where::nowhere : Where::pageable;  // the first pages are never mapped: null
}

namespace {

// An end that has been checked. `unit`: a row is cut only between units of that many bytes.
struct Checked {
  Where where = Where::device;
  uint64_t unit = 1;
};

// The errors of an array end that CUDA returns immediately.
CUresult checkArray(Session& session, const CopyEnd& end, const BoxSize& size, Checked& checked) {
  auto* entry = session.handles.find<api::Kind::ARRAY>(end.place.number());
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ArrayLayout& array = *entry->layout;
  auto fits = [](uint64_t at, uint64_t count, uint64_t all) { return at <= all && count <= all - at; };
  if (array.planes != 0) return CUDA_ERROR_INVALID_VALUE;
  checked.unit = array.unitBytes;
  bool inside = fits(end.x, size.width, array.rowBytes()) && fits(end.row, size.height, array.rows()) &&
                fits(end.z, size.depth, array.slices());
  const bool isWhole = end.x % checked.unit == 0 && size.width % checked.unit == 0;
  return inside && (isWhole || array.isOfBytes()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Bytes from the first to the last byte of a box in memory. No value if it exceeds the address space.
std::optional<uint64_t> reachOf(const CopyEnd& end, const BoxSize& size) {
  using Wide = unsigned __int128;  // holds the product of two of the program's numbers
  constexpr uint64_t most = UINT64_MAX >> 2;
  Wide slices = Wide{size.depth - 1} * end.slice, inSlice = Wide{size.height - 1} * end.pitch;
  if (slices > most || inSlice > most || size.width > most) return {};
  return static_cast<uint64_t>(slices + inSlice) + size.width;
}

CUresult check(Session& session, const CopyEnd& end, const BoxSize& size, bool onGpu, Checked& checked) {
  if (end.isArray()) [[unlikely]] return checkArray(session, end, size, checked);
  if (end.place.type() != api::PlaceType::ADDRESS) return CUDA_ERROR_INVALID_VALUE;  // null, or an address that no memory has
  auto bytes = size.isRow() ? size.width : reachOf(end, size);
  checked.where = bytes ? locate(session, end.address(), *bytes) : Where::nowhere;
  const bool canBeGpus = checked.where == Where::device || checked.where == Where::arena || checked.where == Where::hosts;
  const bool isWrong = checked.where == Where::nowhere || (onGpu && !canBeGpus);
  if (checked.where == Where::pooled) checked.where = Where::arena;
  if (checked.where == Where::hosts) checked.where = Where::pageable;
  return isWrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The client itself writes pageable memory, so memory that is registered as read-only is refused here.
CUresult checkDestination(Session& session, const CopyEnd& end, const BoxSize& size, bool onGpu, Checked& checked) {
  if (CUresult bad = check(session, end, size, onGpu, checked)) return bad;
  const bool isReadOnly = checked.where == Where::pageable && session.memory.isRegisteredReadOnly(end.address());
  return isReadOnly ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Copies on the CPU, in stream order: waits for the stream first.
CUresult copyOnHost(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t stream) {
  if (CUresult error = awaitTurn(thread, stream)) return error;
  for (uint64_t slice = 0; slice < size.depth; ++slice)
    for (uint64_t row = 0; row < size.height; ++row)
      std::memmove(fromWire<void*>(destination.addressOf(0, row, slice)), fromWire<void*>(source.addressOf(0, row, slice)),
                   size.width);
  return CUDA_SUCCESS;
}

// A copy of at most this many bytes is cheaper in the frame, or in the reply slot, than acquiring, filling and releasing a slab.
constexpr uint64_t inlineBytes = 4 * KiB;
static_assert(inlineBytes <= replyBytes);

// The bytes arrive in the waiter's slot, beside the sequence number that reports them.
CUresult copyThroughSlot(Thread& thread, Waiter& waiter, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size,
                          uint64_t stream) {
  CUresult error =
      withCopy(thread, CopyEnd::ofCall(), source, size, stream, &waiter, [](auto& frame) { return frame.signal(); });
  if (error != CUDA_SUCCESS) return error;
  forRuns(destination, size, [&](std::byte* memory, uint64_t offset, uint64_t bytes) {
    std::memcpy(memory, waiter.answer() + offset, bytes);
  });
  return CUDA_SUCCESS;
}

CUresult copyIn(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t unit,
                uint64_t stream) {
  if (size.bytes() <= inlineBytes && destination.isPacked(size)) return copyInFrame(thread, destination, source, size, stream);
  return copyFromPageable(thread, destination, source, size, unit, stream);
}

CUresult copyOut(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t unit,
                 uint64_t stream) {
  if (size.bytes() <= inlineBytes) {
    if (auto slot = thread.session.slots.tryTake(SlotTable::forBytes, thread.number())) {
      Waiter waiter(thread, *slot);
      return copyThroughSlot(thread, waiter, destination, source, size, stream);
    }
  }
  if (CUresult error = copyToPageable(thread, destination, source, size, unit, stream)) return error;
  return thread.session.takeError(thread.deviceOf(stream));
}

CUresult copyChecked(Thread& thread, const CopyEnd& destination, const Checked& to, const CopyEnd& source, const Checked& from,
                     const BoxSize& size, uint64_t stream, Completion completion) {
  if (to.where == Where::device && from.where == Where::pageable) {
    if (!thread.session.memory.findRegistered(source.address(), false)) [[likely]]
      return copyIn(thread, destination, source, size, to.unit, stream);
    const auto posted = copyBehindFunctions(thread, destination, source, size, stream);
    const CUresult result = posted ? *posted : copyIn(thread, destination, source, size, to.unit, stream);
    // A synchronous copy may return before the GPU has copied pageable memory, but for registered memory it must wait.
    return result == CUDA_SUCCESS && completion == Completion::synchronous ? synchronizeStream(thread, stream) : result;
  }
  if (to.where == Where::pageable && from.where == Where::device)
    return copyOut(thread, destination, source, size, from.unit, stream);
  if (to.where == Where::pageable || from.where == Where::pageable)
    return copyOnHost(thread, destination, source, size, stream);
  CUresult error = withCopy(thread, destination, source, size, stream, nullptr, [](auto& frame) { return frame.post(); });
  if (error != CUDA_SUCCESS) return error;
  bool touchesHost = to.where == Where::arena || from.where == Where::arena;
  return completion == Completion::synchronous && touchesHost ? synchronizeStream(thread, stream) : CUDA_SUCCESS;
}

CUresult copyBetween(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t stream,
                     Completion completion, Ends ends) {
  Session& session = thread.session;
  Checked to, from;
  if (CUresult bad = checkDestination(session, destination, size, ends.destinationOnGpu, to)) return bad;
  if (CUresult bad = check(session, source, size, ends.sourceOnGpu, from)) return bad;
  // A box that is contiguous at both ends is one row, which is cut into fewer tiles.
  const bool isRow = destination.isPacked(size) && source.isPacked(size);
  const BoxSize whole = isRow ? BoxSize{size.bytes(), 1, 1} : size;
  return acrossRings(thread, thread.deviceOf(stream), devicesOf(session, destination) | devicesOf(session, source),
                     [&] { return copyChecked(thread, destination, to, source, from, whole, stream, completion); });
}

}  // namespace

// Both are flattened: the most common copy, a row of memory, is compiled without the code for boxes and arrays.
[[gnu::flatten]] CUresult copyBytes(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream, Completion completion,
                   Ends ends) {
  if (bytes == 0) return CUDA_SUCCESS;
  return copyBetween(thread, CopyEnd::memory(destination), CopyEnd::memory(source), {bytes, 1, 1}, stream, completion, ends);
}

[[gnu::flatten]] CUresult copyBox(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion, Ends ends) {
  if (size.width == 0 || size.height == 0 || size.depth == 0) return CUDA_SUCCESS;
  return copyBetween(thread, destination, source, size, stream, completion, ends);
}

CUresult checkCopy(Session& session, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, Ends ends, Where& to,
                   Where& from) {
  Checked checked;
  if (CUresult bad = checkDestination(session, destination, size, ends.destinationOnGpu, checked)) return bad;
  to = checked.where;
  checked = {};
  if (CUresult bad = check(session, source, size, ends.sourceOnGpu, checked)) return bad;
  from = checked.where;
  return CUDA_SUCCESS;
}

namespace {

// The bytes from the first to the last byte of a fill; nothing if the parameters are invalid.
std::optional<uint64_t> reachOfFill(uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height) {
  uint64_t rowBytes;
  if (__builtin_mul_overflow(width, elementBytes, &rowBytes)) return std::nullopt;
  if (destination % elementBytes != 0 || (height > 1 && (pitch < rowBytes || pitch % elementBytes != 0))) return std::nullopt;
  return reachOf(CopyEnd::memory(destination, pitch), {rowBytes, height, 1});
}

}  // namespace

CUresult checkFill(Session& session, uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height) {
  auto bytes = reachOfFill(destination, pitch, elementBytes, width, height);
  Where to = bytes ? locate(session, destination, *bytes) : Where::nowhere;
  if (to == Where::pooled && !session.memory.isReached(destination)) return CUDA_ERROR_INVALID_VALUE;
  return to == Where::device || to == Where::arena || to == Where::pooled ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool isFilledByHost(Session& session, uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height) {
  auto bytes = reachOfFill(destination, pitch, elementBytes, width, height);
  return bytes && session.memory.isWritableByHost(destination, *bytes);
}

void fillOnHost(uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width, uint64_t height) {
  for (uint64_t row = 0; row < height; ++row) {
    auto* to = fromWire<std::byte*>(destination + row * pitch);
    for (uint64_t i = 0; i < width; ++i) std::memcpy(to + i * elementBytes, &value, elementBytes);  // little-endian: the low bytes
  }
}

CUresult fillRows(Thread& thread, uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes,
                  uint64_t width, uint64_t height, uint64_t stream) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (CUresult bad = checkFill(thread.session, destination, pitch, elementBytes, width, height)) return bad;
  return acrossRings(thread, thread.deviceOf(stream), devicesOf(thread.session, destination), [&] {
    UsesManaged use(thread, thread.session.managed.isUsedIn(stream, destination));
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
