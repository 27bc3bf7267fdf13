// snapshots verify: reads everything that snapshots need, in the store and in directories, and reports what has changed since it was
// written.
#include <fmt/format.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/common/snapshot-store.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "tools/vgpuctl/stored-snapshots.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/process-part.h"
#include "vgpu/snapshot/stored-chunks.h"

namespace vgpu::ctl {
namespace {

using namespace snapshot;

void verifyProcess(const std::string& directory, const ProcessSum& process) {
  DoneLine progress("verify the process of " + nameOf(directory), process.imageBytes);
  ProcessPart part = readProcessPart(directory, process);
  verifySessions(directory, part);
  verifyImages(directory, part, [&](uint64_t bytes) { progress.add(bytes); });
}

// Sessions that share can only be resumed together, so all must be there.
void requireAllThatShare(const std::string& directory) {
  std::set<std::string> there, wanted;
  for (auto& one : withSessions({directory}))
    if (auto header = headerOf(one)) {
      there.insert(header->identity.session);
      wanted.insert(header->identity.sharesWith.begin(), header->identity.sharesWith.end());
    }
  for (auto& session : wanted)
    if (!there.contains(session))
      fail(fmt::format("the snapshot of session {}, which shares memory or events with "
                       "it, is missing in its folder {}", session, sessionsFolder));
}

class Verification {
 public:
  // Runs the check `that`; if it throws, reports why the snapshot cannot be resumed.
  void check(const std::string& directory, const std::function<void()>& that) {
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions(that)) {
      fmt::print(stderr, "vgpuctl: snapshot {} cannot be resumed: {}\n", nameOf(directory), printable(reasonOf(*exception)));
      isSound = false;
    }
  }
  // The store in a folder: its index is checked before it is opened, both once, by whatever path it is reached.
  ChunkStore& storeIn(const std::string& folder) { return open(folder).chunks; }
  void snapshot(const std::string& around) {
    const auto directories = withSessions({around});
    if (std::ranges::any_of(directories, isBeingWritten)) {  // even if only one of those that share: the snapshot needs it
      fmt::print("snapshot {} is being written, and was not read\n", nameOf(around));
      return;
    }
    ++snapshots;
    for (auto& directory : directories) check(directory, [&] { verify(directory); });
    check(around, [&] { requireAllThatShare(around); });
  }
  int end() const {
    size_t chunks = ownChunks;
    for (auto& [folder, store] : stores) chunks += store->compared.size();
    fmt::print("{} snapshots, {} chunks: {}\n", snapshots, chunks, isSound ? "all are intact" : "not all are intact");
    return isSound ? 0 : 1;
  }

 private:
  struct Store {
    explicit Store(const std::string& folder) : chunks(folder) {}
    ChunkStore chunks;
    std::vector<ChunkName> compared;  // chunks whose digests were verified
  };

  void verify(const std::string& directory) {
    if (!isWhole(directory) && !hasLostManifest(directory)) fail(fmt::format("there is no snapshot in {}", directory));
    if (isLost(directory))
      fail(fmt::format("session {} was in the memory of a vgpud that has ended", headerOf(directory)->identity.session));
    verifyFiles(directory);  // before readHeader, which refuses other versions
    SnapshotReader reader(directory);
    Header header = readHeader(reader);
    if (header.process) verifyProcess(directory, *header.process);
    if (!header.pool.empty())
      fmt::print("the memory of session {} of snapshot {} is not on disk yet, and was not read\n", header.identity.session,
                 nameOf(directory));
    if (header.packs.empty())
      verifyStored(directory);
    else
      verifyOwn(reader, directory);
    faultPoint("verify.compared");
  }

  Store& open(const std::string& folder) {
    const std::string path = std::filesystem::weakly_canonical(folder);
    auto found = stores.find(path);
    if (found == stores.end()) {
      requireSoundStore(folder);
      found = stores.emplace(path, std::make_unique<Store>(folder)).first;
    }
    return *found->second;
  }

  // Verifies those of its chunks that have not been verified yet.
  void verifyStored(const std::string& directory) {
    auto folder = ChunkStore::around(directory);
    if (!folder) fail("its chunks are in a store of snapshots, but its directory is not in a store");
    Store& store = open(*folder);
    auto wanted = chunksOf(store.chunks, directory);
    std::erase_if(wanted, [&](auto& chunk) { return std::ranges::binary_search(store.compared, chunk); });
    auto chunks = locate(store.chunks, wanted);
    DoneLine progress("verify " + nameOf(directory), bytesOf(chunks));
    verifyChunks(store.chunks, std::move(chunks), [&](uint64_t bytes) { progress.add(bytes); });
    store.compared.insert(store.compared.end(), wanted.begin(), wanted.end());
    makeUnique(store.compared);
  }

  void verifyOwn(const SnapshotReader& reader, const std::string& directory) {
    const Manifest manifest = readManifest(reader);
    if (!manifest.pool.empty()) return;
    uint64_t all = 0;
    for (uint64_t pack : manifest.packs) all += pack;
    DoneLine progress("verify " + nameOf(directory), all);
    ownChunks += verifyOwnChunks(reader, manifest, [&](uint64_t bytes) { progress.add(bytes); });
  }

  std::map<std::string, std::unique_ptr<Store>> stores;  // by folder
  size_t snapshots = 0, ownChunks = 0;
  bool isSound = true;
};

bool isDirectory(const std::string& name) { return name.find('/') != std::string::npos; }

}  // namespace

int verifySnapshots(const std::vector<std::string>& names) {
  Verification verification;
  std::vector<std::string> directories;
  if (names.empty() || !std::ranges::all_of(names, isDirectory)) {
    ChunkStore& store = verification.storeIn(snapshotStore());
    for (auto& name : names)
      if (!isDirectory(name)) directories.push_back(finishedSnapshot(store, name));
    if (names.empty()) directories = finishedSnapshots(store);
  }
  std::ranges::copy_if(names, std::back_inserter(directories), isDirectory);
  for (auto& directory : directories) verification.snapshot(directory);
  return verification.end();
}

}  // namespace vgpu::ctl
