// A snapshot of a store, exported as one stream of bytes and imported again (docs/snapshot.md, Archive).
//
//   "vgpuarch" (8) · version (4) · 0 (4)
//   for manifest.json, objects, chunks, pending-calls and output: bytes (8) · bytes
//   for each chunk of the store that `chunks` names, once, in the order of its first mention: bytes (4) · form (4) · bytes
//
// Everything is verified: the manifest has checksums of itself and of the other files, `chunks` has the digests, and nothing follows the
// last chunk. The digests use the key of the store that the archive comes from, which is in the manifest; the importing store has another
// key, so the list of chunks and the manifest are written anew there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "vgpu/snapshot/manifest.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::snapshot {

// Called with the bytes of chunks that are done and the total if that is known, else 0; also when a signal has interrupted a wait. An
// exception that it throws ends the work.
using ArchiveProgress = std::function<void(uint64_t done, uint64_t all)>;

// Writes the snapshot in `directory`, which is in `store`, to `out`; `name` is for messages. Throws kj::Exception, also if a chunk does not
// match its digest.
void writeArchive(ChunkStore& store, const std::string& directory, int out, const std::string& name,
                  const ArchiveProgress& progress);

class ArchiveReader {
 public:
  // Reads up to the end of the manifest. Throws kj::Exception: not an archive, another version, damaged.
  ArchiveReader(int in, std::string name, ArchiveProgress progress);
  ~ArchiveReader();

  const Manifest& manifest() const { return snapshot; }

  struct Imported {
    uint64_t chunks = 0, writtenBytes = 0;  // in the archive; bytes in packs, of chunks that the store did not have
  };
  // Reads the rest into `store`, as the snapshot in `directory`. The snapshot is complete when this returns, and does not exist if this
  // throws kj::Exception. Call it once.
  Imported importInto(ChunkStore& store, const std::string& directory);

 private:
  class Input;
  class Chunks;
  std::unique_ptr<Input> input;
  const ArchiveProgress progress;
  Manifest snapshot;
};

}  // namespace vgpu::snapshot
