#include "tools/vgpud/changed-pieces.h"

#include <kj/debug.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>

namespace vgpu::daemon {
namespace {

// The start of the first piece at or after `offset` that contains data.
std::optional<uint64_t> nextWritten(int file, uint64_t offset) {
  const off_t data = lseek(file, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return std::nullopt;
  if (data < 0) KJ_FAIL_SYSCALL("lseek", errno);
  return static_cast<uint64_t>(data) / pieceBytes * pieceBytes;
}

}  // namespace

ChangedPieces::ChangedPieces(kj::AutoCloseFd file) : file(kj::mv(file)), digester(DigestKey::random()) {}

Piece ChangedPieces::next(uint64_t offset) {
  auto bytes = kj::heapArray<kj::byte>(pieceBytes);
  for (offset = (offset + pieceBytes - 1) / pieceBytes * pieceBytes;; offset += pieceBytes) {
    const auto written = nextWritten(file, offset);
    const auto known = returned.lower_bound(offset);  // a piece that was returned earlier may have become a hole, which reads as zeros
    if (!written && known == returned.end()) return {offset, nullptr};
    offset = known == returned.end() || (written && *written < known->first) ? *written : known->first;
    ssize_t got;
    KJ_SYSCALL(got = pread(file, bytes.begin(), bytes.size(), static_cast<off_t>(offset)));
    auto filled = bytes.slice(0, static_cast<size_t>(got));
    const Digest digest = digester(std::as_bytes(std::span(filled.begin(), filled.size())));
    auto [found, isNew] = returned.emplace(offset, digest);
    if (!isNew && found->second == digest) continue;
    found->second = digest;
    return {offset, filled.attach(kj::mv(bytes))};
  }
}

}  // namespace vgpu::daemon
