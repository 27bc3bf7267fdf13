// Reads sparse files, such as a session's host arena, in pieces, without their holes.
//
// Does disk I/O: call it off the event loop.
#pragma once

#include <kj/array.h>

#include <cstddef>
#include <cstdint>

namespace vgpu::daemon {

constexpr size_t pieceBytes = 256 * 1024;  // well below the size limit of a message

struct Piece {
  uint64_t offset;
  kj::Array<kj::byte> bytes;  // empty at the end of the file
};

// The first data of `file` from `offset` on, at most pieceBytes. Throws kj::Exception.
Piece nextPiece(int file, uint64_t offset);

// Throws kj::Exception with the message that `what` cannot be kept.
void writeAll(int file, kj::ArrayPtr<const kj::byte> bytes, uint64_t offset, const char* what);

}  // namespace vgpu::daemon
