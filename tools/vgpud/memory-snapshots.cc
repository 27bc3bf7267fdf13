#include "tools/vgpud/memory-snapshots.h"

#include <kj/vector.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "vgpu/base/fail.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-lock.h"

namespace vgpu::daemon {
namespace {

constexpr auto idleLimit = 60 * kj::SECONDS;  // a disk may be slow

// Fields 14 and 15 of /proc/PID/stat: the processor time that a process has used. 0 if it has ended.
uint64_t processorTicks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  size_t name = line.rfind(')');
  if (name == line.npos) return 0;
  std::istringstream fields(line.substr(name + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  uint64_t user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

}  // namespace

void MemorySnapshots::keep(const std::string& path, PinnedHold hold, kj::Own<TargetFolder> folder, kj::Promise<void> others,
                           bool toBeWritten) {
  snapshots.emplace(path, Kept{std::move(hold), kj::mv(folder), kj::mv(others), toBeWritten, {}});
}

std::string MemorySnapshots::around(const std::string& path) const {
  if (has(path)) return path;
  const std::filesystem::path sessions = std::filesystem::path(path).parent_path();
  const std::string first = sessions.filename() == snapshot::sessionsFolder ? sessions.parent_path() : "";
  return has(first) ? first : "";
}

void MemorySnapshots::writeBegun(const std::string& path, kj::Own<WorkerProcess> writer) {
  auto& kept = snapshots.at(path);
  kept.toBeWritten = true;
  kept.writer = kj::mv(writer);
}

void MemorySnapshots::writeEnded(const std::string& path) {
  auto found = snapshots.find(path);
  if (found == snapshots.end()) return;
  found->second.toBeWritten = false;
  found->second.writer = nullptr;
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
  if (!has(path) || isToBeWritten(path)) return kj::READY_NOW;
  Kept kept = takeOut(path);
  return TargetFolder::discardAfter(kj::mv(kept.others), kj::mv(kept.folder));
}

kj::Promise<void> MemorySnapshots::writesEnded(kj::Timer& timer) { return awaitWrites(timer, 0, timer.now()); }

kj::Promise<void> MemorySnapshots::awaitWrites(kj::Timer& timer, uint64_t worked, kj::TimePoint since) {
  uint64_t now = 0;
  bool isWriting = false;
  for (auto& [path, kept] : snapshots) {
    isWriting |= kept.toBeWritten;
    if (kept.writer.get() != nullptr) now += processorTicks(kept.writer->pid());
  }
  if (now != worked) since = timer.now();
  if (!isWriting || timer.now() - since > idleLimit) return kj::READY_NOW;
  return timer.afterDelay(50 * kj::MILLISECONDS).then([this, &timer, now, since] { return awaitWrites(timer, now, since); });
}

// The caller of a write uses its process until it has noticed the end, so the processes are killed but not destroyed.
kj::Promise<void> MemorySnapshots::stopWriters(kj::Timer& timer) {
  for (auto& [path, kept] : snapshots)
    if (kept.writer.get() != nullptr) kept.writer->kill();
  return writesEnded(timer);
}

// Snapshots that are on disk by now stay (SnapshotTarget::isReplaced).
kj::Promise<void> MemorySnapshots::removeAll() {
  kj::Vector<kj::Promise<void>> removed;
  while (!snapshots.empty()) {
    Kept kept = takeOut(std::string(snapshots.begin()->first));
    // Eager, because a snapshot may wait for another one's folder, and joined promises keep their results until all have resolved.
    removed.add(TargetFolder::discardAfter(kj::mv(kept.others), kj::mv(kept.folder)).eagerlyEvaluate(nullptr));
  }
  return kj::joinPromises(removed.releaseAsArray());
}

bool isOnDisk(const std::string& directory) {
  bool isThere = false;
  kj::runCatchingExceptions([&] { isThere = snapshot::readHeader(snapshot::SnapshotReader(directory)).pool.empty(); });
  return isThere;
}

void requireOwnMemory(const std::string& directory, const std::string& wanted, const std::string& pool) {
  if (wanted.empty() || wanted == pool) return;
  if (snapshot::isHeld(directory))
    fail("the snapshot " + directory + " is in the memory of another vgpud: resume it on the node where it was suspended");
  fail("the snapshot " + directory +
       " is lost: it was in the memory of a vgpud that has ended, and was not on disk yet. `vgpuctl snapshots gc` removes what is left in "
       "a store; remove another directory yourself");
}

}  // namespace vgpu::daemon
