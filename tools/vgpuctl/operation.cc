#include "tools/vgpuctl/operation.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/common/snapshot-store.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/progress-line.h"
#include "vgpu/base/fail.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

// A new snapshot in the store, named `name` or as the user named the session: for `session` "name:app" it is "app".
NewSnapshot inStore(const std::string& session, const std::string& name) {
  requireSoundStore(snapshotStore());
  ChunkStore store(snapshotStore());
  return name.empty() ? NewSnapshot::like(store, session.substr(session.find(':') + 1)) : NewSnapshot::called(store, name);
}

// The directory as an absolute path; if it is in a store, the store's index is checked first (docs/snapshot.md, Store).
std::string inSoundStore(const std::string& directory) {
  std::string path = absolute(directory);
  if (auto store = ChunkStore::around(path)) requireSoundStore(*store);
  return path;
}

}  // namespace

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

json phasesJson(control::Report::Reader report) {
  json phases = json::array();
  for (auto phase : report.getPhases()) phases.push_back({{"name", phase.getName().cStr()}, {"seconds", phase.getSeconds()}});
  return phases;
}

json reportJson(control::Report::Reader report) {
  return {{"seconds", report.getSeconds()},         {"gateSeconds", report.getGateSeconds()},
          {"deviceBytes", report.getDeviceBytes()}, {"storedBytes", report.getStoredBytes()},
          {"objects", report.getObjects()},         {"pendingCalls", report.getPendingCalls()},
          {"memoryBytes", report.getMemoryBytes()}, {"copiedBytes", report.getCopiedBytes()},
          {"twinBytes", report.getTwinBytes()},     {"phases", phasesJson(report)}};
}

NewSnapshot targetOf(const SuspendOptions& options) {
  bool isInStore = options.directory.empty() || options.directory == inMemory;
  return isInStore ? inStore(options.session, options.name) : NewSnapshot(inSoundStore(options.directory));
}

std::string sourceOf(const std::string& snapshot) {
  if (snapshot.find('/') != snapshot.npos || std::filesystem::is_directory(snapshot)) return inSoundStore(snapshot);
  std::string stored = ChunkStore::directoryOf(snapshotStore(), snapshot);
  if (!std::filesystem::is_directory(stored))
    fail(fmt::format("there is no snapshot {0}: the store ({1}) has none of that name, and there is no directory {0}",
                     snapshot, stored));
  requireSoundStore(snapshotStore());
  return stored;
}

std::string summary(control::Report::Reader report) {
  uint64_t memoryBytes = report.getMemoryBytes();
  uint64_t twinBytes = report.getTwinBytes();
  std::string pinned = memoryBytes == 0 ? "" : fmt::format("{} in pinned memory, ", humanBytes(memoryBytes));
  std::string twin = twinBytes == 0 ? "" : fmt::format("{} copied from another session's, ", humanBytes(twinBytes));
  return fmt::format("{} of device memory, {}{}{} on disk, {} objects, {} waiting calls, {:.3f} s",
                     humanBytes(report.getDeviceBytes()), twin, pinned, humanBytes(report.getStoredBytes()), report.getObjects(),
                     report.getPendingCalls(), report.getSeconds());
}

}  // namespace vgpu::ctl
