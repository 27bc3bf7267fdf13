#include "vgpu/snapshot/pack-filler.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "vgpu/base/fail.h"
#include "vgpu/store/disk-space.h"

namespace vgpu::snapshot {

PackFiller::PackFiller(const std::string& directory, const std::string& name)
    : path(directory + "/" + name), file(open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)) {
  if (file.get() < 0) refuse();
}

void PackFiller::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(bytes.size());
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void PackFiller::finish() {
  if (fsync(file) != 0) refuse();
}

void PackFiller::refuse(uint64_t bytes) const {
  fail(fmt::format("cannot write the snapshot's file {}: {}", path, writeProblem(errno, path, bytes)));
}

}  // namespace vgpu::snapshot
