// Copies modules' images while the program runs.
//
// An image does not change, so its number identifies the copy under the quiesce. But the image may be dropped between two frames, so each
// visit copies only images that exist then. Used by the thread that controls the worker.
#pragma once

#include <functional>

#include "checkpoint/session-capture.h"

namespace vgpu::checkpoint {

// Runs the work between two frames. Returns false if the time limit passed and the work was not done.
using Visit = std::function<bool(const std::function<void(stub::SessionState&)>& work)>;

// The digests of the chunks that were copied. If a visit fails, the remaining images are left for the quiesce.
ImageDigests copyImages(ChunkSink& sink, const Visit& visit);

struct CopiedImages {
  uint64_t copiedBytes = 0, leftBytes = 0;
};
// The same for images that `images` has no chunks of yet. `take` is called with each image and its number, and adds its chunks to `images`.
using TakeImage = std::function<void(uint64_t number, std::span<const std::byte> bytes)>;
CopiedImages copyNewImages(const Visit& visit, const ImageDigests& images, const TakeImage& take);
// A TakeImage that puts the image into `sink`.
TakeImage intoSink(ChunkSink& sink, ImageDigests& images);

}  // namespace vgpu::checkpoint
