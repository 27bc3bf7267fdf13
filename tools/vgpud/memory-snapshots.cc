#include "tools/vgpud/memory-snapshots.h"

#include <kj/vector.h>

#include "vgpu/base/fail.h"
#include "vgpu/snapshot/snapshot-lock.h"

namespace vgpu::daemon {

void MemorySnapshots::keep(const std::string& path, PinnedHold hold, kj::Own<TargetFolder> folder) {
  snapshots.emplace(path, Kept{std::move(hold), kj::mv(folder), {}});
}

void MemorySnapshots::writeBegun(const std::string& path, kj::Own<WorkerProcess> writer) {
  snapshots.at(path).writer = kj::mv(writer);
}

void MemorySnapshots::writeEnded(const std::string& path) {
  if (auto found = snapshots.find(path); found != snapshots.end()) found->second.writer = nullptr;
}

MemorySnapshots::Kept MemorySnapshots::takeOut(const std::string& path) {
  auto found = snapshots.find(path);
  Kept kept = kj::mv(found->second);
  snapshots.erase(found);
  return kept;
}

kj::Promise<void> MemorySnapshots::release(const std::string& path) {
  if (!has(path)) return kj::READY_NOW;
  Kept kept = takeOut(path);
  auto closed = kept.folder->keep();
  return closed.attach(kj::mv(kept.folder), kj::mv(kept.writer));
}

kj::Promise<void> MemorySnapshots::remove(const std::string& path) {
  if (!has(path) || snapshots.at(path).writer.get() != nullptr) return kj::READY_NOW;
  Kept kept = takeOut(path);
  auto removed = kept.folder->discard();
  return removed.attach(kj::mv(kept.folder));
}

// What has been written by the time its writer has ended stays (SnapshotTarget::isReplaced).
kj::Promise<void> MemorySnapshots::removeAll() {
  kj::Vector<kj::Promise<void>> removed;
  while (!snapshots.empty()) {
    Kept kept = takeOut(std::string(snapshots.begin()->first));
    kj::Promise<void> stopped = kept.writer.get() == nullptr ? kj::Promise<void>(kj::READY_NOW) : kept.writer->stop();
    auto& folder = *kept.folder;
    removed.add(stopped.then([&folder] { return folder.discard(); }).attach(kj::mv(kept.folder), kj::mv(kept.writer)));
  }
  return kj::joinPromises(removed.releaseAsArray());
}

void requireOwnMemory(const std::string& directory, const std::string& wanted, const std::string& pool) {
  if (wanted.empty() || wanted == pool) return;
  if (snapshot::isHeld(directory))
    fail("the snapshot " + directory + " is in the memory of another vgpud: resume it on the node where it was suspended");
  fail("the snapshot " + directory +
       " is lost: it was in the memory of a vgpud that has ended, and was not on disk yet. `vgpuctl snapshots gc` removes what "
       "is left in a store; another directory is yours to remove");
}

}  // namespace vgpu::daemon
