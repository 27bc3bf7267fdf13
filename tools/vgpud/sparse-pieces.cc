#include "tools/vgpud/sparse-pieces.h"

#include <kj/debug.h>
#include <unistd.h>

#include <cerrno>

namespace vgpu::daemon {

Piece nextPiece(int file, uint64_t offset) {
  off_t data = lseek(file, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {offset, nullptr};
  if (data < 0) KJ_FAIL_SYSCALL("lseek", errno);
  auto bytes = kj::heapArray<kj::byte>(pieceBytes);
  ssize_t got;
  KJ_SYSCALL(got = pread(file, bytes.begin(), bytes.size(), data));
  auto filled = bytes.slice(0, static_cast<size_t>(got));
  return {static_cast<uint64_t>(data), filled.attach(kj::mv(bytes))};
}

void writeAll(int file, kj::ArrayPtr<const kj::byte> bytes, uint64_t offset, const char* what) {
  while (bytes.size() > 0) {
    ssize_t put = pwrite(file, bytes.begin(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) KJ_FAIL_SYSCALL("pwrite", errno, what, "cannot be kept");
    bytes = bytes.slice(static_cast<size_t>(put), bytes.size());
    offset += static_cast<uint64_t>(put);
  }
}

}  // namespace vgpu::daemon
