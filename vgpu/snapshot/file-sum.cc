#include "vgpu/snapshot/file-sum.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::snapshot {
namespace {

[[noreturn]] void cannot(const char* doing, const std::string& path) {
  fail(fmt::format("cannot {} {}: {}", doing, path, strerror(errno)));
}

}  // namespace

kj::AutoCloseFd openPlainFile(const std::string& path) {
  kj::AutoCloseFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || fstat(file, &status) != 0) cannot("open", path);
  if (!S_ISREG(status.st_mode)) fail(path + " is not a regular file");
  return file;
}

FileSum sumOf(int file, const std::string& path) {
  FileSum sum;
  Checksum checksum;
  std::vector<std::byte> piece(MiB);
  while (true) {
    ssize_t count = read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot("read", path);
    if (count == 0) break;
    checksum.add(std::span(piece).first(static_cast<size_t>(count)));
    sum.bytes += static_cast<uint64_t>(count);
  }
  sum.checksum = checksum.text();
  return sum;
}

FileSum sumOnDisk(const std::string& path) {
  auto file = openPlainFile(path);
  FileSum sum = sumOf(file, path);
  if (fsync(file) != 0) cannot("write", path);
  return sum;
}

}  // namespace vgpu::snapshot
