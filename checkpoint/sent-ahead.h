// What a worker has of a session before it restores it, because a migration has sent it ahead. One thread at a time.
#pragma once

#include "checkpoint/made-ahead.h"
#include "checkpoint/resident-chunks.h"
#include "checkpoint/session-capture.h"

namespace vgpu::checkpoint {

struct SentAhead {
  ResidentChunks memory;
  ImageDigests images;  // of those that are among the worker's blobs, whole
  MadeAhead made;
};

}  // namespace vgpu::checkpoint
