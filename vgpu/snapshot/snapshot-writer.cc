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

// A smaller value costs more calls; a larger one leaves the disk idle.
constexpr uint64_t writeBehindBytes = uint64_t{16} << 20;

void writeAll(int file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannotSave("write the snapshot's file", path, errno, bytes.size());
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void sync(int file, Durability durability, const char* what, const std::string& path) {
  if (durability == Durability::synced && fsync(file) != 0) cannotSave(what, path, errno);
}
void syncFile(int file, Durability durability, const std::string& path) {
  sync(file, durability, "write the snapshot's file", path);
}

}  // namespace

void FileWriter::write(std::span<const std::byte> bytes) {
  checksum.add(bytes);
  written += bytes.size();
  writeAll(file, path, bytes);
}

FileSum FileWriter::finish() {
  syncFile(file, durability, path);
  file = nullptr;
  return {written, checksum.text()};
}

SnapshotWriter::SnapshotWriter(kj::AutoCloseFd directory, std::string path, Durability durability)
    : path(std::move(path)), durability(durability), directory(kj::mv(directory)) {
  manifest = std::make_unique<FileWriter>(create(unfinishedManifest));
}

SnapshotWriter::SnapshotWriter(std::unique_ptr<SnapshotTarget> owned)
    : SnapshotWriter(copyOf(owned->fd()), owned->path()) {
  target = std::move(owned);
}

SnapshotWriter::SnapshotWriter(const std::string& path) : SnapshotWriter(std::make_unique<SnapshotTarget>(path)) {}

uint64_t PackWriter::append(std::span<const std::byte> bytes) {
  uint64_t start = written;
  writeAll(file, path, bytes);
  written += bytes.size();
  // Starts disk writes while memory is still being read; the result is ignored because this is only an optimization.
  if (durability == Durability::synced && written - begun >= writeBehindBytes) {
    sync_file_range(file, static_cast<off_t>(begun), static_cast<off_t>(written - begun), SYNC_FILE_RANGE_WRITE);
    begun = written;
  }
  return start;
}

uint64_t PackWriter::leave(uint64_t bytes) {
  uint64_t start = written;
  if (lseek(file, static_cast<off_t>(bytes), SEEK_CUR) < 0) cannotSave("write the snapshot's file", path, errno);
  written += bytes;
  return start;
}

uint64_t PackWriter::finish() {
  if (ftruncate(file, static_cast<off_t>(written)) != 0) cannotSave("write the snapshot's file", path, errno);
  syncFile(file, durability, path);
  file = nullptr;
  return written;
}

int SnapshotWriter::openFile(const std::string& name) {
  return openat(directory, name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
}

FileWriter SnapshotWriter::create(const char* name) {
  std::string whole = path + "/" + name;
  kj::AutoCloseFd file(openFile(name));
  if (file.get() < 0) cannotSave("open the snapshot's file", whole, errno);
  return FileWriter(kj::mv(file), whole, durability);
}

std::vector<PackWriter> SnapshotWriter::openPacks() {
  std::vector<PackWriter> packs;
  for (unsigned pack = 0; pack < mostPacks; ++pack) {
    kj::AutoCloseFd file(openFile(packFile(pack)));
    if (file.get() < 0 && errno == ENOENT && pack > 0) break;
    if (file.get() < 0) cannotSave("open the snapshot's file", path + "/" + packFile(pack), errno);
    packs.push_back(PackWriter(kj::mv(file), path + "/" + packFile(pack), durability));
  }
  return packs;
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
  sync(directory, durability, "write the snapshot's directory", path);
  if (renameat(directory, unfinishedManifest, directory, manifestFile) != 0)
    cannotSave("name the snapshot's manifest in", path, errno);
  faultPoint("suspend.manifest-named");
  sync(directory, durability, "write the snapshot's directory", path);
  if (target) target->keep();
}

}  // namespace vgpu::snapshot
