// A snapshot of a store as one stream of bytes, to be kept or carried elsewhere, and back (docs/snapshot.md, Archive).
//
//   "vgpuarch" (8) · version (4) · 0 (4)
//   for manifest.json, objects, chunks, pending-calls and output: bytes (8) · bytes
//   for each chunk of the store that `chunks` names, once, in the order in which it names them: bytes (4) · form (4) · bytes
//
// All of it is compared with what came before: the manifest has checksums of its own and of the other files, `chunks` has the
// digests, and nothing follows the last chunk. Digests are by the key of the store that it comes from, which is in the manifest;
// another store has another key, so there the list of chunks and the manifest are written anew.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "vgpu/snapshot/manifest.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::snapshot {

// Told how many bytes of chunks are done, of how many if that is known, else 0; also when a signal has interrupted a wait. What
// it throws ends the work.
using ArchiveProgress = std::function<void(uint64_t done, uint64_t all)>;

// Writes the snapshot in `directory`, which is in `store`, to `out`, whose name is for messages. Throws kj::Exception, also if a
// chunk is not what it was.
void writeArchive(ChunkStore& store, const std::string& directory, int out, const std::string& name,
                  const ArchiveProgress& progress);

class ArchiveReader {
 public:
  // Reads as far as the manifest. Throws kj::Exception: no archive, another version, damaged.
  ArchiveReader(int in, std::string name, ArchiveProgress progress);
  ~ArchiveReader();

  const Manifest& manifest() const { return snapshot; }

  struct Imported {
    uint64_t chunks = 0, writtenBytes = 0;  // in the archive; in packs, of those that the store did not have
  };
  // Reads the rest into `store`, as the snapshot in `directory`: that is whole when this returns, and not there if this throws
  // kj::Exception. Once.
  Imported importInto(ChunkStore& store, const std::string& directory);

 private:
  class Input;
  class Chunks;
  std::unique_ptr<Input> input;
  const ArchiveProgress progress;
  Manifest snapshot;
};

}  // namespace vgpu::snapshot
