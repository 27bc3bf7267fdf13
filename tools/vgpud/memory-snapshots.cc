#include "tools/vgpud/memory-snapshots.h"

#include <kj/vector.h>

#include "vgpu/base/fail.h"
#include "vgpu/snapshot/snapshot-lock.h"

namespace vgpu::daemon {

void MemorySnapshots::keep(const std::string& path, PinnedHold hold, kj::Own<TargetFolder> folder) {
  snapshots.emplace(path, Kept{std::move(hold), kj::mv(folder)});
}

uint64_t MemorySnapshots::bytesOf(const std::string& path) const {
  auto found = snapshots.find(path);
  return found == snapshots.end() ? 0 : found->second.hold->bytes();
}

kj::Promise<void> MemorySnapshots::remove(const std::string& path) {
  auto found = snapshots.find(path);
  if (found == snapshots.end()) return kj::READY_NOW;
  kj::Own<TargetFolder> folder = kj::mv(found->second.folder);
  snapshots.erase(found);
  auto removed = folder->discard();
  return removed.attach(kj::mv(folder));
}

kj::Promise<void> MemorySnapshots::removeAll() {
  kj::Vector<kj::Promise<void>> removed;
  while (!snapshots.empty()) removed.add(remove(std::string(snapshots.begin()->first)));
  return kj::joinPromises(removed.releaseAsArray());
}

void requireOwnMemory(const std::string& directory, const std::string& wanted, const std::string& pool) {
  if (wanted.empty() || wanted == pool) return;
  if (snapshot::isHeld(directory))
    fail("the snapshot " + directory + " is in the memory of another vgpud: resume it on the node where it was suspended");
  fail("the snapshot " + directory +
       " is lost: it was in the memory of a vgpud that has ended, and was not on disk yet. `vgpuctl snapshots rm` removes what is left of it");
}

}  // namespace vgpu::daemon
