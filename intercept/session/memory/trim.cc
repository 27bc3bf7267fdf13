// Leased memory that is not allocated: how much there is, and its return to the worker.
#include "intercept/session/call.h"
#include "intercept/session/memory/memory.h"

namespace vgpu::client {

namespace {

// How much free memory is always kept: this, or as much as is in use.
constexpr uint64_t keptIdle = 256 * MiB;

}  // namespace

void Memory::trim(Thread& thread, unsigned device, uint64_t keepBytes) {
  for (auto* arena : {&devices[device], &managedParts[device]}) trim(thread, device, *arena, keepBytes);
}

void Memory::trim(Thread& thread, unsigned device, Arena& arena, uint64_t keepBytes) {
  for (;;) {
    std::optional<Arena::Range> idle;
    std::optional<Return> returning;
    {
      std::lock_guard lock(mutex);
      if (arena.freeBytes() <= keepBytes) return;
      idle = arena.takeIdleLease();
      if (!idle) return;
      returning.emplace(returns);
    }
    if (&arena == &managedParts[device]) thread.session.managed.places.forget(idle->address);
    {
      Call<api::Cuda::EndLeaseParams> frame(thread.on(device), api::Method::endLease);
      frame->setAddress(idle->address);
      if (frame.call() != CUDA_SUCCESS) continue;  // the worker still has a mapping there: the addresses stay unused
    }
    std::lock_guard lock(mutex);
    arena.settleLease(idle->address, false);
  }
}

uint64_t Memory::keptFor(const Arena& arena, uint64_t pendingBytes) { return std::max(keptIdle, arena.usedBytes() - pendingBytes); }

bool Memory::isMuchFree(const PoolSource& source) {
  using Kind = PoolSource::Kind;
  const Arena& ofDevice = source.kind == Kind::managed ? managedParts[source.device] : devices[source.device];
  const Arena& arena = source.kind == Kind::host ? host : ofDevice;
  const uint64_t pending = pools.freedBytes(source);
  return arena.freeBytes() + pending > keptFor(arena, pending);
}

void Memory::completeFrees(Thread& thread) {
  collectAll(thread);
  freePassed(thread);
}

void Memory::completeFrees(Session& session, const std::function<bool()>& givesUp) {
  if (pools.hasAny() || anyFreedLater.load(std::memory_order_relaxed)) idleMemory.completeFrees(session, givesUp);
}

bool Memory::trimUnneeded(Thread& thread, unsigned device) {
  if (thread.session.fault(device) != CUDA_SUCCESS) return true;  // nothing can be returned before the context is renewed
  collect(thread, device, false);
  freePassed(thread);
  bool more = anyFreedLater.load(std::memory_order_relaxed);
  for (auto* arena : {&devices[device], &managedParts[device]}) more |= trimUnneeded(thread, device, *arena);
  if (device == hostMemoryDevice) more |= trimUnneeded(thread, device, host);
  std::lock_guard lock(mutex);
  for (const auto kind : {PoolSource::Kind::device, PoolSource::Kind::managed, PoolSource::Kind::host}) {
    const PoolSource source{kind, device};
    more |= pools.freedBytes(source) != 0 && isMuchFree(source);
  }
  return more;
}

bool Memory::trimUnneeded(Thread& thread, unsigned device, Arena& arena) {
  uint64_t unneeded, keep, free;
  {
    std::lock_guard lock(mutex);
    unneeded = arena.takeLeastFree();
    keep = keptFor(arena);
    free = arena.freeBytes();
  }
  if (free <= keep) return false;
  const uint64_t rest = std::max(keep, free - unneeded);
  if (&arena != &host) trim(thread, device, arena, rest);
  else if (trimHost(thread, rest, true) == CUDA_ERROR_NOT_READY) return true;
  return unneeded < free - keep;
}

// Freed managed memory stays where the program wanted it, so runs that lie on another device are counted there.
uint64_t Memory::freeBytes(Thread& thread, unsigned device) {
  collect(thread, device, false);
  freePassed(thread);
  const auto moved = thread.session.managed.places.elsewhere();
  std::lock_guard lock(mutex);
  uint64_t free = devices[device].freeBytes() + managedParts[device].freeBytes();
  for (auto& run : moved) {
    const bool isOfDevice = &arenaOf(run.address) == &managedParts[device];
    if (isOfDevice || run.device == device) {
      const uint64_t bytes = arenaOf(run.address).freeBytesIn(run.address, run.bytes);
      free += run.device == device ? bytes : -bytes;
    }
  }
  return free;
}

}  // namespace vgpu::client
