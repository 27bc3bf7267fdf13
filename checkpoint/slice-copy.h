// Copies from GPUs in slices of a few chunks: threads process the chunks of one slice while the next slice is copied.
#pragma once

#include <functional>
#include <span>

#include "checkpoint/staging-ring.h"

namespace vgpu::checkpoint {

// Copies pieces, in order, into slots (a slot's `chunk` is the index of its piece), and waits for the copies. Called on the calling thread.
// A slot whose `bytes` stays 0 has no piece.
using CopySlice = std::function<void(std::span<Slot* const> slots)>;
// Called by `writers` threads with the bytes of a piece.
using TakePiece = std::function<void(unsigned writer, size_t piece, std::span<const std::byte> bytes)>;

// Copies `pieces` pieces, none larger than a chunk. Call it in a device's context. Throws kj::Exception if there is no memory, or what one
// of the functions throws.
void copyInSlices(const stub::Driver& driver, size_t pieces, unsigned writers, const CopySlice& copy, const TakePiece& take);

}  // namespace vgpu::checkpoint
