#include "vgpu/snapshot/replace-manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <unistd.h>

#include <cstring>

#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/snapshot-files.h"
#include "vgpu/store/disk-space.h"

namespace vgpu::snapshot {

namespace {

// Opens (or creates) and syncs a file. `text`: content to write first.
void sync(int directory, const std::string& path, const char* name, int flags, const std::string& text = {}) {
  auto refuse = [&] {
    fail(fmt::format("cannot write the snapshot's file {}/{}: {}", path, name, writeProblem(errno, path, text.size())));
  };
  kj::AutoCloseFd file(openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600));
  const char* at = text.data();
  for (size_t left = file.get() < 0 ? 0 : text.size(); left > 0;) {
    ssize_t count = write(file, at, left);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse();
    at += count;
    left -= static_cast<size_t>(count);
  }
  if (file.get() < 0 || fsync(file) != 0) refuse();
}

}  // namespace

void replaceManifest(const std::string& path, const std::string& text) {
  kj::AutoCloseFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.get() < 0) fail(fmt::format("cannot open the snapshot {}: {}", path, strerror(errno)));
  for (const char* name : dataFiles) sync(directory, path, name, O_RDONLY);
  unlinkat(directory, replacingManifest, 0);  // left by a killed writer
  sync(directory, path, replacingManifest, O_WRONLY | O_CREAT | O_EXCL, text);
  faultPoint("write.manifest-written");
  if (renameat(directory, replacingManifest, directory, manifestFile) != 0 || fsync(directory) != 0)
    fail(fmt::format("cannot name the manifest of the snapshot {}: {}", path, strerror(errno)));
  faultPoint("write.manifest-named");
}

}  // namespace vgpu::snapshot
