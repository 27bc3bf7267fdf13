// Copies chunks to pinned memory and back without a ring in between (pinned-memory.h): GPUs copy them directly between their places, and
// digest what they have copied. Used by the thread that saves or restores.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/chunk-file.h"

namespace vgpu::checkpoint {

// Puts pieces into source.room and adds them to `sink`; returns the pieces for which there is no room. Does not copy pieces that are
// already there. No copy is in flight when this returns or throws.
std::vector<NewPiece> pinPieces(stub::SessionState* on, ChunkSink& sink, std::vector<NewPiece> pieces, const ChunkSource& source);

// Puts pieces where source.hold says, gives them to source.keep, or puts them where source.holdLast says; returns the pieces for which
// there is no room. No copy is in flight when this returns or throws.
std::vector<NewPiece> holdPieces(stub::SessionState* on, std::vector<NewPiece> pieces, const ChunkSource& source);

// Returns `places`, changed to form pinned for the chunks that `room` has. `plans`: of these chunks, one after the other; `key`: of their
// digests.
std::vector<ChunkPlace> findPinned(const PinnedRoom& room, const DigestKey& key, std::vector<ChunkPlace> places,
                                   std::vector<ChunkPlan> plans);

// The bytes of a chunk of form pinned.
std::span<const std::byte> pinnedBytes(const SavedChunks& saved, size_t chunk, size_t bytes);

// Verifies the digests of chunks of form pinned, given by number and size, with several threads. Throws kj::Exception that names a chunk
// that differs.
struct PinnedPiece {
  size_t chunk, bytes;
};
void requirePinned(const SavedChunks& saved, std::span<const PinnedPiece> pieces);
// Throws that exception.
[[noreturn]] void refusePinned(size_t chunk);

// The chunks of `plan` that have form pinned; the plan's first chunk has index `first`.
std::vector<PinnedPiece> pinnedOf(const SavedChunks& saved, size_t first, ChunkPlan plan);

}  // namespace vgpu::checkpoint
