// A program that shares host memory with its GPU's worker, and whose session is to move to another host: it ends the sharing, and its
// pinned memory has two copies from then on (docs/migration.md, "Pinned memory that was shared").
#include <algorithm>

#include "intercept/session/given-files.h"
#include "intercept/session/managed/touch-faults.h"
#include "intercept/session/memory/memory.h"
#include "intercept/session/session.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

std::string Memory::whatMustStay(const Session& session) const {
  auto isStaging = [&](auto& one) {
    auto freed = freedLater.find(one.first);
    return one.second.kind == HostKind::staging && (freed == freedLater.end() || !isPast(session, freed->second.fence));
  };
  auto adopted = std::ranges::count_if(registered, [](auto& one) { return one.second.arenaAddress != 0; });
  auto staged = std::ranges::count_if(hostAllocations, isStaging);
  auto physical = std::ranges::count_if(hostAllocations, [](auto& one) { return one.second.kind == HostKind::physical; });
  std::string what;
  auto join = [&](const std::string& more) { what += (what.empty() ? "" : " and ") + more; };
  auto add = [&](auto count, const char* of) {
    if (count != 0) join(std::to_string(count) + of);
  };
  add(adopted, " registered ranges of its own memory (cudaHostRegister)");
  add(staged, " copies of pageable memory in graphs");
  add(physical, " physical allocations of host memory (cuMemCreate)");
  if (!session.files().isEmpty()) join("memory that other processes have opened");
  return what;
}

// allocateHost() adds its entry, and freeHost() removes it, under the lock under which it checks sharing: none is missed here.
std::string Memory::comeApart(const Session& session, ManagedMemory& managed, Mapping& arena,
                              const std::function<bool()>& givesUp) {
  auto held = managed.hold(givesUp);
  if (!held) return "the migration was cancelled";
  std::lock_guard lock(mutex);
  if (!sharesHost()) return "";
  if (std::string what = whatMustStay(session); !what.empty())
    return "it has " + what +
           ", which it shares with the GPU's host. A program that is run through a network address of its node (vgpuctl --node "
           "tcp:HOST:PORT or tls:HOST:PORT run) shares no memory with it";
  std::vector<Mapping::Piece> kept;
  std::vector<HostPages> pages;
  for (auto& [address, allocation] : hostAllocations) {
    if (allocation.kind == HostKind::staging) continue;  // not needed any more
    kept.push_back({address - hostArenaBase, roundUp(allocation.bytes, hostPageBytes)});
    auto made = HostPages::of(address, kept.back().bytes, arenaFile, kept.back().offset);
    if (!made) return "the system has no memory for another mapping of its pinned memory; vm.max_map_count may be too low";
    pages.push_back(std::move(*made));
  }
  // Another thread may have shared a file since the check above; from here on none can.
  if (!session.files().close()) return "it has just begun to share memory with other processes";
  if (!kept.empty()) serveTouches();
  arena.unmapAllBut(kept);
  for (size_t i = 0; i < kept.size(); ++i)
    managed.take(held, hostMemoryDevice, hostArenaBase + kept[i].offset, kept[i].bytes, std::move(pages[i]));
  sharesAll = false;
  return "";
}

}  // namespace vgpu::client
