// snapshots: lists and removes the snapshots in the user's store, and frees what none needs.
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/common/snapshot-store.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/confined.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "tools/vgpuctl/stored-snapshots.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-target.h"
#include "vgpu/store/chunk-store.h"
#include "vgpu/store/name-lease.h"

namespace vgpu::ctl {
namespace {

using namespace snapshot;
using nlohmann::json;
namespace fs = std::filesystem;

// Renames the manifest first, so that what an interrupted removal leaves is marked as unfinished.
void removeFiles(const std::string& directory) {
  if (isWhole(directory)) fs::rename(directory + "/" + manifestFile, directory + "/" + unfinishedManifest);
  faultPoint("rm.unnamed");
  for (auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename() != unfinishedManifest) fs::remove_all(entry);
  fs::remove_all(directory);
}

// Removes what killed saves have left, and snapshots in the memory of daemons that have ended. Saves and daemons hold the lock of the
// directory as long as they run.
void removeUnfinished(const ChunkStore& store) {
  for (auto& name : store.snapshots()) {
    std::string directory = store.path() + "/snapshots/" + name;
    kj::AutoCloseFd held(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (held.get() < 0 || flock(held, LOCK_EX | LOCK_NB) != 0 || !snapshot::isStill(held, directory)) continue;
    auto header = isWhole(directory) ? headerOf(directory) : std::nullopt;
    if (isWhole(directory) && (!header || header->pool.empty())) continue;
    if (header || fs::exists(directory + "/" + unfinishedManifest))
      removeFiles(directory);
    else if (NameLease(store.path(), name).takeToFree())
      ::rmdir(directory.c_str());  // made by a command or a daemon that was killed right afterwards
  }
}

json jsonOf(const std::string& directory, const Header& header) {
  return {{"snapshot", nameOf(directory)},       {"directory", directory},
          {"created", header.created},           {"deviceBytes", header.deviceBytes},
          {"place", placeOf(directory, header)}, {"writing", writingJson(directory)},
          {"session", header.identity.session},  {"name", header.identity.name},
          {"pid", header.identity.pid},          {"program", header.identity.program}};
}

// Whether a process listens on the socket with that path. Uses the system's list, because connecting would be a message to the process.
bool isListening(const std::string& socket) {
  constexpr unsigned acceptsConnections = 1 << 16;
  std::ifstream list("/proc/net/unix");
  std::string line;
  while (std::getline(list, line)) {
    unsigned flags = 0;
    bool isRead = sscanf(line.c_str(), "%*s %*s %*s %x", &flags) == 1;
    if (isRead && (flags & acceptsConnections) != 0 && line.ends_with(" " + socket)) return true;
  }
  return false;
}

// The progress of its session: in calls, because clocks may be set back.
uint64_t positionOf(const Header& header) {
  uint64_t position = 0;
  for (auto& ring : header.rings) position += ring.barrier;
  return position;
}

// Whether the store has no later snapshot of the same session, from which its program would be resumed.
bool isLatest(const ChunkStore& store, const Header& header) {
  return std::ranges::none_of(withSessions(wholeSnapshots(store)), [&](auto& directory) {
    auto other = headerOf(directory);
    return other && other->identity.session == header.identity.session && positionOf(*other) > positionOf(header);
  });
}

constexpr const char* listRow = "{:<24} {:<20} {:>12} {:<6} {:>8} {}\n";

void printRow(const std::string& directory, const Header& header) {
  fmt::print(listRow, nameOf(directory), timeText(header.created), humanBytes(header.deviceBytes), placeOf(directory, header),
             header.identity.pid, printable(header.identity.program) + writingOf(directory));
}

}  // namespace

void requireSoundStore(const std::string& folder) {
  int code = runConfined("the index of the store of snapshots " + folder, [&] {
    ChunkStore(folder).checkIndex();
    return 0;
  });
  if (code != 0) fail("the store of snapshots " + folder + " is damaged");
}

int listSnapshots(bool asJson) {
  ChunkStore store(snapshotStore());
  json array = json::array();
  if (!asJson) fmt::print(listRow, "SNAPSHOT", "MADE", "MEMORY", "PLACE", "PID", "PROGRAM");
  for (auto& directory : wholeSnapshots(store)) {
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] {
                   Header header = readHeader(SnapshotReader(directory));
                   if (asJson) array.push_back(jsonOf(directory, header));
                   else printRow(directory, header);
                 })) {
      std::string damage = reasonOf(*exception);
      if (asJson) array.push_back({{"snapshot", nameOf(directory)}, {"directory", directory}, {"damage", damage}});
      else fmt::print("{:<24} {}\n", nameOf(directory), printable(damage));
    }
  }
  if (asJson) printJson(array);
  return 0;
}

int removeSnapshot(const std::string& name, bool force) {
  ChunkStore store(snapshotStore());
  std::string directory = finishedSnapshot(store, name);
  auto header = headerOf(directory);
  if (!force && header && isListening(header->identity.reattach) && isLatest(store, *header))
    fail(fmt::format("snapshot {} is the latest of session {}, whose program (pid {}) still exists: if it is suspended, it can be resumed "
                     "only from this snapshot. If it runs, remove the snapshot with --force",
                     name, header->identity.session, header->identity.pid));
  removeFiles(directory);
  fmt::print("snapshot {} is removed; `vgpuctl snapshots gc` frees the memory that no other snapshot needs\n", name);
  return 0;
}

int collectSnapshots(bool asJson) {
  requireSoundStore(snapshotStore());
  ChunkStore store(snapshotStore());
  removeUnfinished(store);
  auto collected = store.collect([&] {
    std::vector<ChunkName> used;
    for (auto& directory : snapshotsInNeed(store)) {
      KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] {
                     auto names = chunksOf(store, directory);
                     used.insert(used.end(), names.begin(), names.end());
                   })) {
        if (!needsChunks(directory)) continue;  // it is being removed
        fail(fmt::format("nothing is removed from the store: {}. What that snapshot needs is unknown; remove it with `vgpuctl snapshots rm "
                         "{}`",
                         reasonOf(*exception), nameOf(directory)));
      }
      makeUnique(used);
    }
    return used;
  });
  if (asJson)
    printJson({{"chunks", collected.chunks},
               {"packs", collected.packs},
               {"freedBytes", collected.freedBytes},
               {"keptBytes", collected.keptBytes},
               {"leasedPacks", collected.leasedPacks}});
  else
    fmt::print("removed {} chunks and {} packs, {} in all; {} are left{}\n", collected.chunks, collected.packs, humanBytes(collected.freedBytes),
               humanBytes(collected.keptBytes),
               collected.leasedPacks == 0 ? "" : fmt::format("; {} packs are in use and were not examined", collected.leasedPacks));
  return 0;
}

}  // namespace vgpu::ctl
