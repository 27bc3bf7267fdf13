#include "tools/vgpuctl/stored-snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/vgpuctl/snapshot-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-lock.h"
#include "vgpu/snapshot/stored-chunks.h"

namespace vgpu::ctl {
namespace {

using namespace snapshot;
namespace fs = std::filesystem;

std::vector<std::string> directoriesOf(const ChunkStore& store, bool (*is)(const std::string& directory)) {
  std::vector<std::string> directories;
  for (auto& name : store.snapshots())
    if (std::string directory = store.path() + "/snapshots/" + name; is(directory)) directories.push_back(directory);
  return directories;
}

bool isEmpty(const std::string& directory) {
  std::error_code error;
  return fs::directory_iterator(directory, error) == fs::directory_iterator();
}

std::string require(const ChunkStore& store, const std::string& name, bool (*is)(const std::string& directory)) {
  std::string directory = ChunkStore::directoryOf(store.path(), name);
  if (!is(directory)) fail(fmt::format("the store {} has no snapshot {}; `vgpuctl snapshots ls` lists them", store.path(), name));
  return directory;
}

bool isFinished(const std::string& directory) { return isWhole(directory) || hasLostManifest(directory); }

}  // namespace

bool isWhole(const std::string& directory) { return fs::exists(directory + "/" + manifestFile); }

// If the manifest is renamed concurrently, in either direction, checking in this order finds one of the two names.
bool hasLostManifest(const std::string& directory) {
  auto isUnfinished = [&] { return fs::exists(directory + "/" + unfinishedManifest); };
  return !isUnfinished() && !isWhole(directory) && !isUnfinished() && !isEmpty(directory);
}

// Checked twice, because the snapshot may become complete in between; the lock is held until it is.
bool isBeingWritten(const std::string& directory) {
  return !isWhole(directory) && !hasLostManifest(directory) && isHeld(directory) && !isWhole(directory);
}

bool needsChunks(const std::string& directory) {
  fs::path path(directory);
  bool isInside = path.parent_path().filename() == sessionsFolder;
  return isInside && !isFinished(path.parent_path().parent_path()) ? isWhole(directory) : isFinished(directory);
}

std::vector<std::string> wholeSnapshots(const ChunkStore& store) { return directoriesOf(store, isWhole); }

std::vector<std::string> finishedSnapshots(const ChunkStore& store) { return directoriesOf(store, isFinished); }

std::string wholeSnapshot(const ChunkStore& store, const std::string& name) { return require(store, name, isWhole); }

std::string finishedSnapshot(const ChunkStore& store, const std::string& name) { return require(store, name, isFinished); }

std::vector<std::string> withSessions(const std::vector<std::string>& directories) {
  std::vector<std::string> all;
  for (auto& directory : directories) {
    all.push_back(directory);
    std::error_code error;
    std::vector<std::string> sessions;
    for (fs::directory_iterator entry(directory + "/" + sessionsFolder, error), end; !error && entry != end;
         entry.increment(error))
      sessions.push_back(entry->path());
    std::ranges::sort(sessions);
    all.insert(all.end(), sessions.begin(), sessions.end());
  }
  return all;
}

std::vector<std::string> snapshotsInNeed(const ChunkStore& store) {
  auto all = withSessions(directoriesOf(store, [](const std::string&) { return true; }));
  std::erase_if(all, [](auto& directory) { return !needsChunks(directory); });
  return all;
}

std::vector<ChunkName> chunksOf(const ChunkStore& store, const std::string& directory) {
  SnapshotReader reader(directory);
  Manifest manifest = readManifest(reader);
  auto names = storedChunksOf(readChunkList(reader, manifest));
  if (!manifest.pool.empty()) std::erase_if(names, [&](auto& name) { return !store.lists(name); });
  return names;
}

void makeUnique(std::vector<ChunkName>& names) {
  std::ranges::sort(names);
  auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
}

bool isLost(const std::string& directory) {
  auto header = headerOf(directory);
  return header && !header->pool.empty() && !isHeld(directory);
}

}  // namespace vgpu::ctl
