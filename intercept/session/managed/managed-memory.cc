#include "intercept/session/managed/managed-memory.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "intercept/session/call.h"
#include "intercept/session/copy/staged-copy.h"
#include "intercept/session/in-context.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {

namespace {

// How often a touch waits for work without stopping other threads, which may keep giving the devices more. After that it stops them, but
// only for `mostHeldUp`, because the work that it waits for may wait for one of those threads.
constexpr int polite = 3;
constexpr auto mostHeldUp = std::chrono::seconds(1);

uint64_t pageOf(uint64_t address) { return address / hostPageBytes * hostPageBytes; }

ByteSpan common(const ByteSpan& a, const ByteSpan& b) {
  uint64_t begin = std::max(a.address, b.address), end = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

// Leaves errors of posted work to the program's next call.
CUresult awaitStream(Thread& thread, uint64_t stream) {
  Call<api::Cuda::StreamSynchronizeParams> frame(thread.of(stream), api::Method::streamSynchronize);
  frame->setStream(stream);
  return frame.reach();
}

// A number that grows with every frame that gives any device work.
uint64_t workGiven(const Session& session) {
  uint64_t sum = 0;
  for (unsigned device = 0; device < session.devices.size(); ++device)
    sum += session.progress[device].lastWork.get();
  return sum;
}

}  // namespace

ManagedMemory::Ranges::iterator ManagedMemory::rangeOf(uint64_t address) {
  return holding(ranges, address, [](const ManagedRange& range) { return range.place.bytes; });
}

ManagedRange& ManagedMemory::insert(ManagedRange range) {
  ByteSpan place = range.place;
  ManagedRange& inserted = ranges.emplace(place.address, std::move(range)).first->second;
  // Release: a handler that finds an address in the range (acquire) sees that the handler's installation is complete.
  if (place.address < lowest.load(std::memory_order_relaxed)) lowest.store(place.address, std::memory_order_release);
  if (place.end() > highest.load(std::memory_order_relaxed)) highest.store(place.end(), std::memory_order_release);
  return inserted;
}

// The program must not see the memory's earlier content.
CUresult ManagedMemory::fillWithZeros(Thread& thread, unsigned device, ByteSpan span) {
  const uint64_t stream = streamOf(thread, device);
  {
    Call<api::Cuda::FillParams> frame(thread.of(stream), api::Method::fill);
    frame->setDestination(span.address);
    frame->setElementBytes(4);
    frame->setWidth(span.bytes / 4);
    frame->setHeight(1);
    frame.setStream(stream);
    if (CUresult error = frame.post()) return error;
  }
  return awaitStream(thread, stream);
}

CUresult ManagedMemory::add(Thread& thread, unsigned device, uint64_t address, uint64_t bytes) {
  places.begin(thread, {address, bytes}, device);
  std::lock_guard lock(mutex);
  if (CUresult error = fillWithZeros(thread, device, {address, bytes})) return error;
  auto pages = HostPages::at(address, bytes);
  if (!pages) return CUDA_ERROR_OUT_OF_MEMORY;
  ManagedRange range(std::move(*pages), {address, bytes}, device);
  range.shared = {{range.place}};
  range.zeroUntil = workGiven(thread.session);
  insert(std::move(range));
  return CUDA_SUCCESS;
}

std::unique_lock<std::mutex> ManagedMemory::hold(const std::function<bool()>& givesUp) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock() && !givesUp()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.try_lock();
  }
  return lock;
}

// The range is inserted first, so that a touch finds it when the program loses access. What the program wrote there is the worker's too.
void ManagedMemory::take(const std::unique_lock<std::mutex>&, unsigned device, uint64_t address, uint64_t bytes, HostPages pages) {
  ManagedRange& range = insert(ManagedRange(std::move(pages), {address, bytes}, device));
  range.shared = {{range.place}};
  range.hasSamePages = true;
  range.pages.take();
}

// Several variables may share a page: the first one's range contains it. A managed variable that modules of several devices share is copied
// by the first module's device, for all of them.
CUresult ManagedMemory::addVariable(Thread& thread, unsigned device, uint64_t module, uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex);
  giveAll(thread);
  const ByteSpan variable{address, bytes};
  const uint64_t end = roundUp(variable.end(), hostPageBytes);
  for (uint64_t at = pageOf(address); at < end;) {
    auto found = rangeOf(at);
    if (found == ranges.end()) {
      auto next = ranges.upper_bound(at);
      uint64_t until = next == ranges.end() ? end : std::min(end, next->first);
      auto pages = HostPages::at(at, until - at);
      if (!pages) return CUDA_ERROR_OUT_OF_MEMORY;
      insert(ManagedRange(std::move(*pages), {at, until - at}, device));
      found = rangeOf(at);
    }
    found->second.shared.push_back({common(variable, found->second.place), module});
    at = found->second.place.end();
  }
  return CUDA_SUCCESS;
}

void ManagedMemory::remove(uint64_t address) {
  std::lock_guard lock(mutex);
  auto found = ranges.find(address);
  if (found == ranges.end()) return;
  advice.forget(address, found->second.place.bytes);
  ranges.erase(found);
}

void ManagedMemory::expect(uint64_t address) {
  std::lock_guard lock(mutex);
  if (auto found = rangeOf(address); found != ranges.end()) found->second.expect(address);
}

void ManagedMemory::removeModule(uint64_t module) {
  std::lock_guard lock(mutex);
  for (auto range = ranges.begin(); range != ranges.end();) {
    auto& shared = range->second.shared;
    const bool hadAny = std::erase_if(shared, [&](auto& part) { return part.module == module; }) > 0;
    range = hadAny && shared.empty() ? ranges.erase(range) : std::next(range);
  }
}

std::optional<ByteSpan> ManagedMemory::find(uint64_t address) const {
  if (!mayHold(address) || inHostArena(address)) return std::nullopt;  // pinned memory counts as pinned, even if it has two copies
  std::lock_guard lock(mutex);
  auto found = const_cast<ManagedMemory*>(this)->rangeOf(address);
  if (found == ranges.end()) return std::nullopt;
  for (auto& shared : found->second.shared)
    if (address >= shared.span.address && address < shared.span.end()) return shared.span;
  return std::nullopt;
}

uint64_t ManagedMemory::bytesFrom(uint64_t address) const {
  if (!mayHold(address)) return 0;
  std::lock_guard lock(mutex);
  auto found = const_cast<ManagedMemory*>(this)->rangeOf(address);
  return found == ranges.end() ? 0 : found->second.place.end() - address;
}

// Waits, with `lock` released, until all work that may use managed memory has ended. Other threads may give the devices more work
// meanwhile. Results are ignored: the program's next call gets them too.
void ManagedMemory::exclude(Thread& thread, std::unique_lock<std::mutex>& lock) {
  const uint64_t before = gives;
  {
    lock.unlock();
    KJ_DEFER(lock.lock());
    thread.session.gate.awaitOthers(thread.mark);
    for (unsigned device = 0; device < thread.session.devices.size(); ++device) awaitDevice(thread, device);
  }
  isExcluded |= gives == before;
}

uint64_t ManagedMemory::streamOf(Thread& thread, unsigned device) {
  uint64_t stream = streams[device].load(std::memory_order_relaxed);
  if (stream != 0 && thread.session.handles.isLive(api::Kind::STREAM, stream)) return stream;
  // Streams may share a hardware queue, and then wait for each other's work: bytes for a host function must not queue behind the stream's
  // wait for that function. Streams of another priority use other queues.
  stream = makeOwnStream(thread, device, thread.session.devices[device].greatestPriority);
  streams[device].store(stream, std::memory_order_relaxed);  // relaxed: only the number is read
  return stream;
}

// Checked inside the gate, where the session cannot leave the host.
bool ManagedMemory::isSameInWorker(Thread& thread, const ManagedRange& range) const {
  if (!range.hasSamePages) return false;
  Gate::Pass inside(thread.session.gate, thread.mark);
  return !hasLeft.load(std::memory_order_relaxed);
}

// Copies between the device and the pages, and waits for the copy.
CUresult ManagedMemory::moveRun(Thread& thread, const ManagedRange& range, ByteSpan span, bool toDevice) {
  InContext onDevice(thread, thread.session.primaryContext(range.device));  // the calling thread may have no context
  const uint64_t stream = streamOf(thread, range.device);
  for (auto shared = range.shared.begin(); shared != range.shared.end(); ++shared) {
    ByteSpan part = common(shared->span, span);
    auto isSame = [&](auto& other) { return other.span.address == shared->span.address; };
    if (part.bytes == 0 || std::any_of(range.shared.begin(), shared, isSame)) continue;
    auto device = CopyEnd::memory(part.address), host = CopyEnd::memory(toWire(range.pages.ours(part.address)));
    const BoxSize size{part.bytes, 1, 1};
    CUresult error = toDevice ? copyFromPageable(thread, device, host, size, 1, stream)
                              : copyToPageable(thread, host, device, size, 1, stream);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

// Errors are those of a context that has ended, or of a lost session: the next call returns them, and the program's data are lost anyway.
CUresult ManagedMemory::giveAll(Thread& thread) {
  CUresult result = CUDA_SUCCESS;
  for (uint64_t address : std::exchange(opened, {})) {
    const auto found = ranges.find(address);
    if (found == ranges.end() || !found->second.isOpen()) continue;
    ManagedRange& range = found->second;
    std::vector<ByteSpan> written;
    range.forAccessible([&](const ManagedRange::Run& run) {
      if (run.access == HostAccess::write) written.push_back(range.spanOf(run));
    });
    range.zeroUntil.reset();
    range.takeAll();
    if (written.empty() || isSameInWorker(thread, range)) continue;
    for (auto& span : written)
      if (CUresult error = moveRun(thread, range, span, true)) result = error;
    if (CUresult error = awaitStream(thread, streams[range.device].load(std::memory_order_relaxed))) result = error;
  }
  return result;
}

// The work after the function in its stream was posted after all pages had been given to the device. So pages must only be given back if
// the function itself has touched some.
void ManagedMemory::runInStream(Session& session, const std::function<void()>& function) {
  Thread& thread = Thread::current(session);
  thread.runsHostFunctions = true;
  thread.hasTouched = false;
  function();
  if (!thread.hasTouched) return;
  UsesManaged ownFrames(thread, false);
  std::lock_guard lock(mutex);
  giveAll(thread);
}

void ManagedMemory::giveToDevice(Thread& thread) {
  UsesManaged ownFrames(thread, false);  // not the caller's frame
  std::unique_lock lock(mutex);
  insistentEnded.wait_for(lock, mostHeldUp, [&] { return insistent == 0; });
  if (!touched.load(std::memory_order_relaxed)) return;  // another thread was first
  giveAll(thread);
  touched.store(false, std::memory_order_relaxed);
  isExcluded = false;
  ++gives;
}

// No work that may use the range is outstanding, and none is posted while `mutex` is held.
void ManagedMemory::bring(Thread& thread, ManagedRange& range, uint64_t address, HostAccess access) {
  if (advice.prefersHost(address)) range.expect(address);
  const auto run = range.touched(address);
  const bool isZero = range.zeroUntil && *range.zeroUntil == workGiven(thread.session);
  if (run.access == HostAccess::none && !isZero) {
    range.zeroUntil.reset();
    if (!isSameInWorker(thread, range)) moveRun(thread, range, range.spanOf(run), false);
  }
  auto allow = [&] {
    if (!range.isOpen()) opened.push_back(range.place.address);
    return range.allow(run, access);
  };
  if (allow()) return;
  // Too many mappings: giving all pages back joins them into one mapping.
  giveAll(thread);
  KJ_REQUIRE(allow(), "the system refuses access to managed memory; vm.max_map_count may be too low");
}

bool ManagedMemory::touch(Thread& thread, uint64_t address, bool writes, Thread* other) {
  const HostAccess wanted = writes ? HostAccess::write : HostAccess::read;
  Thread& toucher = other == nullptr ? thread : *other;
  Gate::Outside meanwhile(thread.session.gate, toucher.mark);
  UsesManaged ownFrames(thread, false);
  toucher.hasTouched = true;
  std::unique_lock lock(mutex);
  int waits = 0;
  KJ_DEFER({
    if (waits > polite && --insistent == 0) insistentEnded.notify_all();
  });
  for (;;) {
    auto found = rangeOf(address);
    if (found == ranges.end()) return false;
    if (const HostAccess access = found->second.accessAt(address); access >= wanted) {
      found->second.pages.allowAgain(address, access);
      return true;
    }
    touched.store(true, std::memory_order_relaxed);
    if (isExcluded || toucher.runsHostFunctions) {
      bring(thread, found->second, address, wanted);
      return true;
    }
    if (++waits == polite + 1) ++insistent;
    exclude(thread, lock);
  }
}

void ManagedMemory::touchAll(Thread& thread, uint64_t address, uint64_t bytes, bool writes) {
  for (uint64_t at = address; at < address + bytes; at = pageOf(at) + hostPageBytes)
    if (mayHold(at) && !touch(thread, at, writes)) return;
}

}  // namespace vgpu::client
