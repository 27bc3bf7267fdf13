// Contents of a file of which most was never written, and which changes while it is sent: each time only what has changed since
// the last time. Known by digests: nobody tells what is written.
//
// Waits for the disk: off the event loop. Used by one thread at a time.
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

  // The first piece from `offset` on, 0 or where the last one ended, whose bytes differ from those that were returned of it last.
  // Of one that was never written, nothing is returned. Throws kj::Exception.
  Piece next(uint64_t offset);

 private:
  const kj::AutoCloseFd file;
  const Digester digester;
  std::map<uint64_t, Digest> returned;  // by offset
};

}  // namespace vgpu::daemon
