// Copies of modules' images that are made while the program runs.
//
// An image does not change, so what was copied is known under the quiesce by its number. It may end between two frames, though,
// so each is looked at between two of its own. Of the thread that controls the worker.
#pragma once

#include <functional>

#include "checkpoint/session-capture.h"

namespace vgpu::checkpoint {

// Runs the work between two frames. False if that did not come about in time: the work was not done then.
using Visit = std::function<bool(const std::function<void(stub::SessionState&)>& work)>;

// The chunks of those that were copied. The rest, from the first visit on that fails, is for the quiesce.
ImageDigests copyImages(ChunkSink& sink, const Visit& visit);

struct CopiedImages {
  uint64_t copiedBytes = 0, leftBytes = 0;
};
// The same of those that `images` has no chunks of yet. `take` gets each, by its number, and adds its chunks to `images`.
using TakeImage = std::function<void(uint64_t number, std::span<const std::byte> bytes)>;
CopiedImages copyNewImages(const Visit& visit, const ImageDigests& images, const TakeImage& take);
// Takes one into `sink`.
TakeImage intoSink(ChunkSink& sink, ImageDigests& images);

}  // namespace vgpu::checkpoint
