// Copies from GPUs in slices of a few chunks: threads take what has arrived while the next slice is copied.
#pragma once

#include <functional>
#include <span>

#include "checkpoint/staging-ring.h"

namespace vgpu::checkpoint {

// Copies some pieces, in their order, into slots, whose `chunk` says which piece each is for, and waits for the copies. On the
// calling thread. A slot of which `bytes` stays 0 has none.
using CopySlice = std::function<void(std::span<Slot* const> slots)>;
// Called by `writers` threads with the bytes of a piece.
using TakePiece = std::function<void(unsigned writer, size_t piece, std::span<const std::byte> bytes)>;

// Of `pieces` pieces, none larger than a chunk. In a device's context. Throws kj::Exception if there is no memory, or what one of
// the functions throws.
void copyInSlices(const stub::Driver& driver, size_t pieces, unsigned writers, const CopySlice& copy, const TakePiece& take);

}  // namespace vgpu::checkpoint
