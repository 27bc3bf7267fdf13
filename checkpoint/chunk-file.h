// Files of chunks: `bytes` and `blobs`. What is kept — ranges of memory, images — is cut into chunks of at most 2 MiB,
// each with a header that says its form and the checksum of its bytes (docs/snapshot.md). Chunks of zeros take a header
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/pipeline.h"
#include "vgpu/snapshot/snapshot-reader.h"
#include "vgpu/snapshot/snapshot-writer.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// How things of given sizes are cut.
class ChunkPlan {
 public:
  explicit ChunkPlan(std::vector<uint64_t> sizes) : sizes(std::move(sizes)) {}

  struct Piece {
    size_t item;
    uint64_t offset;
    size_t bytes;  // <= chunkBytes
  };
  // The next one, in order; nothing behind the last.
  std::optional<Piece> next();

 private:
  std::vector<uint64_t> sizes;
  size_t item = 0;
  uint64_t offset = 0;
};

using Piece = ChunkPlan::Piece;

// Writes every piece of `plan` to `file`. `fill` is called in order on the calling thread.
void writeChunks(Pipeline& pipeline, FileWriter& file, ChunkPlan plan,
                 const std::function<void(const Piece&, std::byte* out)>& fill);

// Reads all of `file`, which must hold every piece of `plan` and no more. `take` is called in order on the calling
// thread; `bytes` is nullptr for a piece of zeros. Throws kj::Exception that names the file, the chunk and the check;
// the checksum of the whole file is the last one.
void readChunks(Pipeline& pipeline, FileReader& file, ChunkPlan plan,
                const std::function<void(const Piece&, const std::byte* bytes)>& take);

}  // namespace vgpu::checkpoint
