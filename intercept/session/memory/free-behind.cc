// Memory that graphs used: ending a graph frees it without waiting, but earlier launches may still use it.
#include "intercept/session/call.h"
#include "intercept/session/memory/memory.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

void Memory::freeBehind(Thread& thread, uint64_t address, const StreamFence& fence) {
  thread.session.shared.freed(address);
  {
    std::lock_guard lock(mutex);
    freedLater[address] = {fence};
    anyFreedLater.store(true, std::memory_order_relaxed);
  }
  if (!thread.runsHostFunctions) freePassed(thread);  // a host function, for which a stream waits, must not wait at the gate
  if (anyFreedLater.load(std::memory_order_relaxed)) idleMemory.note(thread.session);
}

// Errors are ignored: they are those of a lost session.
void Memory::freePassed(Thread& thread) {
  if (!anyFreedLater.load(std::memory_order_relaxed)) return;
  std::vector<uint64_t> passed;
  std::optional<Return> returning;
  {
    std::lock_guard lock(mutex);
    for (auto& [address, freed] : freedLater)
      if (!freed.isTaken && isPast(thread.session, freed.fence)) {
        freed.isTaken = true;
        passed.push_back(address);
      }
    if (passed.empty()) return;
    returning.emplace(returns);
  }
  for (uint64_t address : passed) settlePassed(thread, address);
}

// The free's frame enters the ring before another allocation can get the addresses.
void Memory::settlePassed(Thread& thread, uint64_t address) {
  const bool isHost = inHostArena(address);
  isHost ? postHostFree(thread, address)
         : postFree(thread, static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes), address);
  bool isMuch = false;
  {
    std::lock_guard lock(mutex);
    remove(address);
    isMuch = arenaOf(address).freeBytes() > keptFor(arenaOf(address));
    freedLater.erase(address);
    anyFreedLater.store(!freedLater.empty(), std::memory_order_relaxed);
  }
  if (isMuch) idleMemory.note(thread.session);
}

}  // namespace vgpu::client
