#include "tools/vgpuctl/new-snapshot.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <filesystem>

#include "vgpu/base/fail.h"
#include "vgpu/snapshot/snapshot-files.h"
#include "vgpu/store/chunk-store.h"
#include "vgpu/store/disk-space.h"
#include "vgpu/store/name-lease.h"

namespace vgpu::ctl {

NewSnapshot::NewSnapshot(std::string directory) : directory(std::move(directory)) {}

NewSnapshot::NewSnapshot(NewSnapshot&& other) noexcept = default;

NewSnapshot NewSnapshot::called(const ChunkStore& store, const std::string& name) {
  std::string directory = ChunkStore::directoryOf(store.path(), name);
  if (std::filesystem::exists(directory + "/" + snapshot::manifestFile))
    fail(fmt::format(
        "the store {} already has a snapshot {}; give this one another name, or remove the other with `vgpuctl snapshots rm`",
        store.path(), name));
  return NewSnapshot(directory);
}

NewSnapshot NewSnapshot::like(const ChunkStore& store, const std::string& wish) {
  std::string base = wish.substr(0, 80);
  for (char& letter : base)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '-';
  for (int number = 1;; ++number) {
    std::string name = number == 1 ? base : fmt::format("{}-{}", base, number);
    NewSnapshot target(ChunkStore::directoryOf(store.path(), name));
    auto lease = std::make_unique<NameLease>(store.path(), name);
    lease->hold();
    if (mkdir(target.directory.c_str(), 0700) == 0) {
      target.reserved = std::move(lease);
      return target;
    }
    if (errno != EEXIST)
      fail(fmt::format("cannot make the snapshot's directory {}: {}", target.directory, writeProblem(errno, target.directory)));
  }
}

NewSnapshot::~NewSnapshot() {
  if (reserved) rmdir(directory.c_str());  // fails if it contains a snapshot
}

}  // namespace vgpu::ctl
