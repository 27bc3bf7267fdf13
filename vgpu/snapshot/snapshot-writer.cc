#include "vgpu/snapshot/snapshot-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>

#include "vgpu/base/fault-point.h"

namespace vgpu::snapshot {

namespace {

kj::AutoCloseFd copyOf(int fd) {
  int copy;
  KJ_SYSCALL(copy = fcntl(fd, F_DUPFD_CLOEXEC, 3));
  return kj::AutoCloseFd(copy);
}

}  // namespace

void FileWriter::write(std::span<const std::byte> bytes) {
  checksum.add(bytes);
  written += bytes.size();
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannotSave("write the snapshot's file", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

FileSum FileWriter::finish() {
  if (fsync(file) != 0) cannotSave("write the snapshot's file", path, errno);
  file = nullptr;
  return {written, checksum.text()};
}

SnapshotWriter::SnapshotWriter(kj::AutoCloseFd directory, std::string path)
    : path(std::move(path)), directory(kj::mv(directory)) {
  manifest = std::make_unique<FileWriter>(create(unfinishedManifest));
}

SnapshotWriter::SnapshotWriter(std::unique_ptr<SnapshotTarget> owned)
    : SnapshotWriter(copyOf(owned->fd()), owned->path()) {
  target = std::move(owned);
}

SnapshotWriter::SnapshotWriter(const std::string& path) : SnapshotWriter(std::make_unique<SnapshotTarget>(path)) {}

FileWriter SnapshotWriter::create(const char* name) {
  std::string whole = path + "/" + name;
  int fd = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) cannotSave("open the snapshot's file", whole, errno);
  return FileWriter(kj::AutoCloseFd(fd), whole);
}

FileSum SnapshotWriter::write(const char* name, std::span<const std::byte> bytes) {
  FileWriter writer = create(name);
  writer.write(bytes);
  return writer.finish();
}

void SnapshotWriter::publish(const std::string& text) {
  manifest->write(std::as_bytes(std::span(text)));
  manifest->finish();
  faultPoint("suspend.manifest-written");
  if (fsync(directory) != 0) cannotSave("write the snapshot's directory", path, errno);
  if (renameat(directory, unfinishedManifest, directory, manifestFile) != 0)
    cannotSave("name the snapshot's manifest in", path, errno);
  faultPoint("suspend.manifest-named");
  if (fsync(directory) != 0) cannotSave("write the snapshot's directory", path, errno);
  if (target) target->keep();
}

}  // namespace vgpu::snapshot
