#include "vgpu/snapshot/snapshot-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::snapshot {

namespace {

// Reads until `out` is full or the file ends.
size_t readSome(int fd, std::span<std::byte> out, int& error) {
  size_t total = 0;
  error = 0;
  while (total < out.size()) {
    ssize_t count = ::read(fd, out.data() + total, out.size() - total);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0) break;
    total += static_cast<size_t>(count);
  }
  return total;
}

}  // namespace

FileReader::FileReader(kj::AutoCloseFd file, std::string directory, std::string name, FileSum sum)
    : file(kj::mv(file)), directory(std::move(directory)), name(std::move(name)), sum(std::move(sum)) {}

void FileReader::refuse(const std::string& check) const {
  fail(fmt::format("snapshot {}: file {}: {}", directory, name, check));
}

void FileReader::read(std::span<std::byte> out) {
  if (out.size() > left())
    refuse(fmt::format("length: {} bytes are expected at {}, only {} are found", out.size(), done, left()));
  int error;
  if (readSome(file, out, error) != out.size())
    refuse(error != 0 ? fmt::format("cannot be read: {}", strerror(error))
                      : "length: it became shorter while it was read");
  checksum.add(out);
  done += out.size();
}

void FileReader::finish() {
  if (left() != 0) refuse(fmt::format("length: there are {} bytes after its end", left()));
  std::string found = checksum.text();
  if (found != sum.checksum)
    refuse(fmt::format("checksum: {} is expected, {} is found; the file was altered or damaged", sum.checksum, found));
}

void PackReader::refuse(const std::string& check) const {
  fail(fmt::format("snapshot {}: file {}: {}", directory, name, check));
}

void PackReader::read(uint64_t offset, std::span<std::byte> out) const {
  kj::AutoCloseFd opened;
  if (file.get() < 0) {
    opened = kj::AutoCloseFd(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (opened.get() < 0) refuse(fmt::format("cannot be opened: {}", strerror(errno)));
  }
  int fd = file.get() < 0 ? opened.get() : file.get();
  while (!out.empty()) {
    ssize_t count = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(fmt::format("cannot be read: {}", strerror(errno)));
    if (count == 0) refuse("length: it became shorter while it was read");
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
}

SnapshotReader::SnapshotReader(const std::string& path) : path(path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(fmt::format("cannot open the snapshot {}: {}", path, strerror(errno)));
  directory = kj::AutoCloseFd(fd);
}

void SnapshotReader::refuse(const std::string& name, const std::string& check) const {
  fail(fmt::format("snapshot {}: file {}: {}", path, name, check));
}

kj::AutoCloseFd SnapshotReader::openPlain(const char* name, uint64_t& bytes) const {
  int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) refuse(name, fmt::format("cannot be opened: {}", strerror(errno)));
  kj::AutoCloseFd file(fd);
  struct stat status;
  if (fstat(file, &status) != 0) refuse(name, fmt::format("cannot be inspected: {}", strerror(errno)));
  if (!S_ISREG(status.st_mode)) refuse(name, "it is not a regular file");
  bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

std::string SnapshotReader::readManifest(uint64_t mostBytes) const {
  uint64_t bytes;
  kj::AutoCloseFd file = openPlain(manifestFile, bytes);
  if (bytes > mostBytes) refuse(manifestFile, fmt::format("length: {} bytes, at most {} are read", bytes, mostBytes));
  return textOf(kj::mv(file), bytes);
}

std::string SnapshotReader::readManifestHead(uint64_t bytes) const {
  uint64_t there;
  kj::AutoCloseFd file = openPlain(manifestFile, there);
  return textOf(kj::mv(file), std::min(bytes, there));
}

std::string SnapshotReader::textOf(kj::AutoCloseFd file, uint64_t bytes) const {
  std::string text(bytes, 0);
  int error;
  text.resize(readSome(file, std::as_writable_bytes(std::span(text)), error));
  if (error != 0) refuse(manifestFile, fmt::format("cannot be read: {}", strerror(error)));
  return text;
}

kj::AutoCloseFd SnapshotReader::openSized(const char* name, uint64_t expected) const {
  uint64_t bytes;
  kj::AutoCloseFd file = openPlain(name, bytes);
  if (bytes != expected) refuse(name, fmt::format("length: {} bytes are expected, {} are found", expected, bytes));
  return file;
}

FileReader SnapshotReader::open(const char* name, const FileSum& expected) const {
  return FileReader(openSized(name, expected.bytes), path, name, expected);
}

std::vector<PackReader> SnapshotReader::openPacks(std::span<const uint64_t> sizes) const {
  std::vector<PackReader> packs;
  for (unsigned pack = 0; pack < sizes.size(); ++pack) {
    std::string name = packFile(pack);
    packs.push_back(PackReader(openSized(name.c_str(), sizes[pack]), path, name));
  }
  return packs;
}

std::vector<std::byte> SnapshotReader::readWhole(const char* name, const FileSum& expected, uint64_t mostBytes) const {
  if (expected.bytes > mostBytes)
    refuse(name, fmt::format("length: {} bytes, at most {} are read", expected.bytes, mostBytes));
  FileReader reader = open(name, expected);
  std::vector<std::byte> bytes(expected.bytes);
  reader.read(bytes);
  reader.finish();
  return bytes;
}

void SnapshotReader::compare(const std::map<std::string, FileSum>& files, const std::function<void(uint64_t)>& done) const {
  std::vector<std::byte> piece(MiB);
  for (auto& [name, sum] : files) {
    FileReader file = open(name.c_str(), sum);
    while (file.left() > 0) {
      auto next = std::span(piece).first(std::min<uint64_t>(file.left(), piece.size()));
      file.read(next);
      done(next.size());
    }
    file.finish();
  }
}

}  // namespace vgpu::snapshot
