// A chunk: at most 2 MiB of a range of memory or of an image, and the form in which it is kept. A pack is the concatenation of chunks'
// bytes; the file `chunks` has the place and the digest of each chunk (docs/snapshot.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vgpu/store/chunk-digest.h"

namespace vgpu::snapshot {

constexpr size_t chunkBytes = size_t{2} << 20;

// stored: identified by its name, and in the store (vgpu/store/chunk-store.h) or in pinned memory. pinned: in pinned memory at this offset;
// never in a file. resident: in the device memory of the worker that restores it, where a migration has sent it (docs/migration.md).
enum class Form : uint16_t { zero, plain, zstd, stored, pinned, resident };

struct ChunkPlace {
  Digest digest;
  uint64_t offset = 0;  // in its pack; for a chunk of the store, its size
  uint32_t bytes = 0;   // in the pack; 0 for a chunk of zeros or of the store
  uint16_t pack = 0;
  Form form = Form::zero;
  bool operator==(const ChunkPlace&) const = default;
};
static_assert(sizeof(ChunkPlace) == 32);

// The most bytes that a chunk can take in a pack.
size_t packedMost();

bool isZero(std::span<const std::byte> bytes);

// The file `chunks`: "vgpuchnk" (8) · count (8) · places, in the order in which images and rows of state are cut.
constexpr uint64_t maxChunkListBytes = uint64_t{256} << 20;
std::vector<std::byte> encodeChunks(std::span<const ChunkPlace> places);
// Throws kj::Exception that says which place is invalid: an unknown form, or bytes outside the packs of these sizes.
std::vector<ChunkPlace> decodeChunks(std::span<const std::byte> bytes, std::span<const uint64_t> packs);

}  // namespace vgpu::snapshot
