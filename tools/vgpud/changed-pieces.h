// Reads a sparse file that changes while it is sent: each pass returns only what has changed since the last pass. Detects changes by
// digests, because writes are not reported.
//
// Does disk I/O: call it off the event loop. Used by one thread at a time.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <map>

#include "tools/vgpud/sparse-pieces.h"
#include "vgpu/store/chunk-digest.h"

namespace vgpu::daemon {

class ChangedPieces {
 public:
  explicit ChangedPieces(kj::AutoCloseFd file);

  // The first piece from `offset` on (0, or the end of the last piece) whose bytes differ from those that were last returned for it. Skips
  // pieces that were never written. Throws kj::Exception.
  Piece next(uint64_t offset);

 private:
  const kj::AutoCloseFd file;
  const Digester digester;
  std::map<uint64_t, Digest> returned;  // by offset
};

}  // namespace vgpu::daemon
