// Contents of files of which most was never written, such as a session's host arena: in pieces, without what is not there.
//
// Waits for the disk: off the event loop.
#pragma once

#include <kj/array.h>

#include <cstddef>
#include <cstdint>

namespace vgpu::daemon {

constexpr size_t pieceBytes = 256 * 1024;  // well below what a message may have

struct Piece {
  uint64_t offset;
  kj::Array<kj::byte> bytes;  // empty: there is none any more
};

// The first bytes of `file` from `offset` on, at most pieceBytes. Throws kj::Exception.
Piece nextPiece(int file, uint64_t offset);

// Throws kj::Exception, saying that `what` cannot be kept.
void writeAll(int file, kj::ArrayPtr<const kj::byte> bytes, uint64_t offset, const char* what);

}  // namespace vgpu::daemon
