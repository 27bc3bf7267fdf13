// snapshots verify: reads all that snapshots of the store need, and says what of it is not as it was written.
#include <fmt/format.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstdio>
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

// Those that share are resumed together, or not at all.
void requireAllThatShare(const std::string& directory) {
  std::set<std::string> there, wanted;
  for (auto& one : withSessions({directory}))
    if (auto header = headerOf(one)) {
      there.insert(header->identity.session);
      wanted.insert(header->identity.sharesWith.begin(), header->identity.sharesWith.end());
    }
  for (auto& session : wanted)
    if (!there.contains(session))
      fail(fmt::format("the snapshot of session {}, with which it shares, is missing in its folder {}", session, sessionsFolder));
}

// Those of its chunks that are not in `all`, and adds them to it.
void verifyOthersChunks(ChunkStore& store, const std::string& directory, std::vector<ChunkName>& all) {
  auto wanted = chunksOf(store, directory);
  std::erase_if(wanted, [&](auto& chunk) { return std::ranges::binary_search(all, chunk); });
  auto chunks = locate(store, wanted);
  DoneLine progress("verify " + nameOf(directory), bytesOf(chunks));
  verifyChunks(store, std::move(chunks), [&](uint64_t bytes) { progress.add(bytes); });
  all.insert(all.end(), wanted.begin(), wanted.end());
  makeUnique(all);
}

void verify(ChunkStore& store, const std::string& directory, std::vector<ChunkName>& all) {
  if (isLost(directory)) fail("it was in the memory of a vgpud that has ended");
  verifyFiles(directory);  // first: a snapshot of another version is refused after that
  Header header = readHeader(SnapshotReader(directory));
  if (header.process) verifyProcess(directory, *header.process);
  verifyOthersChunks(store, directory, all);
  faultPoint("verify.compared");
}

}  // namespace

int verifySnapshots(const std::vector<std::string>& names) {
  requireSoundStore(snapshotStore());
  ChunkStore store(snapshotStore());
  std::vector<std::string> directories;
  for (auto& name : names) directories.push_back(finishedSnapshot(store, name));
  if (names.empty()) directories = finishedSnapshots(store);
  std::vector<ChunkName> all;  // that were found to be as they were written
  int code = 0;
  auto check = [&](const std::string& directory, const auto& that) {
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions(that)) {
      fmt::print(stderr, "vgpuctl: snapshot {} cannot be resumed: {}\n", nameOf(directory), printable(reasonOf(*exception)));
      code = 1;
    }
  };
  for (auto& snapshot : directories) {
    for (auto& directory : withSessions({snapshot})) check(directory, [&] { verify(store, directory, all); });
    check(snapshot, [&] { requireAllThatShare(snapshot); });
  }
  fmt::print("{} snapshots, {} chunks: {}\n", directories.size(), all.size(),
             code == 0 ? "all are as they were written" : "not all are as they were written");
  return code;
}

}  // namespace vgpu::ctl
